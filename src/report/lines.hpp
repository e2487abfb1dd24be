// lines.hpp: JSON lines and their fields, read strictly. Internal to the report.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "vkgemm/result.hpp"

namespace vkgemm::report {

// Thrown and caught within for_each_line().
struct RowError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& message);

// The members of an object; errors name them.
class Fields {
 public:
  explicit Fields(const nlohmann::json& row) : row_(row) {}

  bool has(const char* key) const { return row_.contains(key); }
  // These leave the value alone if there is no such member …
  void text(const char* key, std::string& value) const;
  void number(const char* key, double& value) const;  // finite, at least 0
  void flag(const char* key, bool& value) const;
  // … these need it.
  void needed_text(const char* key, std::string& value) const;
  void size(const char* key, std::uint64_t& value) const;
  Fields object(const char* key) const;

 private:
  const nlohmann::json& row_;
};

// Calls `row` with the object of each line that isn't empty. Errors begin with source:line.
Result<void> for_each_line(std::string_view text, std::string_view source,
                           const std::function<void(const nlohmann::json&)>& row);

}  // namespace vkgemm::report
