// caps.hpp: what others ask capabilities in passing.
#pragma once

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

}  // namespace vkgemm
