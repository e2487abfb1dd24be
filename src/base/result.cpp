#include "vkgemm/result.hpp"

#include <array>

#include "base/enum_names.hpp"

namespace vkgemm {

std::string_view to_string(Status status) noexcept {
  static constexpr auto names = std::to_array<std::string_view>(
      {"invalid_argument", "unsupported", "misaligned", "span_too_small", "overlapping_operands",
       "workspace_too_small", "wrong_fingerprint", "wrong_context", "missing_feature", "io_error",
       "out_of_host_memory", "out_of_device_memory", "device_lost", "driver_error"});
  return name_of(names, status);
}

}  // namespace vkgemm
