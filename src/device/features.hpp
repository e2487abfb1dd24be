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
#include <tuple>

namespace vkgemm {

// Each Feature with Vulkan's own name of the bit, and the extension that it belongs to: none for
// core bits.
#define VKGEMM_FEATURES(X)                                                                         \
  X(shader_int64, shaderInt64, "")                                                                 \
  X(shader_int16, shaderInt16, "")                                                                 \
  X(shader_int8, shaderInt8, "")                                                                   \
  X(storage_buffer_16bit_access, storageBuffer16BitAccess, "")                                     \
  X(storage_buffer_8bit_access, storageBuffer8BitAccess, "")                                       \
  X(shader_float16, shaderFloat16, "")                                                             \
  X(buffer_device_address, bufferDeviceAddress, "")                                                \
  X(vulkan_memory_model, vulkanMemoryModel, "")                                                    \
  X(vulkan_memory_model_device_scope, vulkanMemoryModelDeviceScope, "")                            \
  X(subgroup_size_control, subgroupSizeControl, "")                                                \
  X(compute_full_subgroups, computeFullSubgroups, "")                                              \
  X(maintenance4, maintenance4, "")                                                                \
  X(shader_integer_dot_product, shaderIntegerDotProduct, "")                                       \
  X(cooperative_matrix, cooperativeMatrix, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)               \
  X(bfloat16_type, shaderBFloat16Type, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME)                      \
  X(bfloat16_cooperative_matrix, shaderBFloat16CooperativeMatrix,                                  \
    VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME)                                                         \
  X(float8_type, shaderFloat8, VK_EXT_SHADER_FLOAT8_EXTENSION_NAME)                                \
  X(float8_cooperative_matrix, shaderFloat8CooperativeMatrix, VK_EXT_SHADER_FLOAT8_EXTENSION_NAME) \
  X(nv_workgroup_scope, cooperativeMatrixWorkgroupScope,                                           \
    VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)                                                     \
  X(nv_flexible_dimensions, cooperativeMatrixFlexibleDimensions,                                   \
    VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)                                                     \
  X(nv_reductions, cooperativeMatrixReductions, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)         \
  X(nv_conversions, cooperativeMatrixConversions, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)       \
  X(nv_per_element_operations, cooperativeMatrixPerElementOperations,                              \
    VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)                                                     \
  X(nv_tensor_addressing, cooperativeMatrixTensorAddressing,                                       \
    VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)                                                     \
  X(pipeline_executable_info, pipelineExecutableInfo,                                              \
    VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)

enum class Feature : std::uint8_t {
#define VKGEMM_ENUMERATOR(feature, member, extension) feature,
  VKGEMM_FEATURES(VKGEMM_ENUMERATOR)
#undef VKGEMM_ENUMERATOR
      count,
};

class FeatureSet {
 public:
  bool has(Feature feature) const noexcept { return bits_[index(feature)]; }
  void add(Feature feature, bool value = true) noexcept {
    if (value) bits_.set(index(feature));
  }
  void remove(Feature feature) noexcept { bits_.reset(index(feature)); }
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
  VkPhysicalDeviceShaderFloat8FeaturesEXT float8_{};
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV cooperative_matrix2_{};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR pipeline_executable_{};
};

// Structures to append to a chain of the application. Vulkan forbids Vulkan1xFeatures together with
// a structure that it took over. So these are the latter, which a chain without the bit may have.
class FeatureAdditions {
 public:
  FeatureAdditions() noexcept;
  FeatureAdditions(const FeatureAdditions&) = delete;
  FeatureAdditions& operator=(const FeatureAdditions&) = delete;

  // Sets the bits of `features` in the structures of the chain; appends those that it lacks. What
  // was appended before is no longer of any use.
  void merge_into(VkPhysicalDeviceFeatures2& chain, const FeatureSet& features) noexcept;

 private:
  std::tuple<VkPhysicalDevice16BitStorageFeatures, VkPhysicalDevice8BitStorageFeatures,
             VkPhysicalDeviceShaderFloat16Int8Features, VkPhysicalDeviceBufferDeviceAddressFeatures,
             VkPhysicalDeviceVulkanMemoryModelFeatures, VkPhysicalDeviceSubgroupSizeControlFeatures,
             VkPhysicalDeviceMaintenance4Features, VkPhysicalDeviceShaderIntegerDotProductFeatures,
             VkPhysicalDeviceCooperativeMatrixFeaturesKHR,
             VkPhysicalDeviceShaderBfloat16FeaturesKHR, VkPhysicalDeviceShaderFloat8FeaturesEXT,
             VkPhysicalDeviceCooperativeMatrix2FeaturesNV,
             VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>
      structures_;
};

}  // namespace vkgemm
