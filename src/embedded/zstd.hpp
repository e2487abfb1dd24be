// zstd.hpp: decompresses frames of zstd.
#pragma once

#include <cstddef>
#include <span>

namespace vkgemm::embedded {

// A block of zstd decompresses to at most so many bytes.
inline constexpr std::size_t most_block_bytes = std::size_t{128} << 10;

// Decompresses the first `wanted` bytes of a frame, and the rest of their block, to `out`. It must
// have room for the whole frame, or for most_block_bytes after those that are wanted. Returns false
// if the frame is damaged or too short.
bool decompress(std::span<const std::byte> frame, std::span<std::byte> out, std::size_t wanted);

}  // namespace vkgemm::embedded
