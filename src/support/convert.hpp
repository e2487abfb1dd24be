// convert.hpp: element types on the host: f16 and bf16 bits, to and from double, rounding to
// nearest even, NaN and Inf kept. Used by tools and tests, not by the library.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "vkgemm/problem.hpp"

namespace vkgemm::support {

// Inline: the reference spends most of its time in them where it looks at few rows.
inline double f16_to_double(std::uint16_t bits) noexcept {
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x8000) << 48;
  const std::uint64_t magnitude = static_cast<std::uint64_t>(bits & 0x7fff) << 42;
  if ((bits & 0x7c00) == 0x7c00) {
    return std::bit_cast<double>(sign | 0x7ff0000000000000ULL | magnitude);
  }
  // The exponent field lands 1008 too low; the product is exact, for subnormals too.
  return std::bit_cast<double>(sign | magnitude) * 0x1p1008;
}

inline double bf16_to_double(std::uint16_t bits) noexcept {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

std::uint16_t double_to_f16(double value) noexcept;
std::uint16_t double_to_bf16(double value) noexcept;

// Element `index` of an array of `type`.
inline double load_element(const void* data, DataType type, std::uint64_t index) noexcept {
  const auto* at = static_cast<const unsigned char*>(data) + index * size_in_bytes(type);
  const auto read = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case DataType::f16:
      return f16_to_double(read(std::uint16_t{}));
    case DataType::bf16:
      return bf16_to_double(read(std::uint16_t{}));
    case DataType::f32:
      return static_cast<double>(read(float{}));
  }
  return 0.0;
}
void store_element(void* data, DataType type, std::uint64_t index, double value) noexcept;

}  // namespace vkgemm::support
