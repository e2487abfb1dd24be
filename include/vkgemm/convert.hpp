// vkgemm/convert.hpp: f16 and bf16 numbers on the host, as the bits of a std::uint16_t.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vkgemm {

// Implementation of the conversions; not part of the API.
namespace detail {

// Rounds once, from the 53 significant bits of a double to a sign, `ExponentBits` and
// `MantissaBits`. A conversion through float would round twice.
template <int ExponentBits, int MantissaBits>
constexpr std::uint16_t rounded_bits(double value) noexcept {
  constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  constexpr std::uint64_t infinity = ((1ULL << ExponentBits) - 1) << MantissaBits;

  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 63) << 15);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  const std::uint64_t mantissa = bits & ((1ULL << 52) - 1);
  const auto with_sign = [sign](std::uint64_t magnitude) {
    return static_cast<std::uint16_t>(sign | magnitude);
  };

  if (exponent == 1024 && mantissa != 0) {
    return with_sign(infinity | (1ULL << (MantissaBits - 1)));  // a quiet NaN
  }
  if (exponent > bias) return with_sign(infinity);
  if (exponent < -1022) return sign;  // zero, and doubles far below any subnormal of the target

  const std::uint64_t significand = mantissa | (1ULL << 52);
  const bool subnormal = exponent < 1 - bias;
  const int shift = 52 - MantissaBits + (subnormal ? 1 - bias - exponent : 0);
  if (shift > 53) return sign;  // less than half of the smallest subnormal

  std::uint64_t kept = significand >> shift;
  const std::uint64_t rest = significand & ((1ULL << shift) - 1);
  const std::uint64_t half = 1ULL << (shift - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;

  // `kept` holds the implicit one, hence the exponent less one; a carry out of the mantissa moves
  // into the exponent, and from the largest finite value to infinity, by itself.
  const auto field = static_cast<std::uint64_t>(subnormal ? 0 : exponent + bias - 1);
  return with_sign((field << MantissaBits) + kept);
}

}  // namespace detail

// Rounds a number to f16 or bf16: to nearest, ties to even, with subnormals. Numbers that are too
// large become infinities; NaN becomes a quiet NaN of the same sign. A float argument is exact.
constexpr std::uint16_t to_f16(double value) noexcept { return detail::rounded_bits<5, 10>(value); }
constexpr std::uint16_t to_bf16(double value) noexcept { return detail::rounded_bits<8, 7>(value); }

// The value of the bits. Exact for all 65,536, with infinities, subnormals and the payload of NaN.
constexpr float from_f16(std::uint16_t bits) noexcept {
  const std::uint32_t exponent = (bits >> 10) & 31u, mantissa = bits & 1023u;
  const std::uint32_t field = exponent == 31 ? 255 : exponent + 112;
  const std::uint32_t magnitude =
      exponent == 0 ? std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * 0x1p-24f)
                    : field << 23 | mantissa << 13;
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits & 0x8000) << 16 | magnitude);
}
constexpr float from_bf16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Convert arrays of the same size, element by element.
constexpr void to_f16(std::span<const float> values, std::span<std::uint16_t> bits) noexcept {
  assert(values.size() == bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = to_f16(static_cast<double>(values[i]));
}
constexpr void to_bf16(std::span<const float> values, std::span<std::uint16_t> bits) noexcept {
  assert(values.size() == bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = to_bf16(static_cast<double>(values[i]));
}
constexpr void from_f16(std::span<const std::uint16_t> bits, std::span<float> values) noexcept {
  assert(values.size() == bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) values[i] = from_f16(bits[i]);
}
constexpr void from_bf16(std::span<const std::uint16_t> bits, std::span<float> values) noexcept {
  assert(values.size() == bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) values[i] = from_bf16(bits[i]);
}

}  // namespace vkgemm
