// vkgemm/convert.hpp: f16, bf16, e4m3 and e5m2 numbers on the host, as their bits.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vkgemm {

// Implementation of the conversions; not part of the API.
namespace detail {

// The magnitude of a finite number, rounded to nearest even, as an exponent with this bias and
// `MantissaBits`.
template <int Bias, int MantissaBits>
constexpr std::uint64_t rounded_magnitude(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  if (exponent < -1022) return 0;  // zero, and doubles far below any subnormal of the target

  const std::uint64_t significand = (bits & ((1ULL << 52) - 1)) | (1ULL << 52);
  const bool subnormal = exponent < 1 - Bias;
  const int shift = 52 - MantissaBits + (subnormal ? 1 - Bias - exponent : 0);
  if (shift > 53) return 0;  // less than half of the smallest subnormal

  std::uint64_t kept = significand >> shift;
  const std::uint64_t rest = significand & ((1ULL << shift) - 1);
  const std::uint64_t half = 1ULL << (shift - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;

  // `kept` holds the implicit one, hence the exponent less one; a carry out of the mantissa moves
  // into the exponent, and from the largest finite value to infinity, by itself.
  const auto field = static_cast<std::uint64_t>(subnormal ? 0 : exponent + Bias - 1);
  return (field << MantissaBits) + kept;
}

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
  return with_sign(exponent > bias ? infinity : rounded_magnitude<bias, MantissaBits>(value));
}

// An 8-bit float with a sign: numbers beyond `largest` become that.
template <int Bias, int MantissaBits>
constexpr std::uint8_t saturated_bits(double value, double largest) noexcept {
  const auto sign = std::bit_cast<std::uint64_t>(value) >> 56 & 0x80;
  if (value != value) return static_cast<std::uint8_t>(sign | 0x7f);
  const double magnitude = value < 0.0 ? -value : value;
  return static_cast<std::uint8_t>(
      sign | rounded_magnitude<Bias, MantissaBits>(magnitude > largest ? largest : magnitude));
}

// The value of an 8-bit float that is finite.
template <int Bias, int MantissaBits>
constexpr float small_float(std::uint8_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7fu;
  const float smallest =
      std::bit_cast<float>(static_cast<std::uint32_t>(128 - Bias - MantissaBits) << 23);
  const float value = magnitude >> MantissaBits == 0
                          ? static_cast<float>(magnitude) * smallest
                          : std::bit_cast<float>((magnitude << (23 - MantissaBits)) +
                                                 (static_cast<std::uint32_t>(127 - Bias) << 23));
  return (bits & 0x80) != 0 ? -value : value;
}

}  // namespace detail

// Rounds a number to f16 or bf16: to nearest, ties to even, with subnormals. Numbers that are too
// large become infinities; NaN becomes a quiet NaN of the same sign. A float argument is exact.
constexpr std::uint16_t to_f16(double value) noexcept { return detail::rounded_bits<5, 10>(value); }
constexpr std::uint16_t to_bf16(double value) noexcept { return detail::rounded_bits<8, 7>(value); }

// Rounds a number to e4m3 (largest 448, no infinities) or e5m2 (57344): to nearest, ties to even,
// with subnormals. Larger numbers and infinities become the largest number of their sign; NaN
// becomes 0x7f or 0xff.
constexpr std::uint8_t to_e4m3(double value) noexcept {
  return detail::saturated_bits<7, 3>(value, 448.0);
}
constexpr std::uint8_t to_e5m2(double value) noexcept {
  return detail::saturated_bits<15, 2>(value, 57344.0);
}

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

// The value of the bits. Exact for all 256.
constexpr float from_e4m3(std::uint8_t bits) noexcept {
  if ((bits & 0x7f) != 0x7f) return detail::small_float<7, 3>(bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits & 0x80) << 24 | 0x7fc00000u);
}
constexpr float from_e5m2(std::uint8_t bits) noexcept {
  return from_f16(static_cast<std::uint16_t>(bits << 8));
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
constexpr void to_e4m3(std::span<const float> values, std::span<std::uint8_t> bits) noexcept {
  assert(values.size() == bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = to_e4m3(static_cast<double>(values[i]));
}
constexpr void from_e4m3(std::span<const std::uint8_t> bits, std::span<float> values) noexcept {
  assert(values.size() == bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) values[i] = from_e4m3(bits[i]);
}
constexpr void to_e5m2(std::span<const float> values, std::span<std::uint8_t> bits) noexcept {
  assert(values.size() == bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = to_e5m2(static_cast<double>(values[i]));
}
constexpr void from_e5m2(std::span<const std::uint8_t> bits, std::span<float> values) noexcept {
  assert(values.size() == bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) values[i] = from_e5m2(bits[i]);
}

}  // namespace vkgemm
