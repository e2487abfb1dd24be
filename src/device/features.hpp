// features.hpp: the feature bits that vkgemm looks at, out of whichever structs they stand in.
#pragma once

#include <vulkan/vulkan_core.h>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace vkgemm {

enum class Feature : std::uint8_t {
  shader_int64,
  shader_int16,
  shader_int8,
  storage_buffer_16bit_access,
  storage_buffer_8bit_access,
  shader_float16,
  buffer_device_address,
  vulkan_memory_model,
  vulkan_memory_model_device_scope,
  subgroup_size_control,
  compute_full_subgroups,
  maintenance4,
  cooperative_matrix,
  bfloat16_type,
  bfloat16_cooperative_matrix,
  nv_workgroup_scope,
  nv_flexible_dimensions,
  nv_reductions,
  nv_conversions,
  nv_per_element_operations,
  nv_tensor_addressing,
  pipeline_executable_info,
  count,
};

class FeatureSet {
 public:
  bool has(Feature feature) const noexcept { return bits_[index(feature)]; }
  void add(Feature feature, bool value = true) noexcept {
    if (value) bits_.set(index(feature));
  }
  bool operator==(const FeatureSet&) const = default;

 private:
  static std::size_t index(Feature feature) noexcept { return static_cast<std::size_t>(feature); }
  std::bitset<static_cast<std::size_t>(Feature::count)> bits_;
};

// Vulkan's own name of the bit, for messages.
std::string_view to_string(Feature feature) noexcept;

// The extension that a bit belongs to, empty for core bits. Some drivers set bits of extensions
// they do not list, so a bit counts only together with its extension.
std::string_view extension_of(Feature feature) noexcept;

using ExtensionSet = std::set<std::string, std::less<>>;

// The extensions and features that a device supports, or that were enabled on one.
struct Facilities {
  ExtensionSet extensions;
  FeatureSet features;

  bool has(std::string_view extension) const { return extensions.contains(extension); }
  bool has(Feature feature) const {
    return features.has(feature) && (extension_of(feature).empty() || has(extension_of(feature)));
  }
};

// Reads a chain that starts with any structure, e.g. an application's VkPhysicalDeviceFeatures2.
// Each bit is found in VkPhysicalDeviceVulkan11/12/13Features or in the structure of the extension
// that it came from; structures that are not known are skipped.
FeatureSet read_features(const void* chain) noexcept;

// A chain of structures that hold every Feature; those of extensions are only in it if the
// extension is listed. Neither copyable nor movable: the structures point at each other.
class FeatureChain {
 public:
  explicit FeatureChain(const ExtensionSet& extensions) noexcept;
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;

  VkPhysicalDeviceFeatures2* head() noexcept { return &features2_; }
  const VkPhysicalDeviceFeatures2* head() const noexcept { return &features2_; }

  // Sets the bits of `features`, and no others, in the structures that are linked.
  void write(const FeatureSet& features) noexcept;

 private:
  VkPhysicalDeviceFeatures2 features2_{};
  VkPhysicalDeviceVulkan11Features vulkan11_{};
  VkPhysicalDeviceVulkan12Features vulkan12_{};
  VkPhysicalDeviceVulkan13Features vulkan13_{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative_matrix_{};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16_{};
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV cooperative_matrix2_{};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR pipeline_executable_{};
};

}  // namespace vkgemm
