// Devices that lack something, or have little of it: a context that is told so about a device that
// has more. It computes within what it was told, or says what is missing.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "harness.hpp"
#include "quantise_rows.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

// An oddity: what changes in the device's answers.
struct Odd {
  void (*properties)(VkPhysicalDeviceProperties2&) = nullptr;
  void (*features)(VkPhysicalDeviceFeatures2&) = nullptr;
  std::string_view hidden_extension = {};
};
Odd odd;

// The structure of a chain that has this type; null if there is none.
template <class Structure>
Structure* find(void* chain, VkStructureType type) {
  for (auto* each = static_cast<VkBaseOutStructure*>(chain); each != nullptr; each = each->pNext) {
    if (each->sType == type) return reinterpret_cast<Structure*>(each);
  }
  return nullptr;
}

VKAPI_ATTR void VKAPI_CALL odd_properties(VkPhysicalDevice device,
                                          VkPhysicalDeviceProperties2* properties) {
  vkGetPhysicalDeviceProperties2(device, properties);
  if (odd.properties != nullptr) odd.properties(*properties);
}
VKAPI_ATTR void VKAPI_CALL odd_features(VkPhysicalDevice device,
                                        VkPhysicalDeviceFeatures2* features) {
  vkGetPhysicalDeviceFeatures2(device, features);
  if (odd.features != nullptr) odd.features(*features);
}
VKAPI_ATTR VkResult VKAPI_CALL odd_extensions(VkPhysicalDevice device, const char* layer,
                                              std::uint32_t* count,
                                              VkExtensionProperties* extensions) {
  const VkResult result = vkEnumerateDeviceExtensionProperties(device, layer, count, extensions);
  for (std::uint32_t i = 0; extensions != nullptr && i < *count; ++i) {
    char* const name = extensions[i].extensionName;
    if (name == odd.hidden_extension) std::strcpy(name, "VK_none");
  }
  return result;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL odd_proc_addr(VkInstance instance, const char* name) {
  const std::string_view wanted = name;
  if (wanted == "vkGetPhysicalDeviceProperties2")
    return reinterpret_cast<PFN_vkVoidFunction>(odd_properties);
  if (wanted == "vkGetPhysicalDeviceFeatures2")
    return reinterpret_cast<PFN_vkVoidFunction>(odd_features);
  if (wanted == "vkEnumerateDeviceExtensionProperties")
    return reinterpret_cast<PFN_vkVoidFunction>(odd_extensions);
  return vkGetInstanceProcAddr(instance, name);
}

headless::RunnerOptions told(const Odd& what) {
  odd = what;
  headless::RunnerOptions options;
  options.get_instance_proc_addr = odd_proc_addr;
  return options;
}

// Takes a feature out of its structure.
template <class Structure, VkStructureType type, VkBool32 Structure::*feature>
void without(VkPhysicalDeviceFeatures2& features) {
  if (auto* const found = find<Structure>(features.pNext, type)) found->*feature = VK_FALSE;
}

constexpr std::string_view matrices = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;

void set_subgroups(VkPhysicalDeviceProperties2& properties, std::uint32_t least,
                   std::uint32_t most) {
  if (auto* const sizes = find<VkPhysicalDeviceVulkan13Properties>(
          properties.pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES)) {
    sizes->minSubgroupSize = least;
    sizes->maxSubgroupSize = most;
  }
}

// One of each family, of no size that fits a tile.
std::vector<Problem> families() {
  std::vector<Problem> all;
  for (const DataType input : {DataType::f16, DataType::f32}) {
    all.push_back(gemm({33, 70, 65}, input));
    all.back().epilogue = {.bias = Bias::along_n, .activation = Activation::relu, .aux = true};
    all.push_back(gemm({1, 70, 65}, input));
    all.push_back(gemm({9, 20, 300}, input));
    all.back().split_k.slices = 3;
    all.push_back(gemm({33, 40, 65}, input));
    all.back().gated = Gated{.gate = Gate::reglu};
    all.push_back(gemm({33, 40, 65}, input));
    all.back().grouping = Grouping{.groups = 3};
    all.push_back(gemm({33, 70, 65}, input));
    all.back().row_reduction = RowReduction{.op = RowOp::softmax};
  }
  return all;
}

struct Little {
  const char* what;
  Odd odd;
  std::string_view why_no_matrices;        // in the reason against path khr; empty: it is there
  bool (*heard)(const Limits&) = nullptr;  // whether the context knows of a limit
};

TEST(OddDevices, ComputeWithinWhatTheyHave) {
  const Little cases[] = {
      {"16 KiB of shared memory",
       {.properties =
            [](VkPhysicalDeviceProperties2& p) {
              p.properties.limits.maxComputeSharedMemorySize = 16384;
            }},
       {},
       [](const Limits& l) { return l.max_shared_memory_bytes == 16384; }},
      {"workgroups of 128",
       {.properties =
            [](VkPhysicalDeviceProperties2& p) {
              p.properties.limits.maxComputeWorkGroupInvocations = 128;
              p.properties.limits.maxComputeWorkGroupSize[0] = 128;
            }},
       {},
       [](const Limits& l) { return l.max_invocations == 128; }},
      {"push constants as few as may be",
       {.properties =
            [](VkPhysicalDeviceProperties2& p) { p.properties.limits.maxPushConstantsSize = 128; }},
       "maxPushConstantsSize is 128",
       [](const Limits& l) { return l.max_push_constant_bytes == 128; }},
      {"both, and no matrices",
       {.properties =
            [](VkPhysicalDeviceProperties2& p) {
              p.properties.limits.maxComputeSharedMemorySize = 16384;
              p.properties.limits.maxComputeWorkGroupInvocations = 128;
              p.properties.limits.maxComputeWorkGroupSize[0] = 128;
              p.properties.limits.maxComputeWorkGroupCount[0] = 65535;
            },
        .hidden_extension = matrices},
       matrices,
       [](const Limits& l) {
         return l.max_shared_memory_bytes == 16384 && l.max_invocations == 128;
       }},
      {"subgroups of 4",
       {.properties = [](VkPhysicalDeviceProperties2& p) { set_subgroups(p, 4, 4); },
        .hidden_extension = matrices},
       matrices,
       [](const Limits& l) { return l.max_subgroup_size == 4; }},
      {"subgroups of 64",
       {.properties = [](VkPhysicalDeviceProperties2& p) { set_subgroups(p, 64, 64); },
        .hidden_extension = matrices},
       matrices,
       [](const Limits& l) { return l.min_subgroup_size == 64; }},
      {"subgroups of 8 to 128, whose size nobody may choose",
       {.properties = [](VkPhysicalDeviceProperties2& p) { set_subgroups(p, 8, 128); },
        .features = without<VkPhysicalDeviceVulkan13Features,
                            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                            &VkPhysicalDeviceVulkan13Features::subgroupSizeControl>},
       "subgroupSizeControl",
       [](const Limits& l) { return l.max_subgroup_size == 128; }},
      {"no f16 arithmetic",
       {.features = without<VkPhysicalDeviceVulkan12Features,
                            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                            &VkPhysicalDeviceVulkan12Features::shaderFloat16>},
       "shaderFloat16"},
  };
  for (const auto& [what, odd_device, why, heard] : cases) {
    SCOPED_TRACE(what);
    const auto device = another_runner(told(odd_device));
    if (heard != nullptr) {
      EXPECT_TRUE(heard(device->caps().limits));
    }
    if (why.empty()) {
      EXPECT_EQ(device->caps().khr.available, caps().khr.available);
    } else {
      EXPECT_NE(device->caps().khr.reason.find(why), std::string::npos)
          << device->caps().khr.reason;
    }
    for (const Problem& problem : families()) {
      const auto candidates = device->context().candidates(problem);
      ASSERT_TRUE(succeeds(candidates));
      ASSERT_FALSE(candidates->empty());
      TrialOptions options{.on = device.get()};
      if (problem.grouping) options.offsets = {0, 7, 7, 33};
      EXPECT_TRUE(passes_gates(candidates->front().config, problem, options));
      if (HasFailure()) return;
    }
  }
}

// Whatever comes before and after a product, also when each dispatch is submitted by itself.
TEST(OddDevices, ReadParametersInMemoryWhereverTheyStand) {
  const auto device = another_runner(told({.properties = [](VkPhysicalDeviceProperties2& p) {
    p.properties.limits.maxPushConstantsSize = 128;
  }}));
  const TrialOptions options{.in_pieces = true, .on = device.get()};
  const Config tiles = parse_config("fma:tile=16x32x8,fragment=4x4,swizzle=1,peel=0").value();
  const Problem plain = gemm({40, 50, 64}, DataType::f16);
  for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver,
                                   ReductionMode::device_barrier}) {
    EXPECT_TRUE(passes_gates(sliced(tiles, 3, mode), plain, options));
  }
  Problem rows = gemm({40, 50, 24}, DataType::f16, DataType::f16);
  rows.row_reduction = RowReduction{.op = RowOp::layer_norm};
  for (const RowStrategy strategy : {RowStrategy::two_pass, RowStrategy::recompute}) {
    Config config = tiles;
    config.rows = strategy;
    EXPECT_TRUE(passes_gates(config, rows, options));
  }
  // In three parts: their parameters stand in the same place.
  rows.max_workspace_bytes = std::uint64_t{16} * 52 * sizeof(float);
  Config two_pass = tiles;
  two_pass.rows = RowStrategy::two_pass;
  EXPECT_TRUE(passes_gates(two_pass, rows, options));

  const auto plan = device->context().plan(rows, two_pass);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_NE(plan->explain().find("parameters: in the workspace"), std::string::npos);
}

