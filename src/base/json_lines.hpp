// json_lines.hpp: where in a JSON text something stands, for messages to who wrote it.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace vkgemm {

// Reads characters for the JSON library and counts the lines that it has come to, from 1.
struct LineCounter {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  std::size_t* line = nullptr;

  reference operator*() const { return *at; }
  LineCounter& operator++() {
    if (*at == '\n' && line != nullptr) ++*line;
    ++at;
    return *this;
  }
  LineCounter operator++(int) {
    LineCounter before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter& other) const { return at == other.at; }
};

// The line of the value that is called "rows[3].config" (of a member: of its key), or of the
// innermost one around it that is there. The text must be JSON as far as that.
std::size_t line_of(std::string_view json, std::string_view path);

}  // namespace vkgemm
