// path_support.hpp: which of the three paths a device can run, and what it lacks for the others.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <initializer_list>

#include "device/features.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// The features without which not even the fma path runs.
std::initializer_list<Feature> required_features() noexcept;

struct PathFacts {
  const Facilities& supported;  // by the device
  const Facilities& enabled;    // on it
  std::uint32_t api_version;
  VkShaderStageFlags matrix_stages;  // that may use cooperative matrices
};

// Sets fma, khr and nv, by the limits, denials and shapes that `caps` has already.
void find_paths(DeviceCaps& caps, const PathFacts& facts);

}  // namespace vkgemm
