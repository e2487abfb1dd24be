// architecture.hpp: the one place, besides the tuning tables, that knows vendors and products.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <string_view>

namespace vkgemm {

// Key of the tuning table for a PCI vendor and device id: "nvidia_sm90", "amd_rdna3", …;
// "generic" if not recognised. The sources of the id ranges are cited in the .cpp.
std::string_view recognise_architecture(std::uint32_t vendor_id, std::uint32_t device_id) noexcept;

// Whether workgroups that have started are known to keep running while others wait for them. Vulkan
// does not promise it; the sources are cited in the .cpp.
bool workgroups_make_progress(VkDriverId driver) noexcept;

}  // namespace vkgemm
