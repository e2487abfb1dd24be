// random.hpp: names that no other process chooses.
#pragma once

#include <cstdint>
#include <random>

namespace vkgemm {

inline std::uint64_t random_number() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

}  // namespace vkgemm
