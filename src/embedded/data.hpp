// data.hpp: for the generated source file, which defines the lists of embedded.hpp.
#pragma once

#include <bit>
#include <utility>

#include "embedded/embedded.hpp"

namespace vkgemm::embedded {

// src/embed.cmake writes bytes as words of this order.
static_assert(std::endian::native == std::endian::little);

// One frame of zstd.
struct Frame {
  const std::uint64_t* data;
  std::size_t compressed_bytes;
  std::size_t bytes;
};

}  // namespace vkgemm::embedded
