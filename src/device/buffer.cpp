#include "device/buffer.hpp"

#include <cstdint>
#include <optional>

#include "base/text.hpp"

namespace vkgemm {
namespace {

constexpr VkMemoryPropertyFlags coherent =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

std::optional<std::uint32_t> find_memory_type(const VkPhysicalDeviceMemoryProperties& memory,
                                              std::uint32_t allowed, VkMemoryPropertyFlags needed) {
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    if ((allowed >> i & 1) != 0 && (memory.memoryTypes[i].propertyFlags & needed) == needed) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> Buffer::allocate(const VkPhysicalDeviceMemoryProperties& memory, VkDeviceSize bytes,
                              Placement placement, std::span<const std::uint32_t> queue_families) {
  free();
  auto allocated = allocate_memory(memory, bytes, placement, queue_families);
  if (!allocated) free();
  return allocated;
}

void Buffer::abandon() noexcept {
  buffer_ = VK_NULL_HANDLE;
  memory_ = VK_NULL_HANDLE;
}

void Buffer::free() noexcept {
  if (buffer_ != VK_NULL_HANDLE) functions_.vkDestroyBuffer(device_, buffer_, nullptr);
  if (memory_ != VK_NULL_HANDLE) functions_.vkFreeMemory(device_, memory_, nullptr);
  abandon();
}

Result<void> Buffer::allocate_memory(const VkPhysicalDeviceMemoryProperties& memory,
                                     VkDeviceSize bytes, Placement placement,
                                     std::span<const std::uint32_t> queue_families) {
  const bool shared = queue_families.size() > 1;
  const VkBufferCreateInfo buffer_info{
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .pNext = nullptr,
      .flags = 0,
      .size = bytes,
      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
      .sharingMode = shared ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
      .queueFamilyIndexCount = shared ? static_cast<std::uint32_t>(queue_families.size()) : 0,
      .pQueueFamilyIndices = shared ? queue_families.data() : nullptr,
  };
  VkResult result = functions_.vkCreateBuffer(device_, &buffer_info, nullptr, &buffer_);
  if (result != VK_SUCCESS) return driver_error("vkCreateBuffer", result);

  VkMemoryRequirements requirements{};
  functions_.vkGetBufferMemoryRequirements(device_, buffer_, &requirements);
  const VkMemoryAllocateFlagsInfo flags{
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
      .pNext = nullptr,
      .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
      .deviceMask = 0,
  };
  // Mapped memory of the device if there is such memory, and some of it left.
  const bool mapped = placement == Placement::mapped;
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  result = VK_ERROR_FEATURE_NOT_PRESENT;
  for (const VkMemoryPropertyFlags needed :
       {mapped ? coherent | local : local, mapped ? coherent : local}) {
    const auto type = find_memory_type(memory, requirements.memoryTypeBits, needed);
    if (!type) continue;
    const VkMemoryAllocateInfo memory_info{
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = &flags,
        .allocationSize = requirements.size,
        .memoryTypeIndex = *type,
    };
    result = functions_.vkAllocateMemory(device_, &memory_info, nullptr, &memory_);
    if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY) break;
  }
  if (result == VK_ERROR_FEATURE_NOT_PRESENT) {
    return Error{Status::driver_error, concat("no ", mapped ? "host-coherent" : "device-local",
                                              " memory for a storage buffer")};
  }
  if (result != VK_SUCCESS) return driver_error("vkAllocateMemory", result);
  result = functions_.vkBindBufferMemory(device_, buffer_, memory_, 0);
  if (result != VK_SUCCESS) return driver_error("vkBindBufferMemory", result);
  if (mapped) {
    void* pointer = nullptr;
    result = functions_.vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &pointer);
    if (result != VK_SUCCESS) return driver_error("vkMapMemory", result);
    mapped_ = static_cast<std::byte*>(pointer);
  }
  const VkBufferDeviceAddressInfo address_info{
      .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
      .pNext = nullptr,
      .buffer = buffer_,
  };
  address_ = functions_.vkGetBufferDeviceAddress(device_, &address_info);
  return {};
}

}  // namespace vkgemm
