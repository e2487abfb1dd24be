// numbers.hpp: numbers of element types on the host, from and to double: rounded to nearest even,
// NaN and Inf kept by types that have them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace vkgemm {

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

// Rounds once, to nearest even, from the 53 significant bits of a double to a sign, `ExponentBits`
// and `MantissaBits`. Going through float instead would round twice.
template <int ExponentBits, int MantissaBits>
std::uint16_t rounded_bits(double value) noexcept {
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

inline std::uint16_t double_to_f16(double value) noexcept { return rounded_bits<5, 10>(value); }
inline std::uint16_t double_to_bf16(double value) noexcept { return rounded_bits<8, 7>(value); }

// The nearest integer that there is, of two the even one; of a NaN 0.
template <class Integer>
Integer double_to_integer(double value) noexcept {
  constexpr auto least = static_cast<double>(std::numeric_limits<Integer>::min());
  constexpr auto most = static_cast<double>(std::numeric_limits<Integer>::max());
  if (std::isnan(value)) return 0;
  return static_cast<Integer>(std::nearbyint(std::clamp(value, least, most)));
}

// A number in memory.
struct HostNumber {
  double (*load)(const void* at) noexcept = nullptr;
  void (*store)(void* at, double value) noexcept = nullptr;
};
template <class Bits, auto to_double, auto to_bits>
inline constexpr HostNumber host_number{
    .load =
        [](const void* at) noexcept {
          Bits bits;
          std::memcpy(&bits, at, sizeof bits);
          return to_double(bits);
        },
    .store =
        [](void* at, double value) noexcept {
          const Bits bits = to_bits(value);
          std::memcpy(at, &bits, sizeof bits);
        },
};

template <class Bits>
double exact_double(Bits bits) noexcept {
  return static_cast<double>(bits);
}
inline float double_to_float(double value) noexcept { return static_cast<float>(value); }
template <class Integer>
inline constexpr HostNumber host_integer =
    host_number<Integer, exact_double<Integer>, double_to_integer<Integer>>;

}  // namespace vkgemm
