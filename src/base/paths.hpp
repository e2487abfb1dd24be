// paths.hpp: paths as UTF-8, which is what every text here is, whatever the system has.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace vkgemm {

inline std::string utf8(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

inline std::filesystem::path path_of(std::string_view utf8) {
  return std::u8string(utf8.begin(), utf8.end());
}

}  // namespace vkgemm
