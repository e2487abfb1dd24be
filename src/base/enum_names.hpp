// enum_names.hpp: enumerators by their names, which stand in the order of the enumerators.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace vkgemm {

template <std::size_t count, class Enum>
std::string_view name_of(const std::array<std::string_view, count>& names, Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < count ? names[index] : "?";
}

template <class Enum, std::size_t count>
std::optional<Enum> find_name(const std::array<std::string_view, count>& names,
                              std::string_view text) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace vkgemm
