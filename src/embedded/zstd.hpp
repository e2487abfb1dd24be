// zstd.hpp: decompresses frames of zstd.
#pragma once

#include <cstddef>
#include <span>

namespace vkgemm::embedded {

// Decompresses one frame. Returns false if the frame is damaged or does not fill `out` exactly.
bool decompress(std::span<const std::byte> compressed, std::span<std::byte> out);

}  // namespace vkgemm::embedded
