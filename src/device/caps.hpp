// caps.hpp: what others ask capabilities in passing.
#pragma once

#include <cstdint>
#include <string>

#include "base/text.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// True if the driver computes on the CPU.
inline bool is_cpu(const DeviceCaps& caps) { return caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU; }

// "NVIDIA 580.159.04"
inline std::string driver_text(const DeviceCaps& caps) {
  if (caps.driver_info.empty()) return caps.driver_name;
  return concat(caps.driver_name, ' ', caps.driver_info);
}

// The size of a buffer whose writing empties the caches: larger than any L2 cache.
inline std::uint64_t flush_bytes(const DeviceCaps& caps) noexcept {
  return is_cpu(caps) ? 1 << 20 : 256 << 20;
}

}  // namespace vkgemm
