#include "device/features.hpp"

#include <type_traits>

namespace vkgemm {

namespace {

// Structures that hold a Feature. Those after Vulkan13Features may stand in its place, and in that
// of the two before it.
#define VKGEMM_FEATURE_STRUCTURES(X)                                                      \
  X(VkPhysicalDeviceFeatures2, FEATURES_2)                                                \
  X(VkPhysicalDeviceVulkan11Features, VULKAN_1_1_FEATURES)                                \
  X(VkPhysicalDeviceVulkan12Features, VULKAN_1_2_FEATURES)                                \
  X(VkPhysicalDeviceVulkan13Features, VULKAN_1_3_FEATURES)                                \
  X(VkPhysicalDevice16BitStorageFeatures, 16BIT_STORAGE_FEATURES)                         \
  X(VkPhysicalDevice8BitStorageFeatures, 8BIT_STORAGE_FEATURES)                           \
  X(VkPhysicalDeviceShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES)              \
  X(VkPhysicalDeviceBufferDeviceAddressFeatures, BUFFER_DEVICE_ADDRESS_FEATURES)          \
  X(VkPhysicalDeviceVulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES)              \
  X(VkPhysicalDeviceSubgroupSizeControlFeatures, SUBGROUP_SIZE_CONTROL_FEATURES)          \
  X(VkPhysicalDeviceMaintenance4Features, MAINTENANCE_4_FEATURES)                         \
  X(VkPhysicalDeviceShaderIntegerDotProductFeatures, SHADER_INTEGER_DOT_PRODUCT_FEATURES) \
  X(VkPhysicalDeviceCooperativeMatrixFeaturesKHR, COOPERATIVE_MATRIX_FEATURES_KHR)        \
  X(VkPhysicalDeviceShaderBfloat16FeaturesKHR, SHADER_BFLOAT16_FEATURES_KHR)              \
  X(VkPhysicalDeviceShaderFloat8FeaturesEXT, SHADER_FLOAT8_FEATURES_EXT)                  \
  X(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, COOPERATIVE_MATRIX_2_FEATURES_NV)       \
  X(VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR,                              \
    PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR)

template <class Structure>
constexpr VkStructureType type_of{};
#define VKGEMM_TYPE_OF(Structure, TYPE) \
  template <>                           \
  constexpr VkStructureType type_of<Structure> = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE;
VKGEMM_FEATURE_STRUCTURES(VKGEMM_TYPE_OF)
#undef VKGEMM_TYPE_OF

// Calls visit(Feature, VkBool32&) for each bit of a structure, which may be const.
template <class Structure, class Visit>
void visit_bits(Structure& s, Visit&& visit) {
  if constexpr (requires { s.features; }) {
    visit_bits(s.features, visit);
  } else {
#define VKGEMM_VISIT(feature, member, extension) \
  if constexpr (requires { s.member; }) visit(Feature::feature, s.member);
    VKGEMM_FEATURES(VKGEMM_VISIT)
#undef VKGEMM_VISIT
  }
}

// The same for a structure of any type. `Base`: VkBaseInStructure, const, or VkBaseOutStructure.
template <class Base, class Visit>
void visit_any(Base& s, Visit&& visit) {
  switch (s.sType) {
#define VKGEMM_CASE(Structure, TYPE)                                                   \
  case type_of<Structure>: {                                                           \
    using Own = std::conditional_t<std::is_const_v<Base>, const Structure, Structure>; \
    visit_bits(reinterpret_cast<Own&>(s), visit);                                      \
    break;                                                                             \
  }
    VKGEMM_FEATURE_STRUCTURES(VKGEMM_CASE)
#undef VKGEMM_CASE
    default:
      break;
  }
}

}  // namespace

std::string_view to_string(Feature feature) noexcept {
  constexpr std::string_view names[] = {
#define VKGEMM_NAME(feature, member, extension) #member,
      VKGEMM_FEATURES(VKGEMM_NAME)
#undef VKGEMM_NAME
  };
  return names[static_cast<std::size_t>(feature)];
}

std::string_view extension_of(Feature feature) noexcept {
  constexpr std::string_view extensions[] = {
#define VKGEMM_EXTENSION(feature, member, extension) extension,
      VKGEMM_FEATURES(VKGEMM_EXTENSION)
#undef VKGEMM_EXTENSION
  };
  return extensions[static_cast<std::size_t>(feature)];
}

FeatureSet read_features(const void* chain) noexcept {
  FeatureSet found;
  for (const auto* s = static_cast<const VkBaseInStructure*>(chain); s != nullptr; s = s->pNext) {
    visit_any(*s, [&](Feature feature, VkBool32 bit) { found.add(feature, bit == VK_TRUE); });
  }
  return found;
}

FeatureChain::FeatureChain(const ExtensionSet& extensions) noexcept {
  features2_.sType = type_of<VkPhysicalDeviceFeatures2>;
  void** end = &features2_.pNext;
  const auto link = [&]<class Structure>(Structure& structure, std::string_view extension = {}) {
    if (!extension.empty() && !extensions.contains(extension)) return;
    structure.sType = type_of<Structure>;
    *end = &structure;
    end = &structure.pNext;
  };
  link(vulkan11_);
  link(vulkan12_);
  link(vulkan13_);
  link(cooperative_matrix_, extension_of(Feature::cooperative_matrix));
  link(bfloat16_, extension_of(Feature::bfloat16_type));
  link(float8_, extension_of(Feature::float8_type));
  link(cooperative_matrix2_, extension_of(Feature::nv_workgroup_scope));
  link(pipeline_executable_, extension_of(Feature::pipeline_executable_info));
}

void FeatureChain::write(const FeatureSet& features) noexcept {
  for (auto* s = reinterpret_cast<VkBaseOutStructure*>(head()); s != nullptr; s = s->pNext) {
    visit_any(*s, [&](Feature feature, VkBool32& bit) { bit = features.has(feature); });
  }
}

FeatureAdditions::FeatureAdditions() noexcept {
  const auto set_type = []<class Structure>(Structure& s) { s.sType = type_of<Structure>; };
  std::apply([&](auto&... structures) { (set_type(structures), ...); }, structures_);
}

void FeatureAdditions::merge_into(VkPhysicalDeviceFeatures2& chain,
                                  const FeatureSet& features) noexcept {
  FeatureSet missing = features;
  auto* last = reinterpret_cast<VkBaseOutStructure*>(&chain);
  for (VkBaseOutStructure* s = last; s != nullptr; s = s->pNext) {
    visit_any(*s, [&](Feature feature, VkBool32& bit) {
      if (features.has(feature)) bit = VK_TRUE;
      missing.remove(feature);
    });
    last = s;
  }
  const auto append = [&](auto& structure) {
    bool is_missing = false;  // else it may be in the chain already
    visit_bits(structure, [&](Feature f, VkBool32&) { is_missing = is_missing || missing.has(f); });
    if (!is_missing) return;
    visit_bits(structure, [&](Feature f, VkBool32& bit) { bit = missing.has(f); });
    structure.pNext = nullptr;
    last->pNext = reinterpret_cast<VkBaseOutStructure*>(&structure);
    last = last->pNext;
  };
  std::apply([&](auto&... structures) { (append(structures), ...); }, structures_);
}

}  // namespace vkgemm
