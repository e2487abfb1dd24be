// submission.hpp: one command buffer of the self-test, with its memory, submitted and waited for.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "device/buffer.hpp"
#include "device/vk.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// The addresses of operands in a submission's memory are multiples of this.
inline constexpr VkDeviceSize span_alignment = 256;
constexpr VkDeviceSize aligned_span(VkDeviceSize bytes) noexcept {
  return (bytes + span_alignment - 1) / span_alignment * span_alignment;
}

// Records a barrier that makes what compute shaders wrote visible to a stage.
void record_barrier(const DeviceFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags stage,
                    VkAccessFlags access);

// A queue that the application lent. The submitter synchronises it.
struct LentQueue {
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t family = 0;
};

class Submission {
 public:
  // `functions` must outlive the submission.
  Submission(const DeviceFunctions& functions, const LentQueue& queue)
      : vk_(functions), queue_(queue), buffer_(functions, queue.device) {}
  // Leaks everything if the device may still use it.
  ~Submission();
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  // Host-visible memory, at most once.
  Result<void> allocate(const VkPhysicalDeviceMemoryProperties& memory, VkDeviceSize bytes);
  std::byte* mapped() const noexcept { return mapped_; }
  VkDeviceAddress address() const noexcept { return address_; }

  // Submits what `record` records, and waits. False if it is not done after that time.
  Result<bool> run(std::uint64_t timeout_ms,
                   const std::function<Result<void>(VkCommandBuffer)>& record);

  // True if the device may still be at it.
  bool in_flight() const noexcept { return in_flight_; }

 private:
  Result<VkCommandBuffer> begin();

  const DeviceFunctions& vk_;
  const LentQueue queue_;
  Buffer buffer_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::byte* mapped_ = nullptr;
  VkDeviceAddress address_ = 0;
  bool in_flight_ = false;
};

}  // namespace vkgemm
