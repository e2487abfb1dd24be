// caps_query.hpp: asks a physical device, once, for everything that decisions are made from.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device/features.hpp"
#include "device/vk.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// The extensions and features that the driver lists and supports. Structures of extensions it does
// not list are not queried.
Result<Facilities> query_supported(const InstanceFunctions& functions,
                                   VkPhysicalDevice physical_device);

// `enabled` is what the device was, or will be, created with; only what is supported as well
// counts. A missing feature is no error: it stands in PathSupport::reason. A call that fails is
// one. It does not ask a driver for its shapes if the list of known drivers says so.
Result<DeviceCaps> query_caps(const InstanceFunctions& functions, VkPhysicalDevice physical_device,
                              const Facilities& supported, const Facilities& enabled,
                              bool use_deny_list = true);

std::vector<VkQueueFamilyProperties> queue_families(const InstanceFunctions& functions,
                                                    VkPhysicalDevice physical_device);

// Nanoseconds of a tick of timestamps.
double ns_per_tick(const InstanceFunctions& functions, VkPhysicalDevice physical_device);

// The queue families that compute.
std::vector<std::uint32_t> compute_families(const InstanceFunctions& functions,
                                            VkPhysicalDevice physical_device);

}  // namespace vkgemm
