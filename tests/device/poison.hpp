// poison.hpp: makes variables that a shader reads before it writes them show in its results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vkgemm::test {

// A module whose variables of storage class Function and Private begin with NaN, large integers and
// true, and whose OpUndef are constants of such values. Variables in shared memory and pointers
// stay as they are. `words` has no specialization constants, so that the lengths of all arrays are
// known.
std::vector<std::uint32_t> poison(std::span<const std::uint32_t> words);

}  // namespace vkgemm::test
