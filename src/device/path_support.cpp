#include "device/path_support.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.hpp"
#include "device/caps.hpp"
#include "lib/abi.h"
#include "problem/inputs/input.hpp"

namespace vkgemm {

namespace {

// The first feature that is missing, as a sentence; nothing if none is. Tells "the device cannot"
// from "the application did not enable it".
std::optional<std::string> missing_of(const PathFacts& facts,
                                      std::initializer_list<Feature> features) {
  for (const Feature feature : features) {
    const std::string extension(extension_of(feature));
    const std::string name(to_string(feature));
    if (!extension.empty() && !facts.supported.has(extension)) {
      return "the device does not list " + extension;
    }
    if (!facts.supported.has(feature)) return "the device does not support " + name;
    if (!extension.empty() && !facts.enabled.has(extension)) {
      return extension + " was not enabled on the device";
    }
    if (!facts.enabled.has(feature)) return "feature " + name + " was not enabled on the device";
  }
  return std::nullopt;
}

// Why a path cannot run, if it can't. Matrices have reasons that khr and nv share.
std::optional<std::string> lacks_fma(const DeviceCaps& caps, const PathFacts& facts) {
  const std::uint32_t version = facts.api_version;
  if (version < VK_API_VERSION_1_3) {
    return concat("the device supports Vulkan ", VK_API_VERSION_MAJOR(version), ".",
                  VK_API_VERSION_MINOR(version), ", vkgemm needs 1.3");
  }
  if (auto missing = missing_of(facts, required_features())) return missing;
  // If the simplest kernels compute wrongly, no path can stand in for them.
  for (const Denial& denial : caps.denials) {
    if (denial.path == Path::fma) return denial.reason;
  }
  return std::nullopt;
}

// `features`: those that the path needs.
std::optional<std::string> lacks_matrices(const DeviceCaps& caps, const PathFacts& facts,
                                          std::initializer_list<Feature> features) {
  if (!caps.fma.available) return caps.fma.reason;
  // These kernels have no form that reads its parameters from memory.
  if (caps.limits.max_push_constant_bytes < gpu::most_parameter_bytes) {
    return concat("maxPushConstantsSize is ", caps.limits.max_push_constant_bytes,
                  ", kernels of matrices need ", gpu::most_parameter_bytes);
  }
  if (auto missing = missing_of(facts, features)) return missing;
  if ((facts.matrix_stages & VK_SHADER_STAGE_COMPUTE_BIT) == 0) {
    return "cooperativeMatrixSupportedStages lacks the compute stage";
  }
  return std::nullopt;
}

std::optional<std::string> lacks_shapes(const DeviceCaps& caps, MatrixScope scope) {
  for (const Denial& denial : caps.denials) {
    if (denial.shapes_unknown) return denial.reason;
  }
  const bool subgroup = scope == MatrixScope::subgroup;
  const bool fixed =
      subgroup && std::ranges::any_of(caps.fragment_shapes,
                                      [](const FragmentShape& shape) { return is_used(shape); });
  const bool flexible = std::ranges::any_of(caps.flexible_shapes, [&](const FlexibleShape& shape) {
    return shape.scope == scope && is_used(shape);
  });
  if (fixed || flexible) return std::nullopt;
  return concat("the device lists no f16 or bf16 matrix of ", subgroup ? "subgroup" : "workgroup",
                " scope with an f32 accumulator");
}

std::optional<std::string> lacks_khr(const DeviceCaps& caps, const PathFacts& facts) {
  if (auto lacking =
          lacks_matrices(caps, facts, {Feature::cooperative_matrix, Feature::shader_float16})) {
    return lacking;
  }
  // If there is only one subgroup size, no size has to be requested (NVK allows no request).
  if (caps.limits.min_subgroup_size != caps.limits.max_subgroup_size) {
    if (auto missing =
            missing_of(facts, {Feature::subgroup_size_control, Feature::compute_full_subgroups})) {
      return missing;
    }
    if (!caps.limits.subgroup_size_control) {
      return "requiredSubgroupSizeStages lacks the compute stage";
    }
  }
  return lacks_shapes(caps, MatrixScope::subgroup);
}

std::optional<std::string> lacks_nv(const DeviceCaps& caps, const PathFacts& facts) {
  if (auto lacking = lacks_matrices(
          caps, facts,
          {Feature::nv_workgroup_scope, Feature::nv_flexible_dimensions,
           Feature::nv_tensor_addressing, Feature::nv_per_element_operations,
           Feature::nv_conversions, Feature::cooperative_matrix, Feature::shader_float16})) {
    return lacking;
  }
  return lacks_shapes(caps, MatrixScope::workgroup);
}

PathSupport support_of(const std::optional<std::string>& lacking) {
  return {.available = !lacking, .reason = lacking.value_or("")};
}

}  // namespace

std::initializer_list<Feature> required_features() noexcept {
  static constexpr std::initializer_list<Feature> features = {
      Feature::shader_int64,          Feature::storage_buffer_16bit_access,
      Feature::buffer_device_address, Feature::vulkan_memory_model,
      Feature::maintenance4,  // LocalSizeId: the workgroup size is a specialization constant
  };
  return features;
}

void find_paths(DeviceCaps& caps, const PathFacts& facts) {
  caps.fma = support_of(lacks_fma(caps, facts));
  caps.khr = support_of(lacks_khr(caps, facts));
  caps.nv = support_of(lacks_nv(caps, facts));
}

}  // namespace vkgemm
