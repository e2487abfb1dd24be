// devices.hpp: the physical devices, and which of them is meant. Internal to the runner.
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

struct FoundDevice {
  std::uint32_t index = 0;
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::string name;
  std::optional<Requirements> requirements;
  std::string reason;

  // Lower is better: kind of device, then the most capable path.
  std::pair<int, int> rank() const noexcept;
};

Result<std::vector<FoundDevice>> find_devices(const Instance& instance);

// `wanted` as RunnerOptions::device has it. Points into `devices`.
Result<FoundDevice*> choose_device(std::vector<FoundDevice>& devices, const std::string& wanted);

}  // namespace vkgemm::headless
