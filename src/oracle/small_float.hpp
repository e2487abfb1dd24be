// small_float.hpp: floats of 4 and 8 bits, and powers of two of 8 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace vkgemm::oracle {

// A float of `bits` bits: a sign, an exponent and `mantissa` bits of fraction, with subnormals.
inline double small_float(std::uint32_t code, int bits, int mantissa, int bias) {
  const std::uint32_t magnitude = code & ((1u << (bits - 1)) - 1);
  const int exponent = static_cast<int>(magnitude >> mantissa);
  const double fraction =
      (magnitude & ((1u << mantissa) - 1)) + (exponent != 0 ? 1 << mantissa : 0);
  const double value = std::ldexp(fraction, std::max(exponent, 1) - bias - mantissa);
  return (code >> (bits - 1)) != 0 ? -value : value;
}

// E8M0 of OCP's microscaling formats: 2^(byte - 127), 255 is NaN.
inline double e8m0(std::uint32_t byte) {
  return byte == 255 ? std::numeric_limits<double>::quiet_NaN()
                     : std::ldexp(1.0, static_cast<int>(byte) - 127);
}

// The scale, rounded up to a power of two: no code overflows.
inline std::uint32_t e8m0_from(double scale) {
  if (std::isnan(scale)) return 255;
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);
  return static_cast<std::uint32_t>(std::clamp(exponent + (fraction == 0.5 ? 126 : 127), 0, 254));
}

}  // namespace vkgemm::oracle
