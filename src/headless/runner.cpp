#include "headless/runner.hpp"

#include <vk_mem_alloc.h>

#include <algorithm>
#include <cstring>

#include "device/vk.hpp"
#include "headless/devices.hpp"
#include "headless/instance.hpp"
#include "headless/stopwatch.hpp"

namespace vkgemm::headless {
namespace {

// The alignment that vkgemm wants of a workspace, the strictest of its operands.
constexpr VkDeviceSize buffer_alignment = 256;

constexpr std::uint64_t kStagingBytes = 64ULL * 1024 * 1024;
bool has_device_extension(VkPhysicalDevice device, const char* wanted) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  return std::any_of(all.begin(), all.end(), [&](const VkExtensionProperties& extension) {
    return std::strcmp(extension.extensionName, wanted) == 0;
  });
}

}  // namespace

struct Runner::Impl {
  std::unique_ptr<Instance> instance;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  std::optional<Requirements> requirements;
  // The extensions and features that are enabled: those of the options, pipeline statistics if
  // asked for, and the requirements.
  std::vector<const char*> extensions;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  std::uint32_t timestamp_bits = 0;
  double timestamp_period_ns = 1.0;
  std::uint64_t max_buffer_bytes = 0;
  VmaAllocator allocator = nullptr;
  VkCommandPool command_pool = VK_NULL_HANDLE;
  VkCommandBuffer command_buffer = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  std::unique_ptr<Stopwatch> stopwatch;  // null: the queue keeps no time
  Buffer staging_up;
  Buffer staging_down;
  std::optional<Context> context;

  Result<void> create_device(const RunnerOptions& options);
  Result<void> create_allocator();
  Result<void> create_command_objects();
  Result<void> choose_queue_family();
  Result<void> submit_and_wait();

  ~Impl() {
    context.reset();
    staging_up = Buffer();
    staging_down = Buffer();
    stopwatch.reset();
    if (device != VK_NULL_HANDLE) {
      vkDestroyFence(device, fence, nullptr);
      vkDestroyCommandPool(device, command_pool, nullptr);
    }
    if (allocator != nullptr) vmaDestroyAllocator(allocator);
    if (device != VK_NULL_HANDLE) vkDestroyDevice(device, nullptr);
  }
};

Result<void> Runner::Impl::choose_queue_family() {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, families.data());
  std::optional<std::uint32_t> best;
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if (!best || (families[*best].timestampValidBits == 0 && families[i].timestampValidBits != 0)) {
      best = i;
    }
  }
  if (!best) return Error{Status::missing_feature, "the device has no compute queue"};
  queue_family = *best;
  timestamp_bits = families[*best].timestampValidBits;
  return {};
}

