// bytes.hpp: numbers in files, little-endian on every machine, at any alignment.
#pragma once

#include <cstddef>
#include <span>

namespace vkgemm {

template <class T>
T read_number(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(std::to_integer<T>(bytes[offset + i]) << (8 * i));
  }
  return value;
}

template <class T>
void write_number(std::span<std::byte> bytes, std::size_t offset, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

}  // namespace vkgemm
