// buffer.hpp: memory that the device uses by its address, and the host by a pointer if it is
// mapped.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/vk.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

enum class Placement : std::uint8_t {
  mapped,  // host-coherent, mapped as long as the buffer lives; device-local, too, if there is such
  device,  // device-local, not mapped
};

// A storage buffer, also a source and destination of copies.
class Buffer {
 public:
  // `functions` must outlive the buffer.
  Buffer(const DeviceFunctions& functions, VkDevice device)
      : functions_(functions), device_(device) {}
  ~Buffer() { free(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Replaces what was allocated before. After an error there is no buffer. Two queue families or
  // more share it; else the one that uses it owns it.
  Result<void> allocate(const VkPhysicalDeviceMemoryProperties& memory, VkDeviceSize bytes,
                        Placement placement = Placement::mapped,
                        std::span<const std::uint32_t> queue_families = {});

  // Leaves it to a device that may use it for ever.
  void abandon() noexcept;

  VkBuffer handle() const noexcept { return buffer_; }
  VkDeviceAddress address() const noexcept { return address_; }
  std::byte* mapped() const noexcept { return mapped_; }

 private:
  Result<void> allocate_memory(const VkPhysicalDeviceMemoryProperties& memory, VkDeviceSize bytes,
                               Placement placement, std::span<const std::uint32_t> queue_families);
  void free() noexcept;

  const DeviceFunctions& functions_;
  const VkDevice device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkDeviceAddress address_ = 0;
  std::byte* mapped_ = nullptr;
};

}  // namespace vkgemm
