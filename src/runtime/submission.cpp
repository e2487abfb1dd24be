#include "runtime/submission.hpp"

namespace vkgemm {

void record_barrier(const DeviceFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags stage,
                    VkAccessFlags access) {
  const VkMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                .pNext = nullptr,
                                .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                .dstAccessMask = access};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, stage, 0, 1, &barrier, 0,
                          nullptr, 0, nullptr);
}

Submission::~Submission() {
  if (in_flight_) {
    buffer_.abandon();
    return;
  }
  vk_.vkDestroyFence(queue_.device, fence_, nullptr);
  vk_.vkDestroyCommandPool(queue_.device, pool_, nullptr);
}

Result<void> Submission::allocate(const VkPhysicalDeviceMemoryProperties& memory,
                                  VkDeviceSize bytes) {
  auto allocated = buffer_.allocate(memory, bytes + span_alignment);
  if (!allocated) return allocated;
  address_ = aligned_span(buffer_.address());
  mapped_ = buffer_.mapped() + (address_ - buffer_.address());
  return {};
}

Result<VkCommandBuffer> Submission::begin() {
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = queue_.family;
  VkResult result = vk_.vkCreateCommandPool(queue_.device, &pool_info, nullptr, &pool_);
  if (result != VK_SUCCESS) return driver_error("vkCreateCommandPool", result);
  VkCommandBufferAllocateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffer_info.commandPool = pool_;
  buffer_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  buffer_info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  result = vk_.vkAllocateCommandBuffers(queue_.device, &buffer_info, &commands);
  if (result != VK_SUCCESS) return driver_error("vkAllocateCommandBuffers", result);
  VkFenceCreateInfo fence_info{};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  result = vk_.vkCreateFence(queue_.device, &fence_info, nullptr, &fence_);
  if (result != VK_SUCCESS) return driver_error("vkCreateFence", result);
  VkCommandBufferBeginInfo begin_info{};
  begin_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin_info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  result = vk_.vkBeginCommandBuffer(commands, &begin_info);
  if (result != VK_SUCCESS) return driver_error("vkBeginCommandBuffer", result);
  return commands;
}

Result<bool> Submission::run(std::uint64_t timeout_ms,
                             const std::function<Result<void>(VkCommandBuffer)>& record) {
  const Result<VkCommandBuffer> commands = begin();
  if (!commands) return commands.error();
  if (Result<void> recorded = record(*commands); !recorded) return recorded.error();
  record_barrier(vk_, *commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  VkResult result = vk_.vkEndCommandBuffer(*commands);
  if (result != VK_SUCCESS) return driver_error("vkEndCommandBuffer", result);
  VkSubmitInfo submission{};
  submission.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submission.commandBufferCount = 1;
  submission.pCommandBuffers = &*commands;
  result = vk_.vkQueueSubmit(queue_.queue, 1, &submission, fence_);
  if (result != VK_SUCCESS) return driver_error("vkQueueSubmit", result);
  constexpr std::uint64_t nanoseconds = 1'000'000;
  result = vk_.vkWaitForFences(queue_.device, 1, &fence_, VK_TRUE, timeout_ms * nanoseconds);
  // A wait that fails says nothing of the work; on a lost device nothing runs.
  in_flight_ = result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST;
  if (result != VK_SUCCESS && result != VK_TIMEOUT) return driver_error("vkWaitForFences", result);
  return result == VK_SUCCESS;
}

}  // namespace vkgemm
