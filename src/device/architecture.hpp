// architecture.hpp: the one place, besides the tuning tables, that knows vendors and products.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "vkgemm/device.hpp"

namespace vkgemm {

// Key of the tuning table for a PCI vendor and device id: "nvidia_sm90", "amd_rdna3", …; "cpu" for
// a driver that computes on the CPU, whatever its ids; "generic" if not recognised. The sources of
// the id ranges are cited in the .cpp.
std::string_view recognise_architecture(VkPhysicalDeviceType type, std::uint32_t vendor_id,
                                        std::uint32_t device_id) noexcept;

// Hints that tell architectures of a vendor apart if the id does not.
struct ArchitectureHints {
  std::uint32_t warps_per_compute_unit = 0;  // VK_NV_shader_sm_builtins; 0: unknown
  std::uint32_t min_subgroup_size = 0;
  std::span<const FragmentShape> fragment_shapes;
};

// For a device that recognise_architecture() calls "generic": the architecture with a table that
// its properties are most like, "generic" if they tell too little.
std::string_view nearest_architecture(std::uint32_t vendor_id, std::uint32_t device_id,
                                      const ArchitectureHints& hints) noexcept;

// True if workgroups that have started are known to keep running while others wait for them. Vulkan
// does not promise it; the sources are cited in the .cpp.
bool workgroups_make_progress(VkDriverId driver) noexcept;

// VkPhysicalDeviceProperties::driverVersion as the driver's own tools print it: each vendor packs
// its parts in its own way. Unused parts are 0; they compare as arrays do.
using DriverVersion = std::array<std::uint32_t, 4>;
DriverVersion decode_driver_version(VkDriverId driver, std::uint32_t version) noexcept;

}  // namespace vkgemm
