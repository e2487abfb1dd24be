// arithmetic.hpp: whole numbers, rounded up.
#pragma once

#include <cstdint>

namespace vkgemm {

constexpr std::uint64_t divided_up(std::uint64_t value, std::uint64_t divisor) noexcept {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

// To the next multiple.
constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t multiple) noexcept {
  return divided_up(value, multiple) * multiple;
}

}  // namespace vkgemm
