#include "device/features.hpp"

#include <array>
#include <utility>

namespace vkgemm {

namespace {

struct Description {
  std::string_view name;
  std::string_view extension;
};

constexpr std::string_view khr_matrix = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
constexpr std::string_view nv_matrix = VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME;
constexpr std::string_view bfloat16 = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
constexpr std::string_view executable = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;

// In the order of enum Feature.
constexpr std::array<Description, static_cast<std::size_t>(Feature::count)> descriptions{{
    {"shaderInt64", ""},
    {"shaderInt16", ""},
    {"shaderInt8", ""},
    {"storageBuffer16BitAccess", ""},
    {"storageBuffer8BitAccess", ""},
    {"shaderFloat16", ""},
    {"bufferDeviceAddress", ""},
    {"vulkanMemoryModel", ""},
    {"vulkanMemoryModelDeviceScope", ""},
    {"subgroupSizeControl", ""},
    {"computeFullSubgroups", ""},
    {"maintenance4", ""},
    {"cooperativeMatrix", khr_matrix},
    {"shaderBFloat16Type", bfloat16},
    {"shaderBFloat16CooperativeMatrix", bfloat16},
    {"cooperativeMatrixWorkgroupScope", nv_matrix},
    {"cooperativeMatrixFlexibleDimensions", nv_matrix},
    {"cooperativeMatrixReductions", nv_matrix},
    {"cooperativeMatrixConversions", nv_matrix},
    {"cooperativeMatrixPerElementOperations", nv_matrix},
    {"cooperativeMatrixTensorAddressing", nv_matrix},
    {"pipelineExecutableInfo", executable},
}};

// The one list of which member of which structure is which Feature. `Structure` may be const;
// `visit` is called with (Feature, VkBool32&).
template <class Structure, class Visit>
void visit_vulkan11(Structure& s, Visit&& visit) {
  visit(Feature::storage_buffer_16bit_access, s.storageBuffer16BitAccess);
}

template <class Structure, class Visit>
void visit_vulkan12(Structure& s, Visit&& visit) {
  visit(Feature::storage_buffer_8bit_access, s.storageBuffer8BitAccess);
  visit(Feature::shader_int8, s.shaderInt8);
  visit(Feature::shader_float16, s.shaderFloat16);
  visit(Feature::buffer_device_address, s.bufferDeviceAddress);
  visit(Feature::vulkan_memory_model, s.vulkanMemoryModel);
  visit(Feature::vulkan_memory_model_device_scope, s.vulkanMemoryModelDeviceScope);
}

template <class Structure, class Visit>
void visit_vulkan13(Structure& s, Visit&& visit) {
  visit(Feature::subgroup_size_control, s.subgroupSizeControl);
  visit(Feature::compute_full_subgroups, s.computeFullSubgroups);
  visit(Feature::maintenance4, s.maintenance4);
}

template <class Structure, class Visit>
void visit_cooperative_matrix(Structure& s, Visit&& visit) {
  visit(Feature::cooperative_matrix, s.cooperativeMatrix);
}

template <class Structure, class Visit>
void visit_bfloat16(Structure& s, Visit&& visit) {
  visit(Feature::bfloat16_type, s.shaderBFloat16Type);
  visit(Feature::bfloat16_cooperative_matrix, s.shaderBFloat16CooperativeMatrix);
}

template <class Structure, class Visit>
void visit_cooperative_matrix2(Structure& s, Visit&& visit) {
  visit(Feature::nv_workgroup_scope, s.cooperativeMatrixWorkgroupScope);
  visit(Feature::nv_flexible_dimensions, s.cooperativeMatrixFlexibleDimensions);
  visit(Feature::nv_reductions, s.cooperativeMatrixReductions);
  visit(Feature::nv_conversions, s.cooperativeMatrixConversions);
  visit(Feature::nv_per_element_operations, s.cooperativeMatrixPerElementOperations);
  visit(Feature::nv_tensor_addressing, s.cooperativeMatrixTensorAddressing);
}

template <class Structure, class Visit>
void visit_pipeline_executable(Structure& s, Visit&& visit) {
  visit(Feature::pipeline_executable_info, s.pipelineExecutableInfo);
}

template <class Structure>
const Structure& as(const VkBaseInStructure* structure) noexcept {
  return *reinterpret_cast<const Structure*>(structure);
}

}  // namespace

std::string_view to_string(Feature feature) noexcept {
  return descriptions[static_cast<std::size_t>(feature)].name;
}

std::string_view extension_of(Feature feature) noexcept {
  return descriptions[static_cast<std::size_t>(feature)].extension;
}

FeatureSet read_features(const void* chain) noexcept {
  FeatureSet found;
  const auto add = [&](Feature feature, VkBool32 value) { found.add(feature, value == VK_TRUE); };
  for (const auto* s = static_cast<const VkBaseInStructure*>(chain); s != nullptr; s = s->pNext) {
    switch (s->sType) {
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
        add(Feature::shader_int64, as<VkPhysicalDeviceFeatures2>(s).features.shaderInt64);
        add(Feature::shader_int16, as<VkPhysicalDeviceFeatures2>(s).features.shaderInt16);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
        visit_vulkan11(as<VkPhysicalDeviceVulkan11Features>(s), add);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
        visit_vulkan12(as<VkPhysicalDeviceVulkan12Features>(s), add);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES:
        visit_vulkan13(as<VkPhysicalDeviceVulkan13Features>(s), add);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR:
        visit_cooperative_matrix(as<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(s), add);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR:
        visit_bfloat16(as<VkPhysicalDeviceShaderBfloat16FeaturesKHR>(s), add);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV:
        visit_cooperative_matrix2(as<VkPhysicalDeviceCooperativeMatrix2FeaturesNV>(s), add);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR:
        visit_pipeline_executable(as<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(s),
                                  add);
        break;
      // The structures that an application may use instead of the Vulkan1xFeatures.
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES:
        visit_vulkan11(as<VkPhysicalDevice16BitStorageFeatures>(s), add);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES:
        add(Feature::shader_float16,
            as<VkPhysicalDeviceShaderFloat16Int8Features>(s).shaderFloat16);
        add(Feature::shader_int8, as<VkPhysicalDeviceShaderFloat16Int8Features>(s).shaderInt8);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES:
        add(Feature::storage_buffer_8bit_access,
            as<VkPhysicalDevice8BitStorageFeatures>(s).storageBuffer8BitAccess);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
        add(Feature::buffer_device_address,
            as<VkPhysicalDeviceBufferDeviceAddressFeatures>(s).bufferDeviceAddress);
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES: {
        const auto& model = as<VkPhysicalDeviceVulkanMemoryModelFeatures>(s);
        add(Feature::vulkan_memory_model, model.vulkanMemoryModel);
        add(Feature::vulkan_memory_model_device_scope, model.vulkanMemoryModelDeviceScope);
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES: {
        const auto& control = as<VkPhysicalDeviceSubgroupSizeControlFeatures>(s);
        add(Feature::subgroup_size_control, control.subgroupSizeControl);
        add(Feature::compute_full_subgroups, control.computeFullSubgroups);
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES:
        add(Feature::maintenance4, as<VkPhysicalDeviceMaintenance4Features>(s).maintenance4);
        break;
      default:
        break;
    }
  }
  return found;
}

FeatureChain::FeatureChain(const ExtensionSet& extensions) noexcept {
  void** end = &features2_.pNext;
  const auto link = [&](auto& structure, VkStructureType type) {
    structure.sType = type;
    *end = &structure;
    end = &structure.pNext;
  };
  features2_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  link(vulkan11_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  link(vulkan12_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  link(vulkan13_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  if (extensions.contains(khr_matrix)) {
    link(cooperative_matrix_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  }
  if (extensions.contains(bfloat16)) {
    link(bfloat16_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR);
  }
  if (extensions.contains(nv_matrix)) {
    link(cooperative_matrix2_, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV);
  }
  if (extensions.contains(executable)) {
    link(pipeline_executable_,
         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
  }
}

void FeatureChain::write(const FeatureSet& features) noexcept {
  const auto set = [&](Feature feature, VkBool32& bit) {
    bit = features.has(feature) ? VK_TRUE : VK_FALSE;
  };
  set(Feature::shader_int64, features2_.features.shaderInt64);
  set(Feature::shader_int16, features2_.features.shaderInt16);
  visit_vulkan11(vulkan11_, set);
  visit_vulkan12(vulkan12_, set);
  visit_vulkan13(vulkan13_, set);
  visit_cooperative_matrix(cooperative_matrix_, set);
  visit_bfloat16(bfloat16_, set);
  visit_cooperative_matrix2(cooperative_matrix2_, set);
  visit_pipeline_executable(pipeline_executable_, set);
}

}  // namespace vkgemm