// Few workgroups in a dispatch, of few invocations each.
TEST(OddDevices, QuantiseRowsInManyDispatches) {
  VKGEMM_SKIP_IF(why_not_quantised());
  const auto device = another_runner(told({.properties = [](VkPhysicalDeviceProperties2& p) {
    p.properties.limits.maxComputeWorkGroupCount[0] = 3;
    p.properties.limits.maxComputeWorkGroupCount[1] = 2;
    p.properties.limits.maxComputeWorkGroupInvocations = 128;
    p.properties.limits.maxComputeWorkGroupSize[0] = 128;
  }}));
  EXPECT_EQ(device->caps().limits.max_workgroup_count[1], 2u);
  for (const std::uint64_t columns : {3u, 70u, 5000u}) {
    for (const bool aligned : {false, true}) {
      RowQuantisation q{.rows = columns < 10 ? 1000u : 20u, .columns = columns, .batch = 5};
      QuantisedRows rows(with_padding(q, 16 - columns % 16, aligned));
      rows.fill(1);
      ASSERT_TRUE(rows.run(*device));
      EXPECT_TRUE(rows.is_exact()) << columns;
    }
  }
}

TEST(OddDevices, QuantiseNoRowsWithoutBytes) {
  const Odd lacking[] = {
      {.features = without<VkPhysicalDeviceVulkan12Features,
                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                           &VkPhysicalDeviceVulkan12Features::shaderInt8>},
      {.features = without<VkPhysicalDeviceVulkan12Features,
                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                           &VkPhysicalDeviceVulkan12Features::storageBuffer8BitAccess>},
      {.features = without<VkPhysicalDeviceVulkan13Features,
                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                           &VkPhysicalDeviceVulkan13Features::shaderIntegerDotProduct>}};
  for (const Odd& odd_device : lacking) {
    const auto device = another_runner(told(odd_device));
    EXPECT_TRUE(fails_with(device->context().plan_quantise_rows({.rows = 4, .columns = 8}),
                           Status::unsupported,
                           {caps().name,
                            ": codes.type is s8: it needs shaderInt8, storageBuffer8BitAccess and "
                            "shaderIntegerDotProduct"}));
  }
}

