// fuzz.hpp: what the fuzz targets share. A target defines LLVMFuzzerTestOneInput; libFuzzer calls
// it, or replay.cpp where there is no libFuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

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

}  // namespace vkgemm::fuzz
