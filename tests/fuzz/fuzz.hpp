// fuzz.hpp: what the fuzz targets share. A target defines LLVMFuzzerTestOneInput; libFuzzer calls
// it, or replay.cpp where there is no libFuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace vkgemm::fuzz {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// How many inputs a reader has accepted. replay.cpp wants one of each corpus: files that are all
// refused reach no more than a reader's first lines.
inline long accepted = 0;

// A condition that must hold for every input. Never NDEBUG's business.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what.c_str());
  std::abort();
}

// An error's message that is shown to people: it names its source, and isn't as long as the file.
inline void require_message(const std::string& message, std::string_view source) {
  require(message.starts_with(source), "'" + message + "' begins with " + std::string(source));
  require(message.size() < 2000, "a message is short: " + message);
}

// A file of this process, for readers that take a path. The destructor removes it.
struct TemporaryFile {
  explicit TemporaryFile(std::string name) {
#if __has_include(<unistd.h>)
    name += "_" + std::to_string(getpid());
#endif
    // Prefers a folder in memory: a disk takes milliseconds for each file.
    const std::filesystem::path memory = "/dev/shm";
    std::error_code code;
    path = (std::filesystem::is_directory(memory, code) ? memory
                                                        : std::filesystem::temp_directory_path()) /
           name;
  }
  ~TemporaryFile() {
    std::error_code code;
    std::filesystem::remove(path, code);
  }
  void write(const std::uint8_t* data, std::size_t size) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  std::filesystem::path path;
};

}  // namespace vkgemm::fuzz
