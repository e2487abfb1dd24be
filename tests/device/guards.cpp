#include "guards.hpp"

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "problem/convert.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

bool lists_host_memory() {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(runner().physical_device(), nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vkEnumerateDeviceExtensionProperties(runner().physical_device(), nullptr, &count, all.data());
  return std::ranges::any_of(all, [](const VkExtensionProperties& extension) {
    return std::strcmp(extension.extensionName, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0;
  });
}

}  // namespace

Guarded::Guarded(headless::Runner& owner) : device_(owner.device()) {
  void* all = mmap(nullptr, capacity + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return;
  memory_ = static_cast<std::byte*>(all) + guard;
  if (mprotect(memory_, capacity, PROT_READ | PROT_WRITE) != 0) return;
  import();
}

Guarded::~Guarded() {
  vkDestroyBuffer(device_, buffer_, nullptr);
  vkFreeMemory(device_, imported_, nullptr);
  if (memory_ != nullptr) munmap(memory_ - guard, capacity + 2 * guard);
}

bool Guarded::works() const {
  return address_ != 0 && address_ == reinterpret_cast<std::uintptr_t>(memory_);
}

DeviceSpan Guarded::place(std::uint64_t bytes, std::uint64_t alignment, Guard touched) {
  const std::uint64_t aligned = (bytes + alignment - 1) / alignment * alignment;
  begin_ = touched == Guard::before ? 0 : capacity - aligned;
  bytes_ = bytes;
  return {address_ + begin_, bytes};
}

std::optional<std::int64_t> Guarded::offset(const void* address) const {
  const std::int64_t at = static_cast<const std::byte*>(address) - memory_;
  if (at < -std::int64_t{guard} || at >= std::int64_t{capacity + guard}) return std::nullopt;
  return at - static_cast<std::int64_t>(begin_);
}

void Guarded::import() {
  constexpr auto type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = type;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.pNext = &external;
  info.size = capacity;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  if (vkCreateBuffer(device_, &info, nullptr, &buffer_) != VK_SUCCESS) return;

  VkMemoryRequirements needed{};
  vkGetBufferMemoryRequirements(device_, buffer_, &needed);
  VkMemoryHostPointerPropertiesEXT possible{};
  possible.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
  if (vkGetMemoryHostPointerPropertiesEXT(device_, type, memory_, &possible) != VK_SUCCESS) return;
  const std::uint32_t types = needed.memoryTypeBits & possible.memoryTypeBits;
  if (types == 0 || needed.size > capacity) return;

  VkImportMemoryHostPointerInfoEXT pointer{};
  pointer.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  pointer.handleType = type;
  pointer.pHostPointer = memory_;
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.pNext = &pointer;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.pNext = &flags;
  allocation.allocationSize = capacity;
  allocation.memoryTypeIndex = static_cast<std::uint32_t>(std::countr_zero(types));
  if (vkAllocateMemory(device_, &allocation, nullptr, &imported_) != VK_SUCCESS) return;
  if (vkBindBufferMemory(device_, buffer_, imported_, 0) != VK_SUCCESS) return;
  VkBufferDeviceAddressInfo address{};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = buffer_;
  address_ = vkGetBufferDeviceAddress(device_, &address);
}

// An access to a guard ends the process, as it should; but first it says which it was.
void Guards::on_fault(int number, siginfo_t* fault, void*) {
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    if (memories_[i] == nullptr) continue;  // no test of this device has any
    if (const auto offset = memories_[i]->offset(fault->si_addr)) {
      std::fprintf(stderr, "access outside %.*s, at byte %lld of %llu\n  %s\n",
                   static_cast<int>(running_.names[i].size()), running_.names[i].data(),
                   static_cast<long long>(*offset),
                   static_cast<unsigned long long>(memories_[i]->bytes()), running_.text.c_str());
    }
  }
  signal(number, SIG_DFL);  // the access is tried again, and fails for good
}

void Guards::begin(bool trusts) {
  if (!on_cpu() || !lists_host_memory()) return;
  own_runner_ =
      another_runner({.extensions = {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME}}, trusts);
  for (auto& memory : memories_) memory = std::make_unique<Guarded>(*own_runner_);
}

void Guards::TearDownTestSuite() {
  for (auto& memory : memories_) memory.reset();
  own_runner_.reset();
}

void Guards::SetUp() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before_);
}

void Guards::TearDown() {
  running_ = {};
  sigaction(SIGSEGV, &before_, nullptr);
}

std::string Guards::why_not() {
  if (!on_cpu()) return "device addresses of " + caps().name + " are not the host's";
  if (!lists_host_memory()) {
    return caps().name + " does not list " VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
  }
  if (!std::ranges::all_of(memories_, &Guarded::works, &std::unique_ptr<Guarded>::operator*)) {
    return caps().name + " gives imported host memory other addresses than the host";
  }
  return {};
}

void Guards::fill(const Guarded& memory, const Problem& problem, DeviceSpan Operands::*operand,
                  std::uint64_t seed) {
  std::optional<DataType> read;
  if (operand == &Operands::a) read = problem.a.type;
  if (operand == &Operands::b || operand == &Operands::b_right) read = problem.b.type;
  if (operand == &Operands::c) read = problem.c.type;
  if (operand == &Operands::bias) read = problem.epilogue.bias_type;
  std::memset(memory.data(), 0xff, memory.bytes());
  if (!read) return;
  for (std::uint64_t e = 0; e < memory.bytes() / size_in_bytes(*read); ++e) {
    store_element(memory.data(), *read, e, fill_value(Fill::random, seed, e));
  }
}

}  // namespace vkgemm::test

#endif
