// fault.hpp: what tests make the tool meet. Other builds meet nothing.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "base/environment.hpp"

namespace vkgemm::tool {

// Variables of the environment.
inline constexpr const char* self_test_fault = "VKGEMM_SELF_TEST_FAULT";
inline constexpr const char* tune_fault = "VKGEMM_TUNE_FAULT";

// True if the variable is "<kind>:<place>", or "<kind> <place>".
inline bool has_fault([[maybe_unused]] const char* variable, [[maybe_unused]] std::string_view kind,
                      [[maybe_unused]] std::string_view place) {
#ifdef VKGEMM_SELF_TEST_FAULTS
  const std::string fault = environment_variable(variable);
  return fault.size() == kind.size() + 1 + place.size() && fault.starts_with(kind) &&
         fault.ends_with(place);
#else
  return false;
#endif
}

// As a driver might.
inline void crash_or_hang(const char* variable, std::string_view place) {
  if (has_fault(variable, "crash", place)) std::abort();
  while (has_fault(variable, "hang", place)) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace vkgemm::tool