Result<void> Runner::Impl::create_device(const RunnerOptions& options) {
  auto vulkan13 = make_struct<VkPhysicalDeviceVulkan13Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
  auto properties =
      make_struct<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &vulkan13;
  vkGetPhysicalDeviceProperties2(physical_device, &properties);
  timestamp_period_ns = static_cast<double>(properties.properties.limits.timestampPeriod);
  max_buffer_bytes = vulkan13.maxBufferSize;

  if (auto chosen = choose_queue_family(); !chosen) return chosen.error();
  const float priority = 1.0f;
  auto queue_info =
      make_struct<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue_info.queueFamilyIndex = queue_family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;

  extensions.assign(requirements->extensions().begin(), requirements->extensions().end());
  extensions.insert(extensions.end(), options.extensions.begin(), options.extensions.end());
  if (options.features != nullptr) features = *options.features;
  if (options.statistics &&
      has_device_extension(physical_device, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    statistics.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
    statistics.pipelineExecutableInfo = VK_TRUE;
    statistics.pNext = features.pNext;
    features.pNext = &statistics;
  }
  requirements->merge_into(features);
  auto info = make_struct<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue_info;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult result = vkCreateDevice(physical_device, &info, nullptr, &device);
  if (result != VK_SUCCESS) return driver_error("vkCreateDevice", result);
  vkGetDeviceQueue(device, queue_family, 0, &queue);
  return {};
}

Result<void> Runner::Impl::create_allocator() {
  VmaAllocatorCreateInfo info{};
  info.flags = VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  info.vulkanApiVersion = VK_API_VERSION_1_3;
  info.instance = instance->handle();
  info.physicalDevice = physical_device;
  info.device = device;
  VmaVulkanFunctions functions{};
  vmaImportVulkanFunctionsFromVolk(&info, &functions);
  info.pVulkanFunctions = &functions;
  const VkResult result = vmaCreateAllocator(&info, &allocator);
  if (result != VK_SUCCESS) return driver_error("vmaCreateAllocator", result);
  return {};
}

Result<void> Runner::Impl::create_command_objects() {
  auto pool = make_struct<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = queue_family;
  VkResult result = vkCreateCommandPool(device, &pool, nullptr, &command_pool);
  if (result != VK_SUCCESS) return driver_error("vkCreateCommandPool", result);

  auto buffer =
      make_struct<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  buffer.commandPool = command_pool;
  buffer.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  buffer.commandBufferCount = 1;
  result = vkAllocateCommandBuffers(device, &buffer, &command_buffer);
  if (result != VK_SUCCESS) return driver_error("vkAllocateCommandBuffers", result);

  const auto fence_info = make_struct<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  result = vkCreateFence(device, &fence_info, nullptr, &fence);
  if (result != VK_SUCCESS) return driver_error("vkCreateFence", result);
  return {};
}

Result<void> Runner::Impl::submit_and_wait() {
  const auto check = [this](const char* call, VkResult result) -> Result<void> {
    if (result == VK_SUCCESS) return {};
    if (result == VK_ERROR_DEVICE_LOST) context->notify_device_lost();
    return driver_error(call, result);
  };
  auto submission = make_struct<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  submission.commandBufferCount = 1;
  submission.pCommandBuffers = &command_buffer;
  if (auto reset = check("vkResetFences", vkResetFences(device, 1, &fence)); !reset) return reset;
  auto submitted = check("vkQueueSubmit", vkQueueSubmit(queue, 1, &submission, fence));
  if (!submitted) return submitted;
  return check("vkWaitForFences", vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
}

Runner::Runner() : impl_(std::make_unique<Impl>()) {}
Runner::~Runner() = default;

Result<std::unique_ptr<Runner>> Runner::create(const RunnerOptions& options) {
  std::unique_ptr<Runner> runner(new Runner());
  Impl& impl = *runner->impl_;
  auto instance = Instance::create(options.validation, options.on_validation_message);
  if (!instance) return instance.error();
  impl.instance = std::move(*instance);

  auto devices = find_devices(*impl.instance);
  if (!devices) return devices.error();
  auto chosen = choose_device(*devices, options.device);
  if (!chosen) return chosen.error();
  FoundDevice& device = **chosen;
  if (!device.requirements) {
    return Error{Status::missing_feature, "device " + std::to_string(device.index) + ", " +
                                              device.name +
                                              ", cannot run vkgemm: " + device.reason};
  }
  impl.physical_device = device.handle;
  impl.requirements = std::move(device.requirements);

  if (auto made = impl.create_device(options); !made) return made.error();
  if (auto made = impl.create_allocator(); !made) return made.error();
  if (auto made = impl.create_command_objects(); !made) return made.error();
  if (impl.timestamp_bits != 0) {
    auto made = Stopwatch::create(impl.device, impl.timestamp_bits, impl.timestamp_period_ns);
    if (!made) return made.error();
    impl.stopwatch = std::move(*made);
  }

  ContextCreateInfo info;
  info.instance = impl.instance->handle();
  info.physical_device = impl.physical_device;
  info.device = impl.device;
  info.get_instance_proc_addr = options.get_instance_proc_addr != nullptr
                                    ? options.get_instance_proc_addr
                                    : vkGetInstanceProcAddr;
  info.enabled_extensions = impl.extensions;
  info.enabled_features = &impl.features;
  info.pipeline_cache = options.pipeline_cache;
  info.pipeline_cache_file = options.pipeline_cache_file;
  info.tuning_file = options.tuning_file;
  info.read_default_tuning_file = options.reads_default_tuning_file;
  info.log = options.log;
  info.self_test = options.self_test;
  if (options.runs_self_test) {
    info.self_test.queue = impl.queue;
    info.self_test.queue_family = impl.queue_family;
  }
  info.self_test.read_default_file = false;  // `reads_verdicts` says whether
  if (options.reads_verdicts) {
    info.self_test.file = default_verdict_file(impl.requirements->caps());
  }
  auto context = Context::create(info);
  if (!context) return context.error();
  impl.context.emplace(std::move(*context));
  return runner;
}

const Context& Runner::context() const noexcept { return *impl_->context; }
const DeviceCaps& Runner::caps() const noexcept { return impl_->context->caps(); }
VkInstance Runner::instance() const noexcept { return impl_->instance->handle(); }
VkPhysicalDevice Runner::physical_device() const noexcept { return impl_->physical_device; }
VkDevice Runner::device() const noexcept { return impl_->device; }
VkQueue Runner::queue() const noexcept { return impl_->queue; }
std::uint32_t Runner::queue_family() const noexcept { return impl_->queue_family; }
bool Runner::is_validated() const noexcept { return impl_->instance->is_validated(); }
std::uint64_t Runner::validation_messages() const noexcept {
  return impl_->instance->validation_messages();
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(runner_, other.runner_);
  std::swap(buffer_, other.buffer_);
  std::swap(allocation_, other.allocation_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Buffer::~Buffer() {
  if (runner_ == nullptr) return;
  vmaDestroyBuffer(runner_->impl_->allocator, buffer_, static_cast<VmaAllocation>(allocation_));
}

Result<Buffer> Runner::allocate(std::uint64_t bytes, Memory memory) {
  Buffer buffer;
  buffer.bytes_ = std::max<std::uint64_t>(bytes, 16);
  auto info = make_struct<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = (buffer.bytes_ + 15) / 16 * 16;  // whole words, for fill()
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (bytes > impl_->max_buffer_bytes) {
    return Error{Status::out_of_device_memory, "a buffer of " + std::to_string(bytes) +
                                                   " bytes is wanted, the device allows " +
                                                   std::to_string(impl_->max_buffer_bytes)};
  }
  VmaAllocationCreateInfo allocation{};
  allocation.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
  if (memory != Memory::device) {
    allocation.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
    allocation.flags =
        VMA_ALLOCATION_CREATE_MAPPED_BIT |
        (memory == Memory::upload ? VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT
                                  : VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT);
    allocation.requiredFlags = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  }
  VmaAllocation handle = nullptr;
  VmaAllocationInfo placed{};
  const VkResult result = vmaCreateBufferWithAlignment(
      impl_->allocator, &info, &allocation, buffer_alignment, &buffer.buffer_, &handle, &placed);
  if (result != VK_SUCCESS) {
    Error error = driver_error("vmaCreateBufferWithAlignment", result);
    error.message += " for a buffer of " + std::to_string(bytes) + " bytes";
    return error;
  }
  buffer.runner_ = this;
  buffer.allocation_ = handle;
  buffer.mapped_ = memory == Memory::device ? nullptr : placed.pMappedData;
  auto address =
      make_struct<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  address.buffer = buffer.buffer_;
  buffer.address_ = vkGetBufferDeviceAddress(impl_->device, &address);
  return buffer;
}

Result<void> Runner::upload(const Buffer& to, std::uint64_t offset, const void* data,
                            std::uint64_t bytes) {
  if (bytes > 0 && impl_->staging_up.bytes() == 0) {
    auto staging = allocate(kStagingBytes, Memory::upload);
    if (!staging) return staging.error();
    impl_->staging_up = std::move(*staging);
  }
  for (std::uint64_t done = 0; done < bytes; done += kStagingBytes) {
    const std::uint64_t piece = std::min(kStagingBytes, bytes - done);
    std::memcpy(impl_->staging_up.mapped(), static_cast<const char*>(data) + done, piece);
    const VkBufferCopy copy{0, offset + done, piece};
    auto submitted = submit([&](VkCommandBuffer commands) -> Result<void> {
      vkCmdCopyBuffer(commands, impl_->staging_up.handle(), to.handle(), 1, &copy);
      return {};
    });
    if (!submitted) return submitted;
  }
  return {};
}

Result<void> Runner::download(const Buffer& from, std::uint64_t offset, void* data,
                              std::uint64_t bytes) {
  if (bytes > 0 && impl_->staging_down.bytes() == 0) {
    auto staging = allocate(kStagingBytes, Memory::readback);
    if (!staging) return staging.error();
    impl_->staging_down = std::move(*staging);
  }
  for (std::uint64_t done = 0; done < bytes; done += kStagingBytes) {
    const std::uint64_t piece = std::min(kStagingBytes, bytes - done);
    const VkBufferCopy copy{offset + done, 0, piece};
    auto submitted = submit([&](VkCommandBuffer commands) -> Result<void> {
      vkCmdCopyBuffer(commands, from.handle(), impl_->staging_down.handle(), 1, &copy);
      return {};
    });
    if (!submitted) return submitted;
    std::memcpy(static_cast<char*>(data) + done, impl_->staging_down.mapped(), piece);
  }
  return {};
}

Result<void> Runner::fill(const Buffer& to, std::uint32_t word) {
  return submit([&](VkCommandBuffer commands) -> Result<void> {
    vkCmdFillBuffer(commands, to.handle(), 0, VK_WHOLE_SIZE, word);
    return {};
  });
}

Result<std::vector<double>> Runner::time(const Commands& commands, std::uint32_t repeats,
                                         double warm_up_ms, const Commands& before) {
  if (impl_->stopwatch == nullptr) {
    return Error{Status::unsupported, "the device's compute queue has no timestamps"};
  }
  return impl_->stopwatch->time([this](const Commands& batch) { return submit(batch); }, commands,
                                repeats, warm_up_ms, before);
}

Result<void> Runner::submit(const std::function<Result<void>(VkCommandBuffer)>& commands) {
  auto begin = make_struct<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  VkResult result = vkBeginCommandBuffer(impl_->command_buffer, &begin);
  if (result != VK_SUCCESS) return driver_error("vkBeginCommandBuffer", result);
  record_full_barrier(impl_->command_buffer);
  auto recorded = commands(impl_->command_buffer);
  record_full_barrier(impl_->command_buffer);
  result = vkEndCommandBuffer(impl_->command_buffer);
  if (!recorded) return recorded;
  if (result != VK_SUCCESS) return driver_error("vkEndCommandBuffer", result);
  return impl_->submit_and_wait();
}

}  // namespace vkgemm::headless
