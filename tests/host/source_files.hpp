// source_files.hpp: our own sources, for tests of rules that the sources keep.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace vkgemm::test {

// The folder src/.
inline std::filesystem::path source_folder() {
  const char* const folder = std::getenv("VKGEMM_SOURCE_FOLDER");
  return folder != nullptr ? folder : "src";
}

inline std::string read_source(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace vkgemm::test
