// poison.hpp: makes reads of unwritten shader variables visible in results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vkgemm::test {

// Returns the module with initialisers for its variables of storage class Function and Private:
// NaN, large integers and true. OpUndef in functions gets the same values. Shared memory and
// pointers are unchanged. `words` must have no specialization constants, because array lengths must
// be known.
std::vector<std::uint32_t> poison(std::span<const std::uint32_t> words);

}  // namespace vkgemm::test
