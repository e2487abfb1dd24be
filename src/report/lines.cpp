#include "report/lines.hpp"

#include <cmath>

#include "base/text.hpp"

namespace vkgemm::report {
namespace {

using nlohmann::json;

// Thousands of times what all suites print together.
constexpr std::size_t kLongestText = std::size_t{64} << 20;
constexpr int kDeepestNesting = 4;
constexpr std::uint64_t kLargestSize = (std::uint64_t{1} << 40) - 1;

// A value as messages show it.
std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

json parse_object(std::string_view line) {
  const auto check = [](int depth, json::parse_event_t, const json&) {
    if (depth > kDeepestNesting) fail("nested too deeply");
    return true;
  };
  json document = json::parse(line, check);
  if (!document.is_object()) fail(std::string("is ") + document.type_name() + ", not an object");
  return document;
}

}  // namespace

void fail(const std::string& message) { throw RowError(message); }

void Fields::text(const char* key, std::string& value) const {
  const auto found = row_.find(key);
  if (found == row_.end()) return;
  if (!found->is_string()) fail(std::string(key) + " is " + shown(*found) + ", not a string");
  value = found->get<std::string>();
}

void Fields::needed_text(const char* key, std::string& value) const {
  text(key, value);
  if (value.empty()) fail(std::string(key) + " is missing");
}

void Fields::size(const char* key, std::uint64_t& value) const {
  const auto found = row_.find(key);
  if (found == row_.end()) fail(std::string(key) + " is missing");
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > kLargestSize) {
    fail(std::string(key) + " is " + shown(*found) + ", not a size");
  }
  value = found->get<std::uint64_t>();
}

void Fields::number(const char* key, double& value) const {
  const auto found = row_.find(key);
  if (found == row_.end()) return;
  const double number = found->is_number() ? found->get<double>() : std::nan("");
  if (!std::isfinite(number) || number < 0.0) {
    fail(std::string(key) + " is " + shown(*found) + ", not a finite number of at least 0");
  }
  value = number;
}

void Fields::flag(const char* key, bool& value) const {
  const auto found = row_.find(key);
  if (found == row_.end()) return;
  if (!found->is_boolean()) fail(std::string(key) + " is " + shown(*found) + ", not true or false");
  value = found->get<bool>();
}

Fields Fields::object(const char* key) const {
  const auto found = row_.find(key);
  if (found == row_.end()) fail(std::string(key) + " is missing");
  if (!found->is_object()) fail(std::string(key) + " is " + shown(*found) + ", not an object");
  return Fields(*found);
}

Result<void> for_each_line(std::string_view text, std::string_view source,
                           const std::function<void(const json&)>& row) {
  const auto error = [&](std::size_t line, const std::string& what) {
    return Error{Status::invalid_argument,
                 std::string(source) + ':' + std::to_string(line) + ": " + what};
  };
  if (text.size() > kLongestText) {
    return error(1, "the file has " + std::to_string(text.size()) + " bytes, at most " +
                        std::to_string(kLongestText) + " are read");
  }
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      row(parse_object(line));
    } catch (const RowError& wrong) {
      return error(number, wrong.what());
    } catch (const json::exception& wrong) {
      return error(number, "not JSON: " + excerpt(wrong.what()));
    }
  }
  return {};
}

}  // namespace vkgemm::report
