// embedded.hpp: the files in the library: shader modules, tuning tables, the deny list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vkgemm::embedded {

// One frame of zstd.
struct Frame {
  const std::uint64_t* data;
  std::size_t compressed_bytes;
  std::size_t bytes;
};

// A file of a frame. Files that resemble each other share a frame.
struct File {
  std::string_view name;  // zero-terminated
  const Frame& frame;
  std::size_t offset;  // of its first byte in the decompressed frame
  std::size_t bytes;
};

// The entry point of a shader module has the module's name.
using Module = File;

std::span<const Module> modules();

// Returns the module of this name, or null if this library has none.
const Module* find_module(std::string_view name);

// Names the build option that left a module out: "VKGEMM_PARTS lacks grouped". Empty if the module
// is built in or does not exist.
std::string_view why_left_out(std::string_view module);

// Decompresses a module.
std::vector<std::uint32_t> spirv(const Module& module);

// The SHA256 of all modules and of the specialiser's sources, in hexadecimal digits.
std::string_view digest();

// The tuning tables, by the names of their files.
std::span<const File> tables();

const File& known_drivers();

// Decompresses a text.
std::string text(const File& file);

}  // namespace vkgemm::embedded