struct Lacking {
  const char* what;
  Odd odd;
  std::string_view message;
};

TEST(OddDevices, SayWhatIsMissing) {
  const Lacking cases[] = {
      {"an old Vulkan",
       {.properties =
            [](VkPhysicalDeviceProperties2& p) { p.properties.apiVersion = VK_API_VERSION_1_2; }},
       "the device supports Vulkan 1.2, vkgemm needs 1.3"},
      {"no 64-bit integers",
       {.features = [](VkPhysicalDeviceFeatures2& f) { f.features.shaderInt64 = VK_FALSE; }},
       "the device does not support shaderInt64"},
      {"no 16-bit elements in memory",
       {.features = without<VkPhysicalDeviceVulkan11Features,
                            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                            &VkPhysicalDeviceVulkan11Features::storageBuffer16BitAccess>},
       "the device does not support storageBuffer16BitAccess"},
      {"no device addresses",
       {.features = without<VkPhysicalDeviceVulkan12Features,
                            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                            &VkPhysicalDeviceVulkan12Features::bufferDeviceAddress>},
       "the device does not support bufferDeviceAddress"},
  };
  for (const auto& [what, odd_device, message] : cases) {
    SCOPED_TRACE(what);
    odd = odd_device;
    // As an application asks, before it creates a device.
    EXPECT_TRUE(fails_with(
        query_requirements(runner().instance(), runner().physical_device(), odd_proc_addr),
        Status::missing_feature, {message}));
  }
}

}  // namespace
}  // namespace vkgemm::test
