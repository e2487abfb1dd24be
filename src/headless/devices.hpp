// devices.hpp: the physical devices, and which of them is meant.
#pragma once

#include <volk.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headless/instance.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm::headless {

struct DeviceListing {
  std::uint32_t index = 0;
  std::string name;
  std::optional<DeviceCaps> caps;  // nothing if even fma cannot run
  std::string reason;              // why not
};

// All physical devices the loader shows. Empty with a reason in *error if there is no loader.
std::vector<DeviceListing> list_devices(std::string* error = nullptr);

// A device while its instance lives.
struct FoundDevice : DeviceListing {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::optional<Requirements> requirements;

  // Lower is better: kind of device, then the most capable path.
  std::pair<int, int> rank() const noexcept;
};

Result<std::vector<FoundDevice>> find_devices(const Instance& instance);

// `wanted` as RunnerOptions::device has it. Points into `devices`.
Result<FoundDevice*> choose_device(std::vector<FoundDevice>& devices, const std::string& wanted);

}  // namespace vkgemm::headless
