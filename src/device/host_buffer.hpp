// host_buffer.hpp: memory that the device uses by its address and the host by a pointer.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/vk.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// A storage buffer in host-coherent memory, mapped as long as it lives.
class HostBuffer {
 public:
  // `functions` must outlive the buffer.
  HostBuffer(const DeviceFunctions& functions, VkDevice device)
      : functions_(functions), device_(device) {}
  ~HostBuffer() { free(); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  // Once. In device-local memory if there is such. After an error there is no buffer. Two queue
  // families or more share it; else the one that uses it owns it.
  Result<void> allocate(const VkPhysicalDeviceMemoryProperties& memory, VkDeviceSize bytes,
                        std::span<const std::uint32_t> queue_families = {});

  // Leaves it to a device that may use it for ever.
  void abandon() noexcept;

  VkDeviceAddress address() const noexcept { return address_; }
  std::byte* mapped() const noexcept { return mapped_; }

 private:
  Result<void> allocate_memory(const VkPhysicalDeviceMemoryProperties& memory, VkDeviceSize bytes,
                               std::span<const std::uint32_t> queue_families);
  void free() noexcept;

  const DeviceFunctions& functions_;
  const VkDevice device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkDeviceAddress address_ = 0;
  std::byte* mapped_ = nullptr;
};

}  // namespace vkgemm
