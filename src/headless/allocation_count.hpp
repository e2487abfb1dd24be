// allocation_count.hpp: how often the global operator new was called. Linking
// vkgemm_allocation_count replaces it for the whole program, so only programs that count do.
#pragma once

#include <cstdint>
#include <optional>

namespace vkgemm::headless {

// By this thread, so far: a driver's own threads may allocate what they like. Nothing in builds
// with a sanitizer, which has an operator new of its own.
std::optional<std::uint64_t> allocation_count() noexcept;

}  // namespace vkgemm::headless
