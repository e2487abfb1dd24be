// text.hpp: putting messages together and reading numbers, independent of the locale.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace vkgemm {

inline void append_to(std::string& out, std::string_view text) { out += text; }
inline void append_to(std::string& out, const char* text) { out += text; }
inline void append_to(std::string& out, char character) { out += character; }

// Numbers print in the shortest form that reads back as the same value.
template <class T>
requires(std::integral<T> || std::floating_point<T>) &&
    (!std::same_as<T, bool>)void append_to(std::string& out, T value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), result.ptr);
}

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (append_to(out, parts), ...);
  return out;
}

// Text from outside, fit to stand in a message: printable, and its beginning if it is longer.
inline std::string excerpt(std::string_view text, std::size_t longest = 300) {
  std::string out;
  for (const char c : text.substr(0, longest)) out += c >= ' ' && c <= '~' ? c : '?';
  return out += text.size() > longest ? "..." : "";
}

// A value from outside, as it stands in a message.
inline std::string in_quotes(std::string_view text) { return concat("'", excerpt(text, 60), "'"); }

// The parts of a text between its separators: one of a text that has none.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The whole text as a number, or nothing: no sign for unsigned, no spaces, no overflow.
template <class T>
std::optional<T> parse_number(std::string_view text) noexcept {
  T value{};
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace vkgemm
