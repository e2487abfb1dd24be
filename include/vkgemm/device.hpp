// vkgemm/device.hpp: what a device offers, as far as it matters to a matrix product.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkgemm/config.hpp"
#include "vkgemm/export.h"
#include "vkgemm/problem.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

// A cooperative-matrix shape the device lists at subgroup scope, A and B of `input`, C and result
// of `accumulator` type (VK_KHR_cooperative_matrix).
struct FragmentShape {
  DataType input = DataType::f16;
  DataType accumulator = DataType::f32;
  std::uint32_t m = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  bool operator==(const FragmentShape&) const = default;
};

// The invocations that share a cooperative matrix.
enum class MatrixScope : std::uint8_t { subgroup, workgroup };

// Any multiple of the granularity is a valid shape (VK_NV_cooperative_matrix2, flexible
// dimensions). `invocations` is the workgroup size it is listed for; 0 at subgroup scope.
struct FlexibleShape {
  DataType input = DataType::f16;
  DataType accumulator = DataType::f32;
  MatrixScope scope = MatrixScope::workgroup;
  std::uint32_t granularity_m = 0;
  std::uint32_t granularity_n = 0;
  std::uint32_t granularity_k = 0;
  std::uint32_t invocations = 0;
  bool operator==(const FlexibleShape&) const = default;
};

// The support of a path or a facility. If it may not be used, `reason` is one sentence that names
// the first missing extension, feature bit or shape.
struct PathSupport {
  bool available = false;
  std::string reason;
};

// The limits that decide which configurations are legal, and how many workgroups are resident.
struct Limits {
  std::uint32_t max_shared_memory_bytes = 0;  // per workgroup
  std::uint32_t max_invocations = 0;          // per workgroup
  std::uint32_t max_push_constant_bytes = 0;
  std::array<std::uint32_t, 3> max_workgroup_count{};
  std::uint32_t min_subgroup_size = 0;
  std::uint32_t max_subgroup_size = 0;
  std::uint32_t max_subgroups_per_workgroup = 0;
  bool subgroup_size_control = false;  // for compute, with full subgroups
  bool subgroup_shuffles = false;      // required by main loop khr_direct
  bool subgroup_votes = false;         // required by f32 in parts

  // Compute units (SMs, WGPs, Xe cores …) if the driver tells; 0: unknown.
  std::uint32_t compute_units = 0;

  // VK_NV_cooperative_matrix2; zero where the extension is missing.
  std::uint32_t nv_max_dimension = 0;                 // of flexible shapes of either scope
  std::uint32_t nv_max_invocations = 0;               // of a workgroup that shares matrices
  std::uint32_t nv_reserved_shared_memory_bytes = 0;  // by matrices of such a workgroup

  bool operator==(const Limits&) const = default;
};

// Everything the choice of a kernel depends on. Plain data: a test or a tuner may write one by
// hand for a device that is not there.
struct DeviceCaps {
  std::string name;
  std::string driver_name;
  std::string driver_info;
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t driver_version = 0;
  VkDriverId driver_id{};
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::array<std::uint8_t, VK_UUID_SIZE> pipeline_cache_uuid{};

  // Key of the tuning table: "nvidia_sm90", "amd_rdna3", …, "cpu" for drivers that compute on
  // the CPU, or "generic" if not recognised.
  std::string architecture = "generic";
  // The device's id is in no list; the architecture is the one that its properties are most like.
  bool architecture_by_properties = false;

  Limits limits;  // of workgroups, above all
  // Shapes that the driver lists, of types that vkgemm knows.
  std::vector<FragmentShape> fragment_shapes;
  std::vector<FlexibleShape> flexible_shapes;
  bool bf16_matrices = false;     // VK_KHR_shader_bfloat16 with cooperative matrices
  bool int16_arithmetic = false;  // shaderInt16, which the khr_direct loop needs for bf16
  // shaderInt8, storageBuffer8BitAccess and shaderIntegerDotProduct: 8-bit types.
  bool int8_arithmetic = false;

  // device_barrier: whether a configuration may have ReductionMode::device_barrier, whose
  // workgroups wait for each other. workgroups_make_progress: whether this driver is known to let
  // workgroups go on that have started; if not, expect aborted barriers. vkgemm never chooses the
  // mode itself, since a second dispatch was faster nearly everywhere (bench/NOTES.md). A loaded
  // tuning table may propose it. VKGEMM_DEVICE_BARRIER=0 in the environment turns it off.
  PathSupport device_barrier;
  bool workgroups_make_progress = false;

  // The paths that may be used, and why not.
  PathSupport nv;
  PathSupport khr;
  PathSupport fma;

  // Knowledge of this driver beyond what it says itself: configurations of kinds that failed or are
  // denied are not legal. Verdicts stand here only in a Context's capabilities.
  std::vector<Denial> denials;
  std::vector<Verdict> verdicts;

  // The support of a path.
  const PathSupport& path(Path p) const noexcept {
    switch (p) {
      case Path::nv:
        return nv;
      case Path::khr:
        return khr;
      case Path::fma:
        break;
    }
    return fma;
  }
};

// The extensions and features to enable for vkgemm when the application creates its VkDevice: all
// that this physical device supports and vkgemm can use. Movable. Its chains live as long as it.
//
// Add extensions() to VkDeviceCreateInfo::ppEnabledExtensionNames, each name once. Set
// VkDeviceCreateInfo::pEnabledFeatures to null, and VkDeviceCreateInfo::pNext to one of
//   - features(), if the application needs no features of its own;
//   - a VkPhysicalDeviceFeatures2 of the application, after merge_into().
class VKGEMM_API Requirements {
 public:
  Requirements();
  ~Requirements();
  Requirements(Requirements&&) noexcept;
  Requirements& operator=(Requirements&&) noexcept;

  // The extensions and features to enable; valid as long as this object.
  std::span<const char* const> extensions() const noexcept;
  const VkPhysicalDeviceFeatures2* features() const noexcept;

  // Adds the features to a chain of the application, whose other bits stay. Sets bits in structures
  // that are in the chain, VkPhysicalDeviceVulkan11Features to 13Features included. For bits
  // without a place in the chain it appends structures of this object, never a second one of a
  // type. chain.sType must be set.
  //
  // Create the device with the merged chain, and pass the chain to Context::create(). The chain
  // must live until create() returns. The appended structures are valid until this object ends or
  // merges into another chain. To use the chain after that, remove them from it first.
  void merge_into(VkPhysicalDeviceFeatures2& chain) noexcept;

  // The capabilities of a device that is created with exactly these requirements.
  const DeviceCaps& caps() const noexcept;

  struct Impl;

 private:
  friend VKGEMM_API Result<Requirements> query_requirements(VkInstance, VkPhysicalDevice,
                                                            PFN_vkGetInstanceProcAddr);
  std::unique_ptr<Impl> impl_;
};

// Asks a physical device. The instance and the device must support Vulkan 1.3.
// Fails with missing_feature if not even the fma path can run, naming what is missing, and with the
// driver's VkResult if a query fails, naming the query.
VKGEMM_API Result<Requirements> query_requirements(
    VkInstance instance, VkPhysicalDevice physical_device,
    PFN_vkGetInstanceProcAddr get_instance_proc_addr);

}  // namespace vkgemm
