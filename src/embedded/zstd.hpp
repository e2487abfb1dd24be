// zstd.hpp: decompresses frames of zstd.
#pragma once

#include <cstddef>
#include <span>

namespace vkgemm::embedded {

// The size limit of a decompressed zstd block, in bytes (RFC 8878, section 3.1.1.2.4).
inline constexpr std::size_t most_block_bytes = std::size_t{128} << 10;

// Decompresses the first `wanted` bytes of a frame, and the rest of their block, to `out`. `out`
// must hold the whole frame, or `wanted` + most_block_bytes. Returns false if the frame is damaged
// or too short.
bool decompress(std::span<const std::byte> frame, std::span<std::byte> out, std::size_t wanted);

}  // namespace vkgemm::embedded
