// Context::create on devices that lack something, a driver that fails, a device that is lost.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

namespace fs = std::filesystem;

// A device made by hand, with what vkgemm requires but for what the test takes away.
class BareDevice {
 public:
  BareDevice() {
    features2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features2.pNext = &vulkan11;
    features2.features.shaderInt64 = VK_TRUE;
    vulkan11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    vulkan11.pNext = &vulkan12;
    vulkan11.storageBuffer16BitAccess = VK_TRUE;
    vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    vulkan12.pNext = &vulkan13;
    vulkan12.shaderFloat16 = VK_TRUE;
    vulkan12.bufferDeviceAddress = VK_TRUE;
    vulkan12.vulkanMemoryModel = VK_TRUE;
    vulkan13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    vulkan13.subgroupSizeControl = VK_TRUE;
    vulkan13.computeFullSubgroups = VK_TRUE;
    vulkan13.maintenance4 = VK_TRUE;
    matrix.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  }
  ~BareDevice() {
    if (device != VK_NULL_HANDLE) vkDestroyDevice(device, nullptr);
  }
  BareDevice(const BareDevice&) = delete;
  BareDevice& operator=(const BareDevice&) = delete;

  void with_matrices(bool extension, bool feature) {
    if (extension) extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    if (!feature) return;
    matrix.cooperativeMatrix = VK_TRUE;
    vulkan13.pNext = &matrix;
  }

  Result<Context> create_context() {
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue{};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features2;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    info.ppEnabledExtensionNames = extensions.data();
    const VkResult created = vkCreateDevice(runner().physical_device(), &info, nullptr, &device);
    if (created != VK_SUCCESS) return Error{Status::driver_error, "vkCreateDevice", created};
    return Context::create(create_info());
  }
  ContextCreateInfo create_info() const {
    return {.instance = runner().instance(),
            .physical_device = runner().physical_device(),
            .device = device,
            .get_instance_proc_addr = vkGetInstanceProcAddr,
            .enabled_extensions = extensions,
            .enabled_features = &features2};
  }

