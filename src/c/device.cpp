// device.cpp: requirements, and what a device can do.
#include "c/call.hpp"

using namespace vkgemm;
using namespace vkgemm::c;

namespace {

std::uint32_t count_of(const auto& list) { return static_cast<std::uint32_t>(list.size()); }

}  // namespace

VkgemmStatus vkgemm_requirements_query(VkInstance instance, VkPhysicalDevice physical_device,
                                       PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                       VkgemmRequirements** requirements, VkgemmError* error) {
  return call(error, {pointer(requirements, "requirements")}, [&]() -> MaybeFailure {
    Result<Requirements> queried =
        query_requirements(instance, physical_device, get_instance_proc_addr);
    if (!queried) return failure_of(queried.error());
    *requirements = new VkgemmRequirements(*std::move(queried));
    return {};
  });
}

VKGEMM_DESTROY(vkgemm_requirements_destroy, VkgemmRequirements*, requirements)

VkgemmStatus vkgemm_requirements_extensions(const VkgemmRequirements* requirements, uint32_t* count,
                                            const char* const** names) {
  return call(
      nullptr,
      {handle(requirements, "requirements"), pointer(count, "count"), pointer(names, "names")},
      [&] {
        const auto extensions = requirements->requirements.extensions();
        *count = count_of(extensions);
        *names = extensions.data();
      });
}

VKGEMM_GET(vkgemm_requirements_features, const VkgemmRequirements*, requirements,
           const VkPhysicalDeviceFeatures2**, features, requirements->requirements.features())

VkgemmStatus vkgemm_requirements_merge_into(VkgemmRequirements* requirements,
                                            VkPhysicalDeviceFeatures2* chain) {
  return call(nullptr, {handle(requirements, "requirements"), pointer(chain, "chain")},
              [&] { requirements->requirements.merge_into(*chain); });
}

VKGEMM_GET(vkgemm_requirements_caps, const VkgemmRequirements*, requirements, const VkgemmCaps**,
           caps, &requirements->caps)

VkgemmStatus vkgemm_caps_device(const VkgemmCaps* caps, VkgemmDeviceCaps* device) {
  return call(nullptr, {handle(caps, "caps"), pointer(device, "device")}, [&] {
    const DeviceCaps& cpp = caps->caps;
    const auto boolean = [](bool is) { return is ? VK_TRUE : VK_FALSE; };
    VkgemmDeviceCaps c{};
    c.vendor_id = cpp.vendor_id;
    c.device_id = cpp.device_id;
    c.driver_version = cpp.driver_version;
    c.driver_id = cpp.driver_id;
    c.type = cpp.type;
    std::ranges::copy(cpp.pipeline_cache_uuid, c.pipeline_cache_uuid);
    c.name = cpp.name.c_str();
    c.driver_name = cpp.driver_name.c_str();
    c.driver_info = cpp.driver_info.c_str();
    c.architecture = cpp.architecture.c_str();
    c.architecture_by_properties = boolean(cpp.architecture_by_properties);
    c.bf16_matrices = boolean(cpp.bf16_matrices);
    c.int16_arithmetic = boolean(cpp.int16_arithmetic);
    c.int8_arithmetic = boolean(cpp.int8_arithmetic);
    c.workgroups_make_progress = boolean(cpp.workgroups_make_progress);
    c.device_barrier = boolean(cpp.device_barrier.available);
    c.device_barrier_reason = cpp.device_barrier.reason.c_str();
    c.fragment_shape_count = count_of(cpp.fragment_shapes);
    c.flexible_shape_count = count_of(cpp.flexible_shapes);
    c.denial_count = count_of(cpp.denials);
    c.kernel_kind_count = count_of(caps->kinds);
    return write_structure(c, device, "device");
  });
}

VKGEMM_GET_STRUCTURE(vkgemm_caps_limits, const VkgemmCaps*, caps, VkgemmLimits*, limits,
                     caps->caps.limits)

VkgemmStatus vkgemm_caps_path(const VkgemmCaps* caps, VkgemmPath path, VkBool32* available,
                              const char** reason) {
  return call(nullptr,
              {handle(caps, "caps"), pointer(available, "available"), pointer(reason, "reason")},
              [&]() -> MaybeFailure {
                const std::optional<Path> cpp = to_cpp<Path>(value_of(path));
                if (!cpp) return invalid(concat("path is ", value_of(path), ": no VkgemmPath"));
                const PathSupport& support = caps->caps.path(*cpp);
                *available = support.available ? VK_TRUE : VK_FALSE;
                *reason = support.reason.c_str();
                return {};
              });
}

VKGEMM_GET_ELEMENT(vkgemm_caps_fragment_shape, const VkgemmCaps*, caps, VkgemmFragmentShape*, shape,
                   caps->caps.fragment_shapes)

VKGEMM_GET_ELEMENT(vkgemm_caps_flexible_shape, const VkgemmCaps*, caps, VkgemmFlexibleShape*, shape,
                   caps->caps.flexible_shapes)

VKGEMM_GET_ELEMENT(vkgemm_caps_denial, const VkgemmCaps*, caps, VkgemmDenial*, denial,
                   caps->caps.denials)

VKGEMM_GET_ELEMENT(vkgemm_caps_kernel_kind, const VkgemmCaps*, caps, VkgemmKernelKind*, kind,
                   caps->kinds)
