// numbers.hpp: numbers of element types on the host, from and to double: rounded to nearest even,
// NaN and Inf kept by types that have them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace vkgemm {

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
template <class Bits, class Value, Value (*to_value)(Bits) noexcept,
          Bits (*to_bits)(double) noexcept>
inline constexpr HostNumber host_number{
    .load =
        [](const void* at) noexcept {
          Bits bits;
          std::memcpy(&bits, at, sizeof bits);
          return static_cast<double>(to_value(bits));
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
    host_number<Integer, double, exact_double<Integer>, double_to_integer<Integer>>;

}  // namespace vkgemm
