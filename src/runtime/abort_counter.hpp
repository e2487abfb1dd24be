// abort_counter.hpp: a word that the device counts in and the host reads.
#pragma once

#include <vulkan/vulkan_core.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "device/buffer.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// The number of aborted barriers inside dispatches (shaders/lib/schedule/device_barrier.glsl).
// The only memory that a context holds, and only for plans that have such a barrier. All members
// may be called from several threads at once.
class AbortCounter {
 public:
  // `functions` must outlive the counter. `queue_families`: those that may count at a time; none:
  // any, but one at a time.
  AbortCounter(const DeviceFunctions& functions, const VkPhysicalDeviceMemoryProperties& memory,
               VkDevice device, std::vector<std::uint32_t> queue_families);
  AbortCounter(const AbortCounter&) = delete;
  AbortCounter& operator=(const AbortCounter&) = delete;

  // Where the device counts; allocated by the first call. The driver's error if it has no memory.
  Result<VkDeviceAddress> address();

  // The count of dispatches that have finished, and maybe by others.
  std::uint32_t count() const noexcept;

 private:
  const VkPhysicalDeviceMemoryProperties memory_properties_;
  const std::vector<std::uint32_t> queue_families_;
  std::mutex allocating_;
  Buffer buffer_;
  std::atomic<const volatile std::uint32_t*> word_ = nullptr;
};

}  // namespace vkgemm
