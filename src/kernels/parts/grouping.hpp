// grouping.hpp: groups of rows or of K, whose offsets the device reads.
#pragma once

#include <cstdint>

#include "kernels/part.hpp"

namespace vkgemm {

// The word of the workspace that tells of bad offsets.
inline constexpr std::uint64_t bad_group_bytes = sizeof(std::uint32_t);

}  // namespace vkgemm
