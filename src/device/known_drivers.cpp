#include "device/known_drivers.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>
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

// Keys of each entry that are not those of `drivers`.
void check_keys(const Json& object, std::span<const std::string_view> own) {
  constexpr std::string_view common[] = {"driver",       "driver_id",   "vendor_id",
                                         "device_ids",   "device_name", "first_version",
                                         "last_version", "source",      "date"};
  for (const auto& item : object.items()) {
    if (std::ranges::find(common, item.key()) == std::end(common) &&
        std::ranges::find(own, item.key()) == own.end()) {
      throw std::invalid_argument(concat("unknown key ", in_quotes(item.key())));
    }
  }
}

DriverRange parse_drivers(const Json& object) {
  DriverRange out;
  out.driver_id = static_cast<VkDriverId>(object.at("driver_id").get<std::uint32_t>());
  out.vendor_id = object.at("vendor_id").get<std::uint32_t>();
  out.device_ids = object.value("device_ids", std::vector<std::uint32_t>{});
  out.device_name = object.value("device_name", "");
  const auto first = object.value("first_version", "");
  const auto last = object.value("last_version", "");
  if (!first.empty()) out.first_version = parse_version(first, 0);
  if (!last.empty()) {
    out.last_version = parse_version(last, std::numeric_limits<std::uint32_t>::max());
  }
  return out;
}

// "NVIDIA proprietary, 580.159.4".
std::string drivers_text(const Json& object) {
  const auto first = object.value("first_version", "");
  const auto last = object.value("last_version", "");
  const std::string versions = first.empty() && last.empty() ? std::string("all versions")
                               : first.empty()               ? concat("up to ", last)
                               : last.empty()                ? concat("from ", first)
                               : first == last               ? first
                                                             : concat(first, " to ", last);
  return concat(nonempty(object, "driver"), ", ", versions);
}

// "https://…, 2026-05-06".
std::string source_text(const Json& object) {
  return concat(nonempty(object, "source"), ", ", nonempty(object, "date"));
}

DeniedDriver parse_denied(const Json& object) {
  constexpr std::string_view own[] = {"path", "input", "m", "n", "k", "shapes_unknown", "reason"};
  check_keys(object, own);
  DeniedDriver out{.drivers = parse_drivers(object)};
  Denial& denial = out.denial;
  denial.path = parse_name(object.at("path"), parse_path);
  if (const auto input = object.find("input"); input != object.end()) {
    denial.input = parse_name(*input, parse_data_type);
  }
  denial.m = object.value("m", 0u);
  denial.n = object.value("n", 0u);
  denial.k = object.value("k", 0u);
  denial.shapes_unknown = object.value("shapes_unknown", false);
  denial.reason = concat("known bad driver (", drivers_text(object),
                         "): ", nonempty(object, "reason"), "; ", source_text(object));
  return out;
}

TrustedDriver parse_trusted(const Json& object) {
  constexpr std::string_view own[] = {"architecture", "kinds"};
  check_keys(object, own);
  return {.drivers = parse_drivers(object),
          .architecture = nonempty(object, "architecture"),
          .kinds = object.at("kinds").get<std::vector<std::string>>(),
          .reason = concat("known good driver (", drivers_text(object), "): passed in every run; ",
                           source_text(object))};
}

// Each object of an array. Errors name the key and the index.
template <class Entry>
std::vector<Entry> parse_all(const Json& document, const char* key, Entry (*parse)(const Json&)) {
  std::vector<Entry> entries;
  for (const Json& object : document.at(key)) {
    try {
      entries.push_back(parse(object));
    } catch (const std::exception& error) {
      throw std::invalid_argument(concat(key, "[", entries.size(), "]: ", error.what()));
    }
  }
  return entries;
}

}  // namespace

bool DriverRange::matches(const DeviceCaps& caps) const {
  if (caps.driver_id != driver_id || caps.vendor_id != vendor_id) return false;
  if (!device_ids.empty() && std::ranges::find(device_ids, caps.device_id) == device_ids.end()) {
    return false;
  }
  if (caps.name.find(device_name) == std::string::npos) return false;
  const DriverVersion version = decode_driver_version(caps.driver_id, caps.driver_version);
  return (!first_version || version >= *first_version) &&
         (!last_version || version <= *last_version);
}

Result<KnownDrivers> parse_known_drivers(std::string_view text) {
  try {
    const Json document = parse_json(text);
    return KnownDrivers{.denied = parse_all(document, "denied", parse_denied),
                        .trusted = parse_all(document, "trusted", parse_trusted)};
  } catch (const std::exception& error) {
    return Error{Status::invalid_argument, concat("known drivers, ", excerpt(error.what()))};
  }
}

const KnownDrivers& known_drivers() {
  static const KnownDrivers list = [] {
    auto parsed = parse_known_drivers(embedded::text(embedded::known_drivers()));
    assert(parsed && "the list that is built in must parse: known_drivers_test says what is wrong");
    return parsed ? *std::move(parsed) : KnownDrivers{};
  }();
  return list;
}

std::vector<Denial> denials_of(const KnownDrivers& list, const DeviceCaps& caps) {
  std::vector<Denial> denials;
  for (const DeniedDriver& entry : list.denied) {
    if (entry.drivers.matches(caps)) denials.push_back(entry.denial);
  }
  return denials;
}

}  // namespace vkgemm
