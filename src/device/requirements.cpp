// requirements.cpp: what an application should enable for vkgemm on a physical device.
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "device/caps_query.hpp"
#include "device/features.hpp"
#include "device/path_support.hpp"
#include "device/vk.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

struct Requirements::Impl {
  explicit Impl(const ExtensionSet& enabled) : chain(enabled) {}

  std::vector<const char*> extensions;  // string literals
  FeatureSet features;
  FeatureChain chain;
  FeatureAdditions additions;  // to a chain of the application
  DeviceCaps caps;
};

namespace {

// Extensions that vkgemm can use, each after those it depends on.
constexpr const char* useful_extensions[] = {
    VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
    VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
    VK_EXT_SHADER_FLOAT8_EXTENSION_NAME,
    VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,
};

// Optional on top of required_features(). No kernel uses the device scope of the memory model and
// the reductions yet: applications enable them today, so that they need no change for kernels that
// do. pipelineExecutableInfo is not here: it is for developers, who enable it.
constexpr Feature useful_features[] = {
    Feature::shader_float16,
    Feature::shader_int16,
    Feature::shader_int8,
    Feature::storage_buffer_8bit_access,
    Feature::shader_integer_dot_product,
    Feature::vulkan_memory_model_device_scope,
    Feature::subgroup_size_control,
    Feature::compute_full_subgroups,
    Feature::cooperative_matrix,
    Feature::bfloat16_type,
    Feature::bfloat16_cooperative_matrix,
    Feature::float8_type,
    Feature::float8_cooperative_matrix,
    Feature::nv_workgroup_scope,
    Feature::nv_flexible_dimensions,
    Feature::nv_reductions,
    Feature::nv_conversions,
    Feature::nv_per_element_operations,
    Feature::nv_tensor_addressing,
};

}  // namespace

Requirements::Requirements() : impl_(std::make_unique<Impl>(ExtensionSet{})) {}
Requirements::~Requirements() = default;
Requirements::Requirements(Requirements&&) noexcept = default;
Requirements& Requirements::operator=(Requirements&&) noexcept = default;

std::span<const char* const> Requirements::extensions() const noexcept { return impl_->extensions; }
const VkPhysicalDeviceFeatures2* Requirements::features() const noexcept {
  return impl_->chain.head();
}
void Requirements::merge_into(VkPhysicalDeviceFeatures2& chain) noexcept {
  impl_->additions.merge_into(chain, impl_->features);
}
const DeviceCaps& Requirements::caps() const noexcept { return impl_->caps; }

Result<Requirements> query_requirements(VkInstance instance, VkPhysicalDevice physical_device,
                                        PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
  return without_exceptions([&]() -> Result<Requirements> {
    if (instance == VK_NULL_HANDLE) return invalid_argument("instance is VK_NULL_HANDLE");
    if (physical_device == VK_NULL_HANDLE) {
      return invalid_argument("physical_device is VK_NULL_HANDLE");
    }
    if (get_instance_proc_addr == nullptr) {
      return invalid_argument("get_instance_proc_addr is null");
    }
    Result<InstanceFunctions> functions = load_instance_functions(get_instance_proc_addr, instance);
    if (!functions) return functions.error();
    Result<Facilities> supported = query_supported(*functions, physical_device);
    if (!supported) return supported.error();

    Facilities wanted;
    std::vector<const char*> extensions;
    // Nothing is worth enabling of an extension whose main bit the device does not have, and all
    // of these depend on VK_KHR_cooperative_matrix.
    for (const char* extension : useful_extensions) {
      if (!supported->has(Feature::cooperative_matrix) || !supported->has(extension)) continue;
      wanted.extensions.emplace(extension);
      extensions.push_back(extension);
    }
    const auto want = [&](Feature feature) {
      const std::string_view extension = extension_of(feature);
      const bool enabled = extension.empty() || wanted.has(extension);
      wanted.features.add(feature, enabled && supported->has(feature));
    };
    for (const Feature feature : required_features()) want(feature);
    for (const Feature feature : useful_features) want(feature);

    Requirements requirements;
    requirements.impl_ = std::make_unique<Requirements::Impl>(wanted.extensions);
    requirements.impl_->extensions = std::move(extensions);
    requirements.impl_->features = wanted.features;
    requirements.impl_->chain.write(wanted.features);
    Result<DeviceCaps> queried = query_caps(*functions, physical_device, *supported, wanted);
    if (!queried) return queried.error();
    requirements.impl_->caps = std::move(*queried);
    const DeviceCaps& caps = requirements.impl_->caps;
    if (!caps.fma.available) {
      return Error{Status::missing_feature, caps.name + ": " + caps.fma.reason};
    }
    return requirements;
  });
}

}  // namespace vkgemm
