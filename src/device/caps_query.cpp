#include "device/caps_query.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "base/text.hpp"
#include "device/architecture.hpp"
#include "device/caps.hpp"
#include "device/known_drivers.hpp"
#include "device/path_support.hpp"
#include "problem/data_type.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm {

namespace {

struct Properties {
  VkPhysicalDeviceProperties2 core{};
  VkPhysicalDeviceVulkan11Properties vulkan11{};
  VkPhysicalDeviceVulkan12Properties vulkan12{};
  VkPhysicalDeviceVulkan13Properties vulkan13{};
  VkPhysicalDeviceCooperativeMatrixPropertiesKHR cooperative_matrix{};
  VkPhysicalDeviceCooperativeMatrix2PropertiesNV cooperative_matrix2{};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV sm_builtins{};
  VkPhysicalDeviceShaderCorePropertiesAMD shader_core{};
  VkPhysicalDeviceShaderCoreProperties2AMD shader_core2{};
};

// Filled in place: the chain points into the structure. Properties may be asked for without
// enabling their extension; it only has to be listed.
void query_properties(const InstanceFunctions& functions, VkPhysicalDevice physical_device,
                      const Facilities& supported, Properties& properties) {
  properties.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  void** end = &properties.core.pNext;
  const auto link = [&](auto& structure, VkStructureType type) {
    structure.sType = type;
    *end = &structure;
    end = &structure.pNext;
  };
  link(properties.vulkan11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  link(properties.vulkan12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  link(properties.vulkan13, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
  if (supported.has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) {
    link(properties.cooperative_matrix,
         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
  }
  if (supported.has(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)) {
    link(properties.cooperative_matrix2,
         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV);
  }
  if (supported.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
    link(properties.sm_builtins,
         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  }
  if (supported.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) {
    link(properties.shader_core, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  }
  if (supported.has(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME)) {
    link(properties.shader_core2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD);
  }
  functions.vkGetPhysicalDeviceProperties2(physical_device, &properties.core);
}

// Not every structure is filled on every device: those that were not linked are zero.
std::uint32_t compute_units(const Properties& properties) noexcept {
  if (properties.sm_builtins.shaderSMCount != 0) return properties.sm_builtins.shaderSMCount;
  if (properties.shader_core2.activeComputeUnitCount != 0) {
    return properties.shader_core2.activeComputeUnitCount;
  }
  const auto& core = properties.shader_core;
  return core.shaderEngineCount * core.shaderArraysPerEngineCount * core.computeUnitsPerShaderArray;
}

std::optional<DataType> data_type(VkComponentTypeKHR type) noexcept {
  for (const DataTypeRow& row : data_types) {
    if (row.component == type) return row.type;
  }
  return std::nullopt;
}

struct MatrixTypes {
  DataType input;
  DataType accumulator;
};

// The types of a listing, if vkgemm has a use for it: A and B of one type, no saturation.
template <class Listing>
std::optional<MatrixTypes> matrix_types(const Listing& listing, const Facilities& usable,
                                        const DeviceCaps& caps) {
  const std::optional<DataType> input = data_type(listing.AType);
  const std::optional<DataType> accumulator = data_type(listing.CType);
  if (!input || !accumulator || listing.BType != listing.AType ||
      listing.ResultType != listing.CType || listing.saturatingAccumulation) {
    return std::nullopt;
  }
  const auto is_usable = [&](DataType type) {
    if (is_float8(type)) {
      return usable.has(Feature::float8_type) && usable.has(Feature::float8_cooperative_matrix);
    }
    const Input* const known = find_input(type);
    return caps.bf16_matrices || known == nullptr ||
           known->matrix_units != MatrixUnits::listed_bfloat16;
  };
  if (!is_usable(*input) || !is_usable(*accumulator)) return std::nullopt;
  const Input* const loaded = find_input(*input);
  if (loaded != nullptr && !loads(caps, *loaded)) return std::nullopt;
  return MatrixTypes{*input, *accumulator};
}

template <class T>
void push_unique(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

template <class Listing, class Enumerate>
Result<std::vector<Listing>> enumerate(std::string_view call, VkStructureType type,
                                       VkPhysicalDevice physical_device, Enumerate function) {
  std::vector<Listing> listings;
  if (function == nullptr) {
    return Error{Status::driver_error,
                 concat(call, " is missing, although its extension is listed")};
  }
  const VkResult result = until_complete([&] {
    std::uint32_t count = 0;
    VkResult read = function(physical_device, &count, nullptr);
    if (read < VK_SUCCESS) return read;
    Listing blank{};
    blank.sType = type;
    listings.assign(count, blank);
    read = function(physical_device, &count, listings.data());
    listings.resize(std::min<std::size_t>(count, listings.size()));
    return read;
  });
  if (result != VK_SUCCESS) return driver_error(call, result);
  return listings;
}

Result<void> list_fragment_shapes(const InstanceFunctions& functions,
                                  VkPhysicalDevice physical_device, const Facilities& usable,
                                  DeviceCaps& caps) {
  const auto listings = enumerate<VkCooperativeMatrixPropertiesKHR>(
      "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
      VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR, physical_device,
      functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR);
  if (!listings) return listings.error();
  for (const VkCooperativeMatrixPropertiesKHR& listing : *listings) {
    const std::optional<MatrixTypes> types = matrix_types(listing, usable, caps);
    if (!types || listing.scope != VK_SCOPE_SUBGROUP_KHR) continue;
    push_unique(caps.fragment_shapes, FragmentShape{.input = types->input,
                                                    .accumulator = types->accumulator,
                                                    .m = listing.MSize,
                                                    .n = listing.NSize,
                                                    .k = listing.KSize});
  }
  return {};
}

Result<void> list_flexible_shapes(const InstanceFunctions& functions,
                                  VkPhysicalDevice physical_device, const Facilities& usable,
                                  DeviceCaps& caps) {
  const auto listings = enumerate<VkCooperativeMatrixFlexibleDimensionsPropertiesNV>(
      "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV",
      VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV, physical_device,
      functions.vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV);
  if (!listings) return listings.error();
  for (const VkCooperativeMatrixFlexibleDimensionsPropertiesNV& listing : *listings) {
    const std::optional<MatrixTypes> types = matrix_types(listing, usable, caps);
    const bool workgroup = listing.scope == VK_SCOPE_WORKGROUP_KHR;
    if (!types || (!workgroup && listing.scope != VK_SCOPE_SUBGROUP_KHR)) continue;
    if (workgroup && !usable.has(Feature::nv_workgroup_scope)) continue;
    if (listing.MGranularity == 0 || listing.NGranularity == 0 || listing.KGranularity == 0) {
      continue;  // would divide by zero later; no driver should, one stub might
    }
    push_unique(caps.flexible_shapes,
                FlexibleShape{.input = types->input,
                              .accumulator = types->accumulator,
                              .scope = workgroup ? MatrixScope::workgroup : MatrixScope::subgroup,
                              .granularity_m = listing.MGranularity,
                              .granularity_n = listing.NGranularity,
                              .granularity_k = listing.KGranularity,
                              .invocations = workgroup ? listing.workgroupInvocations : 0});
  }
  return {};
}

Limits limits_of(const Properties& properties, const Facilities& usable) noexcept {
  const VkPhysicalDeviceLimits& core = properties.core.properties.limits;
  Limits limits;
  limits.max_shared_memory_bytes = core.maxComputeSharedMemorySize;
  // Workgroups extend along x only.
  limits.max_invocations =
      std::min(core.maxComputeWorkGroupInvocations, core.maxComputeWorkGroupSize[0]);
  limits.max_push_constant_bytes = core.maxPushConstantsSize;
  std::copy(std::begin(core.maxComputeWorkGroupCount), std::end(core.maxComputeWorkGroupCount),
            limits.max_workgroup_count.begin());
  limits.min_subgroup_size = properties.vulkan13.minSubgroupSize;
  limits.max_subgroup_size = properties.vulkan13.maxSubgroupSize;
  limits.max_subgroups_per_workgroup = properties.vulkan13.maxComputeWorkgroupSubgroups;
  limits.subgroup_size_control =
      usable.has(Feature::subgroup_size_control) && usable.has(Feature::compute_full_subgroups) &&
      (properties.vulkan13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  const VkSubgroupFeatureFlags operations = properties.vulkan11.subgroupSupportedOperations;
  limits.subgroup_shuffles = (operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
  limits.subgroup_votes = (operations & VK_SUBGROUP_FEATURE_VOTE_BIT) != 0;
  limits.compute_units = compute_units(properties);
  if (usable.has(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME)) {
    const auto& nv = properties.cooperative_matrix2;
    limits.nv_max_dimension = nv.cooperativeMatrixFlexibleDimensionsMaxDimension;
    if (usable.has(Feature::nv_workgroup_scope)) {
      limits.nv_max_invocations = nv.cooperativeMatrixWorkgroupScopeMaxWorkgroupSize;
      limits.nv_reserved_shared_memory_bytes =
          nv.cooperativeMatrixWorkgroupScopeReservedSharedMemory;
    }
  }
  return limits;
}

Facilities intersection(const Facilities& supported, const Facilities& enabled) {
  Facilities both;
  for (const std::string& extension : enabled.extensions) {
    if (supported.has(extension)) both.extensions.insert(extension);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(Feature::count); ++i) {
    const auto feature = static_cast<Feature>(i);
    both.features.add(feature, supported.has(feature) && enabled.has(feature));
  }
  return both;
}

}  // namespace

Result<Facilities> query_supported(const InstanceFunctions& functions,
                                   VkPhysicalDevice physical_device) {
  std::vector<VkExtensionProperties> listed;
  const auto enumerate_extensions = functions.vkEnumerateDeviceExtensionProperties;
  const VkResult result = until_complete([&] {
    std::uint32_t count = 0;
    VkResult read = enumerate_extensions(physical_device, nullptr, &count, nullptr);
    if (read < VK_SUCCESS) return read;
    listed.resize(count);
    read = enumerate_extensions(physical_device, nullptr, &count, listed.data());
    listed.resize(count);
    return read;
  });
  if (result != VK_SUCCESS) return driver_error("vkEnumerateDeviceExtensionProperties", result);

  Facilities supported;
  for (const VkExtensionProperties& extension : listed) {
    supported.extensions.emplace(extension.extensionName);
  }
  // A device of Vulkan 1.2 would leave VkPhysicalDeviceVulkan13Features as it is: all zero.
  FeatureChain chain(supported.extensions);
  functions.vkGetPhysicalDeviceFeatures2(physical_device, chain.head());
  supported.features = read_features(chain.head());
  return supported;
}

Result<DeviceCaps> query_caps(const InstanceFunctions& functions, VkPhysicalDevice physical_device,
                              const Facilities& supported, const Facilities& enabled,
                              bool use_deny_list) {
  Properties properties;
  query_properties(functions, physical_device, supported, properties);
  const VkPhysicalDeviceProperties& core = properties.core.properties;
  const Facilities usable = intersection(supported, enabled);

  DeviceCaps caps;
  caps.name = core.deviceName;
  caps.driver_name = properties.vulkan12.driverName;
  caps.driver_info = properties.vulkan12.driverInfo;
  caps.vendor_id = core.vendorID;
  caps.device_id = core.deviceID;
  caps.driver_version = core.driverVersion;
  caps.driver_id = properties.vulkan12.driverID;
  caps.type = core.deviceType;
  std::memcpy(caps.pipeline_cache_uuid.data(), core.pipelineCacheUUID, VK_UUID_SIZE);
  caps.architecture = recognise_architecture(core.deviceType, core.vendorID, core.deviceID);
  caps.limits = limits_of(properties, usable);
  caps.bf16_matrices = usable.has(Feature::cooperative_matrix) &&
                       usable.has(Feature::bfloat16_type) &&
                       usable.has(Feature::bfloat16_cooperative_matrix);
  caps.int16_arithmetic = usable.has(Feature::shader_int16);
  caps.int8_arithmetic = usable.has(Feature::shader_int8) &&
                         usable.has(Feature::storage_buffer_8bit_access) &&
                         usable.has(Feature::shader_integer_dot_product);
  if (use_deny_list && environment_variable("VKGEMM_DENY_LIST") != "0") {
    caps.denials = denials_of(known_drivers(), caps);
  }
  const bool may_ask = std::ranges::none_of(caps.denials, &Denial::shapes_unknown);
  if (usable.has(Feature::cooperative_matrix) && may_ask) {
    auto listed = list_fragment_shapes(functions, physical_device, usable, caps);
    if (!listed) return listed.error();
    if (usable.has(Feature::nv_flexible_dimensions)) {
      listed = list_flexible_shapes(functions, physical_device, usable, caps);
      if (!listed) return listed.error();
    }
  }
  if (caps.architecture == "generic") {
    caps.architecture =
        nearest_architecture(caps.vendor_id, caps.device_id,
                             {.warps_per_compute_unit = properties.sm_builtins.shaderWarpsPerSM,
                              .min_subgroup_size = caps.limits.min_subgroup_size,
                              .fragment_shapes = caps.fragment_shapes});
    caps.architecture_by_properties = caps.architecture != "generic";
  }

  caps.workgroups_make_progress = workgroups_make_progress(caps.driver_id);
  caps.device_barrier = environment_variable("VKGEMM_DEVICE_BARRIER") == "0"
                            ? PathSupport{false, "VKGEMM_DEVICE_BARRIER is 0"}
                            : PathSupport{true, ""};

  find_paths(caps,
             {.supported = supported,
              .enabled = enabled,
              .api_version = core.apiVersion,
              .matrix_stages = properties.cooperative_matrix.cooperativeMatrixSupportedStages});
  return caps;
}

std::vector<VkQueueFamilyProperties> queue_families(const InstanceFunctions& functions,
                                                    VkPhysicalDevice physical_device) {
  std::uint32_t count = 0;
  functions.vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  functions.vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, families.data());
  return families;
}

double ns_per_tick(const InstanceFunctions& functions, VkPhysicalDevice physical_device) {
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  functions.vkGetPhysicalDeviceProperties2(physical_device, &properties);
  return properties.properties.limits.timestampPeriod;
}

std::vector<std::uint32_t> compute_families(const InstanceFunctions& functions,
                                            VkPhysicalDevice physical_device) {
  const std::vector<VkQueueFamilyProperties> families = queue_families(functions, physical_device);
  std::vector<std::uint32_t> computing;
  for (std::uint32_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) computing.push_back(i);
  }
  return computing;
}

}  // namespace vkgemm
