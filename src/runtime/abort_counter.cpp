#include "runtime/abort_counter.hpp"

#include <utility>

namespace vkgemm {
namespace {

constexpr VkDeviceSize buffer_bytes = 64;

}  // namespace

AbortCounter::AbortCounter(const DeviceFunctions& functions,
                           const VkPhysicalDeviceMemoryProperties& memory, VkDevice device,
                           std::vector<std::uint32_t> queue_families)
    : memory_properties_(memory),
      queue_families_(std::move(queue_families)),
      buffer_(functions, device) {}

Result<VkDeviceAddress> AbortCounter::address() {
  const std::lock_guard lock(allocating_);
  if (word_.load() == nullptr) {
    const auto allocated =
        buffer_.allocate(memory_properties_, buffer_bytes, Placement::mapped, queue_families_);
    if (!allocated) return allocated.error();
    auto* const word = reinterpret_cast<volatile std::uint32_t*>(buffer_.mapped());
    *word = 0;
    word_ = word;
  }
  return buffer_.address();
}

std::uint32_t AbortCounter::count() const noexcept {
  const volatile std::uint32_t* const word = word_.load(std::memory_order_relaxed);
  return word != nullptr ? *word : 0;
}

}  // namespace vkgemm