  VkDevice device = VK_NULL_HANDLE;
  std::vector<const char*> extensions;
  VkPhysicalDeviceFeatures2 features2{};
  VkPhysicalDeviceVulkan11Features vulkan11{};
  VkPhysicalDeviceVulkan12Features vulkan12{};
  VkPhysicalDeviceVulkan13Features vulkan13{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix{};
};

TEST(ContextCreate, NeedsEveryRequiredFeature) {
  const std::pair<const char*, void (*)(BareDevice&)> cases[] = {
      {"shaderInt64", [](BareDevice& d) { d.features2.features.shaderInt64 = VK_FALSE; }},
      {"storageBuffer16BitAccess",
       [](BareDevice& d) { d.vulkan11.storageBuffer16BitAccess = VK_FALSE; }},
      {"bufferDeviceAddress", [](BareDevice& d) { d.vulkan12.bufferDeviceAddress = VK_FALSE; }},
      {"vulkanMemoryModel", [](BareDevice& d) { d.vulkan12.vulkanMemoryModel = VK_FALSE; }},
      {"maintenance4", [](BareDevice& d) { d.vulkan13.maintenance4 = VK_FALSE; }},
  };
  for (const auto& [name, take_away] : cases) {
    BareDevice device;
    take_away(device);
    EXPECT_TRUE(
        fails_with(device.create_context(), Status::missing_feature, {name, "not enabled"}));
  }
}

// The extension and the feature bit, or the path stays off and says which of them it was.
TEST(ContextCreate, PathsNeedExtensionAndFeature) {
  if (!caps().khr.available) GTEST_SKIP() << "path khr: " << caps().khr.reason;
  const DataType f16 = DataType::f16;
  const Config config = small_configs(Path::khr, f16).front();
  {
    BareDevice device;
    const auto made = device.create_context();
    ASSERT_TRUE(succeeds(made));
    EXPECT_FALSE(made->caps().khr.available);
    EXPECT_FALSE(made->caps().nv.available);
    EXPECT_NE(made->caps().khr.reason.find(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME),
              std::string::npos)
        << made->caps().khr.reason;
    const auto plan = made->plan(gemm({64, 64, 64}, f16));
    ASSERT_TRUE(succeeds(plan));
    EXPECT_EQ(plan->config().path(), Path::fma);
    EXPECT_NE(plan->explain().find(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME), std::string::npos)
        << plan->explain();
    EXPECT_TRUE(fails_with(made->plan(gemm({64, 64, 64}, f16), config), Status::unsupported,
                           {"khr", VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME}));
  }
  {
    BareDevice device;
    device.with_matrices(true, false);
    const auto made = device.create_context();
    ASSERT_TRUE(succeeds(made));
    EXPECT_FALSE(made->caps().khr.available);
    EXPECT_NE(made->caps().khr.reason.find("cooperativeMatrix"), std::string::npos)
        << made->caps().khr.reason;
  }
  {
    BareDevice device;
    device.with_matrices(true, true);
    const auto made = device.create_context();
    ASSERT_TRUE(succeeds(made));
    EXPECT_TRUE(made->caps().khr.available) << made->caps().khr.reason;
    EXPECT_FALSE(made->caps().nv.available);
  }
}

TEST(ContextCreate, RefusesIncompleteInformation) {
  BareDevice device;
  ASSERT_TRUE(succeeds(device.create_context()));
  const std::pair<const char*, void (*)(ContextCreateInfo&)> cases[] = {
      {"instance", [](ContextCreateInfo& i) { i.instance = VK_NULL_HANDLE; }},
      {"physical_device", [](ContextCreateInfo& i) { i.physical_device = VK_NULL_HANDLE; }},
      {"device", [](ContextCreateInfo& i) { i.device = VK_NULL_HANDLE; }},
      {"get_instance_proc_addr", [](ContextCreateInfo& i) { i.get_instance_proc_addr = nullptr; }},
      {"enabled_features", [](ContextCreateInfo& i) { i.enabled_features = nullptr; }},
  };
  for (const auto& [name, break_it] : cases) {
    ContextCreateInfo info = device.create_info();
    break_it(info);
    EXPECT_TRUE(fails_with(Context::create(info), Status::invalid_argument, {name}));
  }
}

// The application may destroy the old device as soon as its context was assigned to.
TEST(ContextMove, AssignmentEndsTheOldContextAtOnce) {
  const fs::path file =
      fs::temp_directory_path() /
      ("vkgemm_moved_" + std::to_string(reinterpret_cast<std::uintptr_t>(&runner())));
  fs::remove(file);
  const Problem problem = gemm({8, 8, 8}, DataType::f32);
  BareDevice second;
  auto other = second.create_context();
  ASSERT_TRUE(succeeds(other));
  {
    BareDevice first;
    ASSERT_TRUE(succeeds(first.create_context()));
    ContextCreateInfo info = first.create_info();
    info.pipeline_cache_file = file;
    auto made = Context::create(info);
    ASSERT_TRUE(succeeds(made));
    ASSERT_TRUE(succeeds(made->plan(problem)));
    *made = std::move(*other);
    EXPECT_TRUE(fs::exists(file)) << "not saved: still alive";
    EXPECT_TRUE(succeeds(made->plan(problem)));
    Context& same = *made;
    same = std::move(*made);
    EXPECT_TRUE(succeeds(made->plan(problem)));
    *other = std::move(*made);
  }  // the first device ends here, and the empty context before it
  EXPECT_TRUE(succeeds(other->plan(problem)));
  fs::remove(file);
}

// --- a driver that fails
// --------------------------------------------------------------------------------

// The one function that fails, and how. A context keeps the functions that it was created with.
struct {
  std::string_view function;
  VkResult result = VK_SUCCESS;
} failure;

VKAPI_ATTR VkResult VKAPI_CALL fail_to_build(VkDevice, VkPipelineCache, std::uint32_t count,
                                             const VkComputePipelineCreateInfo*,
                                             const VkAllocationCallbacks*, VkPipeline* pipelines) {
  std::fill_n(pipelines, count, VkPipeline{VK_NULL_HANDLE});
  return failure.result;
}
VKAPI_ATTR VkResult VKAPI_CALL fail_to_read_cache(VkDevice, VkPipelineCache, std::size_t* bytes,
                                                  void*) {
  *bytes = 64;
  return failure.result;
}
VKAPI_ATTR VkResult VKAPI_CALL fail_to_list_extensions(VkPhysicalDevice, const char*,
                                                       std::uint32_t* count,
                                                       VkExtensionProperties* extensions) {
  if (extensions == nullptr) *count = 1;
  return extensions == nullptr ? VK_SUCCESS : failure.result;
}
VKAPI_ATTR VkResult VKAPI_CALL fail_to_list(VkPhysicalDevice, std::uint32_t*,
                                            VkCooperativeMatrixPropertiesKHR*) {
  return failure.result;
}
VKAPI_ATTR VkResult VKAPI_CALL fail_to_list_flexible(
    VkPhysicalDevice, std::uint32_t*, VkCooperativeMatrixFlexibleDimensionsPropertiesNV*) {
  return failure.result;
}

// A device with three queue families, of which the first and the last compute; and how the last
// buffer on it is shared.
constexpr std::string_view of_three_families = "three families";
std::vector<std::uint32_t> sharing_families;

VKAPI_ATTR void VKAPI_CALL list_three_families(VkPhysicalDevice, std::uint32_t* count,
                                               VkQueueFamilyProperties* families) {
  constexpr VkQueueFlags flags[] = {VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT,
                                    VK_QUEUE_TRANSFER_BIT, VK_QUEUE_COMPUTE_BIT};
  *count = std::size(flags);
  for (std::size_t i = 0; families != nullptr && i < std::size(flags); ++i) {
    families[i] = {.queueFlags = flags[i], .queueCount = 1};
  }
}
VKAPI_ATTR VkResult VKAPI_CALL note_sharing(VkDevice device, const VkBufferCreateInfo* info,
                                            const VkAllocationCallbacks* allocator,
                                            VkBuffer* buffer) {
  sharing_families.clear();
  if (info->sharingMode == VK_SHARING_MODE_CONCURRENT) {
    sharing_families.assign(info->pQueueFamilyIndices,
                            info->pQueueFamilyIndices + info->queueFamilyIndexCount);
  }
  VkBufferCreateInfo exclusive = *info;  // the device has one family
  exclusive.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  return vkCreateBuffer(device, &exclusive, allocator, buffer);
}

PFN_vkVoidFunction failing(std::string_view name) {
  constexpr auto as_void = [](auto function) {
    return reinterpret_cast<PFN_vkVoidFunction>(function);
  };
  if (failure.function == of_three_families) {
    if (name == "vkGetPhysicalDeviceQueueFamilyProperties") return as_void(list_three_families);
    if (name == "vkCreateBuffer") return as_void(note_sharing);
  }
  if (name != failure.function) return nullptr;
  if (name == "vkCreateComputePipelines") return as_void(fail_to_build);
  if (name == "vkGetPipelineCacheData") return as_void(fail_to_read_cache);
  if (name == "vkEnumerateDeviceExtensionProperties") return as_void(fail_to_list_extensions);
  if (name == "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR") return as_void(fail_to_list);
  return as_void(fail_to_list_flexible);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL failing_device_proc_addr(VkDevice device,
                                                                  const char* name) {
  const PFN_vkVoidFunction function = failing(name);
  return function != nullptr ? function : vkGetDeviceProcAddr(device, name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL failing_instance_proc_addr(VkInstance instance,
                                                                    const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(failing_device_proc_addr);
  }
  const PFN_vkVoidFunction function = failing(name);
  return function != nullptr ? function : vkGetInstanceProcAddr(instance, name);
}

TEST(DriverFailures, CarryTheirResult) {
  const std::pair<VkResult, Status> cases[] = {
      {VK_ERROR_OUT_OF_DEVICE_MEMORY, Status::out_of_device_memory},
      {VK_ERROR_OUT_OF_HOST_MEMORY, Status::out_of_host_memory},
      {VK_ERROR_INVALID_SHADER_NV, Status::driver_error},
      {VK_SUCCESS, Status::driver_error},  // without a pipeline
      {VK_ERROR_DEVICE_LOST, Status::device_lost},
  };
  BareDevice device;
  ASSERT_TRUE(succeeds(device.create_context()));
  for (const auto& [result, status] : cases) {
    failure = {"vkCreateComputePipelines", result};
    ContextCreateInfo info = device.create_info();
    info.get_instance_proc_addr = failing_instance_proc_addr;
    const auto made = Context::create(info);
    ASSERT_TRUE(succeeds(made));
    const auto plan = made->plan(gemm({8, 8, 8}, DataType::f32));
    ASSERT_TRUE(fails_with(plan, status, {"vkCreateComputePipelines"}));
    EXPECT_EQ(plan.error().vk_result, result);
    EXPECT_EQ(made->device_lost(), result == VK_ERROR_DEVICE_LOST);
  }
}

// A list that cannot be had is not an empty list.
TEST(DriverFailures, OfTheQueries) {
  if (!caps().khr.available) GTEST_SKIP() << "path khr: " << caps().khr.reason;
  const bool flexible = !caps().flexible_shapes.empty();
  for (const std::string_view function :
       {"vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
        "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV"}) {
    if (function.find("Flexible") != std::string_view::npos && !flexible) continue;
    failure = {function, VK_ERROR_OUT_OF_HOST_MEMORY};
    const auto needs = query_requirements(runner().instance(), runner().physical_device(),
                                          failing_instance_proc_addr);
    ASSERT_TRUE(fails_with(needs, Status::out_of_host_memory, {function}));
    EXPECT_EQ(needs.error().vk_result, VK_ERROR_OUT_OF_HOST_MEMORY);
  }
  BareDevice device;
  device.with_matrices(true, true);
  ASSERT_TRUE(succeeds(device.create_context()));
  failure = {"vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", VK_ERROR_INITIALIZATION_FAILED};
  ContextCreateInfo info = device.create_info();
  info.get_instance_proc_addr = failing_instance_proc_addr;
  EXPECT_TRUE(fails_with(Context::create(info), Status::driver_error,
                         {failure.function, "VK_ERROR_INITIALIZATION_FAILED"}));
}

// A driver that always has more than it said is given up.
TEST(DriverFailures, ListsThatNeverEnd) {
  const fs::path file =
      fs::temp_directory_path() /
      ("vkgemm_endless_" + std::to_string(reinterpret_cast<std::uintptr_t>(&runner())));
  fs::remove(file);
  BareDevice device;
  ASSERT_TRUE(succeeds(device.create_context()));
  ContextCreateInfo info = device.create_info();
  info.get_instance_proc_addr = failing_instance_proc_addr;
  failure = {"vkEnumerateDeviceExtensionProperties", VK_INCOMPLETE};
  EXPECT_TRUE(
      fails_with(Context::create(info), Status::driver_error, {failure.function, "VK_INCOMPLETE"}));

  failure = {"vkGetPipelineCacheData", VK_INCOMPLETE};
  info.pipeline_cache_file = file;
  std::string log;
  info.log = [&](LogLevel level, std::string_view message) {
    if (level != LogLevel::info) log += message;
  };
  {
    const auto made = Context::create(info);
    ASSERT_TRUE(succeeds(made));
    ASSERT_TRUE(succeeds(made->plan(gemm({8, 8, 8}, DataType::f32))));
    EXPECT_TRUE(fails_with(made->save_pipeline_cache(), Status::driver_error,
                           {failure.function, "VK_INCOMPLETE"}));
  }
  EXPECT_NE(log.find("pipeline cache not saved"), std::string::npos) << log;
  EXPECT_FALSE(fs::exists(file));
}

// Plans of one context may run on queues of several families, and all count in one word.
TEST(QueueFamilies, ShareTheWordThatCountsBarriers) {
  BareDevice device;
  ASSERT_TRUE(succeeds(device.create_context()));
  failure = {of_three_families, VK_SUCCESS};
  sharing_families.clear();
  ContextCreateInfo info = device.create_info();
  info.get_instance_proc_addr = failing_instance_proc_addr;
  const auto made = Context::create(info);
  ASSERT_TRUE(succeeds(made));
  Config config = small_configs(Path::fma, DataType::f32).front();
  config.slices = 2;
  config.reduction_mode = ReductionMode::device_barrier;
  ASSERT_TRUE(succeeds(made->plan(gemm({64, 64, 64}, DataType::f32), config)));
  EXPECT_EQ(sharing_families, (std::vector<std::uint32_t>{0, 2}));
}

// More than there is: the driver's word, as a Status.
TEST(DriverFailures, OutOfDeviceMemory) {
  EXPECT_TRUE(fails_with(runner().allocate(std::uint64_t{1} << 60), Status::out_of_device_memory,
                         {std::to_string(std::uint64_t{1} << 60)}));
}

// --- a device that is lost
// ------------------------------------------------------------------------------

TEST(DeviceLost, IsStickyAndDestructionWorks) {
  const auto other = another_runner();
  const Context& lost = other->context();
  const Problem problem = gemm({8, 8, 8}, DataType::f32);
  const auto plan = lost.plan(problem);
  ASSERT_TRUE(succeeds(plan));
  auto buffer = other->allocate(4096);
  ASSERT_TRUE(succeeds(buffer));
  ASSERT_TRUE(succeeds(other->fill(*buffer, 0x5a5a5a5a)));
  const Operands operands{
      .a = buffer->span(0, 256), .b = buffer->span(256, 256), .d = buffer->span(512, 256)};

  EXPECT_FALSE(lost.device_lost());
  lost.notify_device_lost();
  EXPECT_TRUE(lost.device_lost());
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_TRUE(fails_with(lost.plan(problem), Status::device_lost, {"lost"}));
    EXPECT_TRUE(fails_with(lost.plan(problem, plan->config()), Status::device_lost, {"lost"}));
    EXPECT_TRUE(fails_with(lost.candidates(problem), Status::device_lost, {"lost"}));
    EXPECT_TRUE(succeeds(other->submit([&](VkCommandBuffer commands) -> Result<void> {
      EXPECT_TRUE(fails_with(plan->record(commands, operands), Status::device_lost, {"lost"}));
      EXPECT_TRUE(
          fails_with(lost.record(*plan, commands, operands), Status::device_lost, {"lost"}));
      return {};
    })));
  }
  std::uint32_t word = 0;
  ASSERT_TRUE(succeeds(other->download(*buffer, 512, &word, 4)));
  EXPECT_EQ(word, 0x5a5a5a5au);
  EXPECT_TRUE(fails_with(lost.save_pipeline_cache(), Status::device_lost, {"lost"}));
  // The context that shares nothing with it goes on.
  EXPECT_TRUE(succeeds(context().plan(problem)));
}

// Seen while saving it is sticky, too, and the file is not touched.
TEST(DeviceLost, IsFoundWhileSaving) {
  const fs::path file =
      fs::temp_directory_path() /
      ("vkgemm_lost_" + std::to_string(reinterpret_cast<std::uintptr_t>(&runner())));
  fs::remove(file);
  const auto read = [&] {
    std::ifstream stream(file, std::ios::binary);
    return std::vector<char>{std::istreambuf_iterator<char>(stream), {}};
  };
  BareDevice device;
  ASSERT_TRUE(succeeds(device.create_context()));
  ContextCreateInfo info = device.create_info();
  info.pipeline_cache_file = file;
  const Problem problem = gemm({8, 8, 8}, DataType::f32);
  {
    const auto good = Context::create(info);
    ASSERT_TRUE(succeeds(good));
    ASSERT_TRUE(succeeds(good->plan(problem)));
    ASSERT_TRUE(succeeds(good->save_pipeline_cache()));
  }
  const std::vector<char> before = read();
  ASSERT_FALSE(before.empty());
  failure = {"vkGetPipelineCacheData", VK_ERROR_DEVICE_LOST};
  info.get_instance_proc_addr = failing_instance_proc_addr;
  std::string log;
  info.log = [&](LogLevel level, std::string_view message) {
    if (level != LogLevel::info) log += message;
  };
  {
    const auto made = Context::create(info);
    ASSERT_TRUE(succeeds(made));
    ASSERT_TRUE(succeeds(made->plan(problem)));
    EXPECT_TRUE(fails_with(made->save_pipeline_cache(), Status::device_lost,
                           {"vkGetPipelineCacheData", "VK_ERROR_DEVICE_LOST"}));
    EXPECT_TRUE(made->device_lost());
    EXPECT_TRUE(fails_with(made->plan(problem), Status::device_lost, {"lost"}));
    EXPECT_TRUE(fails_with(made->save_pipeline_cache(), Status::device_lost, {"lost"}));
  }
  EXPECT_EQ(log, "");
  EXPECT_EQ(read(), before);
  fs::remove(file);
}

}  // namespace
}  // namespace vkgemm::test
