#include "embedded/embedded.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "embedded/zstd.hpp"

namespace vkgemm::embedded {

namespace {

// src/embed.cmake writes bytes as little-endian words.
static_assert(std::endian::native == std::endian::little);

// Copies a file to `out`, which has its size.
void extract(const File& file, void* out) {
  const Frame& frame = file.frame;
  const std::size_t end = file.offset + file.bytes;
  const std::size_t room = std::min(frame.bytes, end + most_block_bytes);
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(room);
  const std::span words(frame.data, frame.compressed_bytes / sizeof(std::uint64_t) + 1);
  if (!decompress(std::as_bytes(words).first(frame.compressed_bytes), {bytes.get(), room}, end)) {
    std::abort();  // the library's own constant data is damaged
  }
  std::memcpy(out, bytes.get() + file.offset, file.bytes);
}

}  // namespace

// A map, because legality asks for each row of a table.
const Module* find_module(std::string_view name) {
  static const std::unordered_map<std::string_view, const Module*> by_name = [] {
    std::unordered_map<std::string_view, const Module*> out;
    for (const Module& module : modules()) out.emplace(module.name, &module);
    return out;
  }();
  const auto found = by_name.find(name);
  return found != by_name.end() ? found->second : nullptr;
}

std::vector<std::uint32_t> spirv(const Module& module) {
  std::vector<std::uint32_t> words(module.bytes / sizeof(std::uint32_t));
  extract(module, words.data());
  return words;
}

std::string text(const File& file) {
  std::string out(file.bytes, '\0');
  extract(file, out.data());
  return out;
}

}  // namespace vkgemm::embedded
