// record.hpp: appends a commit's decisions and results to the file that VKGEMM_RECORD names, a line
// each. If a change altered nothing, the sorted files of the commits before and after it are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace vkgemm::test {

// FNV-1a.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    for (const std::byte byte : bytes) {
      value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
    }
  }
  void add(std::string_view text) noexcept { add(std::as_bytes(std::span(text))); }

  std::string text() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value_));
    return text;
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

inline bool records() { return std::getenv("VKGEMM_RECORD") != nullptr; }

// Appends a line. Several processes may append to the same file.
inline void record(const std::string& line) {
  std::FILE* const file = std::fopen(std::getenv("VKGEMM_RECORD"), "a");
  if (file == nullptr) std::abort();
  std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

}  // namespace vkgemm::test
