#include "device/deny_list.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <stdexcept>

#include "base/json.hpp"
#include "base/text.hpp"
#include "embedded/embedded.hpp"

namespace vkgemm {
namespace {

// Missing parts are `rest`: the last version of a series counts all that begins like it.
DriverVersion parse_version(const std::string& text, std::uint32_t rest) {
  DriverVersion version;
  version.fill(rest);
  std::string_view left = text;
  for (std::size_t part = 0;; ++part) {
    const std::size_t dot = left.find('.');
    const auto number = parse_number<std::uint32_t>(left.substr(0, dot));
    if (!number || part == version.size()) {
      throw std::invalid_argument(concat("version ", in_quotes(text), " is none"));
    }
    version[part] = *number;
    if (dot == std::string_view::npos) return version;
    left.remove_prefix(dot + 1);
  }
}

template <class Parse>
auto parse_name(const Json& value, Parse parse) {
  const auto parsed = parse(value.get<std::string>());
  if (!parsed) throw std::invalid_argument(concat(in_quotes(json_text(value)), " is unknown"));
  return *parsed;
}

std::string nonempty(const Json& object, const char* key) {
  auto text = object.at(key).get<std::string>();
  if (text.empty()) throw std::invalid_argument(concat(key, " is empty"));
  return text;
}

DenyEntry parse_entry(const Json& object) {
  constexpr std::string_view known[] = {
      "driver",         "driver_id", "vendor_id", "device_ids", "device_name", "first_version",
      "last_version",   "path",      "input",     "m",          "n",           "k",
      "shapes_unknown", "reason",    "source",    "date"};
  for (const auto& item : object.items()) {
    if (std::ranges::find(known, item.key()) == std::end(known)) {
      throw std::invalid_argument(concat("unknown key ", in_quotes(item.key())));
    }
  }
  DenyEntry entry;
  entry.driver_id = static_cast<VkDriverId>(object.at("driver_id").get<std::uint32_t>());
  entry.vendor_id = object.at("vendor_id").get<std::uint32_t>();
  entry.device_ids = object.value("device_ids", std::vector<std::uint32_t>{});
  entry.device_name = object.value("device_name", "");
  const auto first = object.value("first_version", "");
  const auto last = object.value("last_version", "");
  if (!first.empty()) entry.first_version = parse_version(first, 0);
  if (!last.empty()) {
    entry.last_version = parse_version(last, std::numeric_limits<std::uint32_t>::max());
  }
  Denial& denial = entry.denial;
  denial.path = parse_name(object.at("path"), parse_path);
  if (const auto input = object.find("input"); input != object.end()) {
    denial.input = parse_name(*input, parse_data_type);
  }
  denial.m = object.value("m", 0u);
  denial.n = object.value("n", 0u);
  denial.k = object.value("k", 0u);
  denial.shapes_unknown = object.value("shapes_unknown", false);
  const std::string versions = first.empty() && last.empty() ? std::string("all versions")
                               : first.empty()               ? concat("up to ", last)
                               : last.empty()                ? concat("from ", first)
                               : first == last               ? first
                                                             : concat(first, " to ", last);
  denial.reason = concat("known bad driver (", nonempty(object, "driver"), ", ", versions,
                         "): ", nonempty(object, "reason"), "; ", nonempty(object, "source"), ", ",
                         nonempty(object, "date"));
  return entry;
}

}  // namespace

bool DenyEntry::matches(const DeviceCaps& caps) const {
  if (caps.driver_id != driver_id || caps.vendor_id != vendor_id) return false;
  if (!device_ids.empty() && std::ranges::find(device_ids, caps.device_id) == device_ids.end()) {
    return false;
  }
  if (caps.name.find(device_name) == std::string::npos) return false;
  const DriverVersion version = decode_driver_version(caps.driver_id, caps.driver_version);
  return (!first_version || version >= *first_version) &&
         (!last_version || version <= *last_version);
}

Result<std::vector<DenyEntry>> parse_deny_list(std::string_view text) {
  std::size_t index = 0;
  try {
    std::vector<DenyEntry> entries;
    const Json document = parse_json(text);
    for (const Json& object : document.at("entries")) {
      entries.push_back(parse_entry(object));
      ++index;
    }
    return entries;
  } catch (const std::exception& error) {
    return Error{Status::invalid_argument,
                 concat("deny-list, entries[", index, "]: ", excerpt(error.what()))};
  }
}

const std::vector<DenyEntry>& built_in_deny_list() {
  static const std::vector<DenyEntry> list = [] {
    auto parsed = parse_deny_list(embedded::text(embedded::deny_list()));
    assert(parsed && "the list that is built in must parse: deny_list_test says what is wrong");
    return parsed ? *std::move(parsed) : std::vector<DenyEntry>{};
  }();
  return list;
}

std::vector<Denial> denials_of(const std::vector<DenyEntry>& list, const DeviceCaps& caps) {
  std::vector<Denial> denials;
  for (const DenyEntry& entry : list) {
    if (entry.matches(caps)) denials.push_back(entry.denial);
  }
  return denials;
}

}  // namespace vkgemm
