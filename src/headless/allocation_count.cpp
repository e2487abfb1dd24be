#include "headless/allocation_count.hpp"

#ifdef VKGEMM_COUNT_ALLOCATIONS

#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t allocations = 0;

void* allocate(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

std::optional<std::uint64_t> vkgemm::headless::allocation_count() noexcept { return allocations; }

#else

std::optional<std::uint64_t> vkgemm::headless::allocation_count() noexcept { return std::nullopt; }

#endif
