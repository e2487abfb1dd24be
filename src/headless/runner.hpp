// runner.hpp: a headless Vulkan application in miniature: what a user of vkgemm owns. Instance,
// device, one compute queue, buffers from VMA, timestamps. Used by the tool, the tests and the
// benchmarks; the library itself never sees it.
#pragma once

#include <volk.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vkgemm/vkgemm.hpp"

namespace vkgemm::headless {

struct RunnerOptions {
  // A device's index (devices.hpp), or part of its name, case-insensitive. Empty: the best
  // one (discrete, integrated, virtual, CPU; then the first with the more capable path).
  std::string device;
  // VK_LAYER_KHRONOS_validation; also switched on by the environment variable VKGEMM_VALIDATION=1.
  // With synchronization validation, which sees copies and fills, but no access by device address
  // (hazards.hpp).
  bool validation = false;
  std::function<void(std::string_view)> on_validation_message;  // default: prints and counts
  bool statistics = false;  // enable VK_KHR_pipeline_executable_properties if there
  // To enable beside those that vkgemm wants, which are merged into the chain.
  std::vector<const char*> extensions;
  VkPhysicalDeviceFeatures2* features = nullptr;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;  // of the context; null: volk's
  LogCallback log;
  VkPipelineCache pipeline_cache = VK_NULL_HANDLE;
  std::string pipeline_cache_file;
  SelfTest self_test;           // as ContextCreateInfo has it
  bool runs_self_test = false;  // on the runner's queue
  bool reads_verdicts = false;  // of default_verdict_file()
  std::string tuning_file;
  bool reads_default_tuning_file = false;
};

class Runner;

// Device memory with an address. `mapped` is set for host-visible buffers.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  VkBuffer handle() const noexcept { return buffer_; }
  VkDeviceAddress address() const noexcept { return address_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  void* mapped() const noexcept { return mapped_; }
  DeviceSpan span() const noexcept { return {address_, bytes_}; }
  DeviceSpan span(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return {address_ + offset, bytes};
  }

 private:
  friend class Runner;
  Runner* runner_ = nullptr;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  void* allocation_ = nullptr;  // VmaAllocation
  VkDeviceAddress address_ = 0;
  std::uint64_t bytes_ = 0;
  void* mapped_ = nullptr;
};

enum class Memory : std::uint8_t { device, upload, readback };

class Runner {
 public:
  static Result<std::unique_ptr<Runner>> create(const RunnerOptions& options = {});
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const Context& context() const noexcept;
  const DeviceCaps& caps() const noexcept;
  VkInstance instance() const noexcept;
  VkPhysicalDevice physical_device() const noexcept;
  VkDevice device() const noexcept;
  VkQueue queue() const noexcept;
  std::uint32_t queue_family() const noexcept;

  // At a multiple of 256. Zero bytes are rounded up to 16, so that every buffer has an address.
  Result<Buffer> allocate(std::uint64_t bytes, Memory memory = Memory::device);

  // Through staging buffers of bounded size; any number of bytes.
  Result<void> upload(const Buffer& to, std::uint64_t offset, const void* data,
                      std::uint64_t bytes);
  Result<void> download(const Buffer& from, std::uint64_t offset, void* data, std::uint64_t bytes);
  Result<void> fill(const Buffer& to, std::uint32_t word);  // whole buffer

  // Records through `commands`, submits and waits. Whatever the error, the runner stays usable
  // (VK_ERROR_DEVICE_LOST is passed on to the context).
  Result<void> submit(const std::function<Result<void>(VkCommandBuffer)>& commands);

  // Times `repeats` executions of `commands` by GPU timestamps, a full barrier between each, after
  // a warm-up of at least `warm_up_ms` of wall time, and longer while executions become faster.
  // Milliseconds each, in the order measured. `before` is recorded before each execution and not
  // timed: to flush caches, say. Device timestamps unsupported: unsupported.
  using Commands = std::function<Result<void>(VkCommandBuffer)>;
  Result<std::vector<double>> time(const Commands& commands, std::uint32_t repeats,
                                   double warm_up_ms = 300.0, const Commands& before = {});

  // True if the validation layers look on; the number of their messages since creation.
  bool is_validated() const noexcept;
  std::uint64_t validation_messages() const noexcept;

 private:
  friend class Buffer;
  Runner();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vkgemm::headless
