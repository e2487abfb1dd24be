// tune_fault.hpp: what tests make a tuner meet.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "vkgemm/config.hpp"

namespace vkgemm::tool {

// True if VKGEMM_TUNE_FAULT is "<kind> <configuration>". Never, unless built for tests.
inline bool has_fault([[maybe_unused]] std::string_view kind,
                      [[maybe_unused]] const Config& config) {
#ifdef VKGEMM_SELF_TEST_FAULTS
  const char* const fault = std::getenv("VKGEMM_TUNE_FAULT");
  return fault != nullptr && fault == std::string(kind) + ' ' + to_string(config);
#else
  return false;
#endif
}

}  // namespace vkgemm::tool
