// Element conversions: every 16-bit pattern there and back, and rounding at each kind of boundary.
#include "problem/convert.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "base/cache_file.hpp"
#include "vkgemm/convert.hpp"

namespace vkgemm::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A 16-bit format with `mantissa_bits`, whose exponent takes the rest of the 15 bits.
struct Format {
  int mantissa_bits;
  float (*from)(std::uint16_t) noexcept;
  std::uint16_t (*to)(double) noexcept;

  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(0x7fff & ~((1 << mantissa_bits) - 1));
  }
  // By the definition of the format, for what is not NaN. The exponent of infinity counts as any
  // other.
  double value_of(std::uint16_t magnitude) const {
    const int field = magnitude >> mantissa_bits, bias = (1 << (14 - mantissa_bits)) - 1;
    const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
    const int implicit = field == 0 ? 0 : 1 << mantissa_bits;
    return std::ldexp(mantissa + implicit, std::max(field, 1) - bias - mantissa_bits);
  }
};
constexpr Format formats[] = {{10, from_f16, to_f16}, {7, from_bf16, to_bf16}};

TEST(Convert, EveryPatternIsExact) {
  for (const Format& format : formats) {
    for (std::uint32_t i = 0; i < 0x10000; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const std::uint16_t magnitude = bits & 0x7fff;
      const float value = format.from(bits);
      ASSERT_EQ(std::signbit(value), bits >= 0x8000) << std::hex << i;
      const std::uint16_t back = format.to(static_cast<double>(value));
      if (magnitude > format.infinity()) {
        ASSERT_TRUE(std::isnan(value)) << std::hex << i;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(value) >> (23 - format.mantissa_bits) & 0x7f,
                  i & 0x7f);
        ASSERT_TRUE(std::isnan(format.from(back)) && back >> 15 == bits >> 15) << std::hex << i;
      } else {
        ASSERT_EQ(std::abs(static_cast<double>(value)),
                  magnitude == format.infinity() ? kInfinity : format.value_of(magnitude))
            << std::hex << i;
        ASSERT_EQ(back, bits) << std::hex << i;
      }
    }
  }
}

// The tie between each number and the next, and its neighbours in double. Above the largest number
// is infinity, where the exponent has a number more.
TEST(Convert, EveryTieGoesToEven) {
  for (const Format& format : formats) {
    for (std::uint16_t low = 0; low < format.infinity(); ++low) {
      const auto high = static_cast<std::uint16_t>(low + 1);
      const double tie = (format.value_of(low) + format.value_of(high)) / 2;
      for (const int sign : {0, 0x8000}) {
        const auto rounded = [&](double value) {
          return format.to(sign == 0 ? value : -value) - sign;
        };
        ASSERT_EQ(rounded(tie), low % 2 == 0 ? low : high);
        ASSERT_EQ(rounded(std::nextafter(tie, 0.0)), low);
        ASSERT_EQ(rounded(std::nextafter(tie, kInfinity)), high);
      }
    }
  }
}

// An 8-bit format, by its definition.
struct SmallFormat {
  int mantissa_bits, bias;
  std::uint8_t largest;  // the code
  float (*from)(std::uint8_t) noexcept;
  std::uint8_t (*to)(double) noexcept;

  double value_of(std::uint8_t magnitude) const {
    const int field = magnitude >> mantissa_bits;
    const int implicit = field == 0 ? 0 : 1 << mantissa_bits;
    return std::ldexp((magnitude & ((1 << mantissa_bits) - 1)) + implicit,
                      std::max(field, 1) - bias - mantissa_bits);
  }
};
constexpr SmallFormat small_formats[] = {{3, 7, 0x7e, from_e4m3, to_e4m3},
                                         {2, 15, 0x7b, from_e5m2, to_e5m2}};

TEST(Convert, EveryByteIsExact) {
  for (const SmallFormat& format : small_formats) {
    for (std::uint32_t i = 0; i < 256; ++i) {
      const auto bits = static_cast<std::uint8_t>(i);
      const auto magnitude = static_cast<std::uint8_t>(i & 0x7f);
      const float value = format.from(bits);
      ASSERT_EQ(std::signbit(value), bits >= 0x80) << i;
      if (magnitude <= format.largest) {
        ASSERT_EQ(std::abs(static_cast<double>(value)), format.value_of(magnitude)) << i;
        ASSERT_EQ(format.to(static_cast<double>(value)), bits) << i;
      } else if (magnitude == 0x7c && format.mantissa_bits == 2) {
        ASSERT_TRUE(std::isinf(value));
        ASSERT_EQ(format.to(static_cast<double>(value)), format.largest | (bits & 0x80));
      } else {
        ASSERT_TRUE(std::isnan(value)) << i;
        ASSERT_EQ(format.to(static_cast<double>(value)), 0x7f | (bits & 0x80)) << i;
      }
    }
  }
}

TEST(Convert, EveryTieOfBytesGoesToEven) {
  for (const SmallFormat& format : small_formats) {
    for (std::uint8_t low = 0; low < format.largest; ++low) {
      const auto high = static_cast<std::uint8_t>(low + 1);
      const double tie = (format.value_of(low) + format.value_of(high)) / 2;
      for (const int sign : {0, 0x80}) {
        const auto rounded = [&](double value) {
          return format.to(sign == 0 ? value : -value) - sign;
        };
        ASSERT_EQ(rounded(tie), low % 2 == 0 ? low : high);
        ASSERT_EQ(rounded(std::nextafter(tie, 0.0)), low);
        ASSERT_EQ(rounded(std::nextafter(tie, kInfinity)), high);
      }
    }
    const double most = format.value_of(format.largest);
    for (const double value : {most * 1.01, most * 1.5, most * 2.0, 1e300, kInfinity}) {
      EXPECT_EQ(format.to(value), format.largest);
      EXPECT_EQ(format.to(-value), format.largest | 0x80);
    }
    EXPECT_EQ(format.to(1e-310), 0);
    EXPECT_EQ(format.to(-0.0), 0x80);
  }
}

TEST(Convert, ArraysOfBytes) {
  std::vector<std::uint8_t> bits(256), back(256);
  std::iota(bits.begin(), bits.end(), std::uint8_t{0});
  std::vector<float> values(256);
  from_e4m3(bits, values);
  to_e4m3(values, back);
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(back[i], bits[i]);
  from_e5m2(bits, values);
  to_e5m2(values, back);
  for (std::size_t i = 0; i < 0x7c; ++i) EXPECT_EQ(back[i], bits[i]);
  static_assert(to_e4m3(1000.0) == 0x7e && from_e5m2(0x3c) == 1.0f, "at compile time, too");
}

TEST(Convert, Arrays) {
  std::vector<std::uint16_t> bits(0x10000), back(bits.size());
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  std::vector<float> values(bits.size());
  from_f16(bits, values);
  to_f16(values, back);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    ASSERT_EQ(back[i], to_f16(static_cast<double>(from_f16(bits[i])))) << i;
  }
  from_bf16(bits, values);
  to_bf16(values, back);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    ASSERT_EQ(back[i], to_bf16(static_cast<double>(from_bf16(bits[i])))) << i;
  }
  static_assert(to_f16(1.0) == 0x3c00 && from_bf16(0x3f80) == 1.0f, "at compile time, too");
}

TEST(Convert, KnownF16Values) {
  EXPECT_EQ(from_f16(0x3c00), 1.0);
  EXPECT_EQ(from_f16(0xc000), -2.0);
  EXPECT_EQ(from_f16(0x7bff), 65504.0);
  EXPECT_EQ(from_f16(0x0001), 0x1p-24);
  EXPECT_EQ(from_f16(0x03ff), 1023 * 0x1p-24);
  EXPECT_EQ(from_f16(0x0400), 0x1p-14);
  EXPECT_EQ(from_f16(0x7c00), kInfinity);
  EXPECT_TRUE(std::signbit(from_f16(0x8000)));
}

TEST(Convert, F16TiesGoToEven) {
  EXPECT_EQ(to_f16(2049.0), 0x6800);            // between 2048 and 2050
  EXPECT_EQ(to_f16(2051.0), 0x6802);            // between 2050 and 2052
  EXPECT_EQ(to_f16(2049.0 + 0x1p-40), 0x6801);  // just above the tie: up
  EXPECT_EQ(to_f16(1.0 + 0x1p-11), 0x3c00);
  EXPECT_EQ(to_f16(1.0 + 3 * 0x1p-11), 0x3c02);
  EXPECT_EQ(to_f16(-1.0 - 3 * 0x1p-11), 0xbc02);
}

// Rounding to float first would turn this into a tie, and the tie into the wrong neighbour.
TEST(Convert, RoundsOnlyOnce) {
  const double above_the_tie = 1.0 + 0x1p-11 + 0x1p-45;
  EXPECT_EQ(to_f16(above_the_tie), 0x3c01);
  EXPECT_EQ(to_bf16(1.0 + 0x1p-8 + 0x1p-45), 0x3f81);
}

TEST(Convert, F16Overflow) {
  EXPECT_EQ(to_f16(65519.0), 0x7bff);  // below the tie with 65536
  EXPECT_EQ(to_f16(65520.0), 0x7c00);
  EXPECT_EQ(to_f16(-65520.0), 0xfc00);
  EXPECT_EQ(to_f16(1e300), 0x7c00);
  EXPECT_EQ(to_f16(-kInfinity), 0xfc00);
}

TEST(Convert, F16Subnormals) {
  EXPECT_EQ(to_f16(0x1p-24), 0x0001);
  EXPECT_EQ(to_f16(0x1p-25), 0x0000);            // tie with zero, which is even
  EXPECT_EQ(to_f16(0x1p-25 + 0x1p-70), 0x0001);  // just above it
  EXPECT_EQ(to_f16(0x1p-26), 0x0000);
  EXPECT_EQ(to_f16(-0x1p-26), 0x8000);
  EXPECT_EQ(to_f16(0x1.ff8p-15), 0x03ff);
  EXPECT_EQ(to_f16(0x1.ffcp-15), 0x0400);  // tie, into the smallest normal
  EXPECT_EQ(to_f16(5e-324), 0x0000);
}

TEST(Convert, Bf16) {
  EXPECT_EQ(to_bf16(1.0), 0x3f80);
  EXPECT_EQ(to_bf16(1.0 + 0x1p-8), 0x3f80);      // tie to even
  EXPECT_EQ(to_bf16(1.0 + 3 * 0x1p-8), 0x3f82);  // tie to even
  EXPECT_EQ(to_bf16(3.3895313892515355e38), 0x7f7f);
  EXPECT_EQ(to_bf16(3.4e38), 0x7f80);
  EXPECT_EQ(to_bf16(0x1p-133), 0x0001);
  EXPECT_EQ(to_bf16(0x1p-134), 0x0000);
  EXPECT_EQ(from_bf16(0xc040), -3.0);
}

// Doubles of every size, and NaNs: whatever the processor, these bits.
TEST(Convert, GivesTheSameBitsEverywhere) {
  std::uint64_t hash = fnv1a_of_nothing;
  std::mt19937_64 random(1);  // which the standard defines to the bit
  for (int i = 0; i < 1 << 20; ++i) {
    // Half of them near what f16 and bf16 hold, the others with any exponent.
    std::uint64_t bits = random();
    if (i % 2 == 0) bits = (bits & 0x803f'ffff'ffff'ffff) | 0x3fc0'0000'0000'0000;
    const double value = std::bit_cast<double>(bits);
    const std::uint16_t halves[] = {to_f16(value), to_bf16(value)};
    hash = fnv1a(std::as_bytes(std::span(halves)), hash);
  }
  EXPECT_EQ(hash, 0x146fe9db025de116u) << std::hex << hash;
}

TEST(Convert, LoadAndStoreByIndex) {
  float floats[2] = {0.0f, 0.0f};
  store_element(floats, DataType::f32, 1, 0.1);
  EXPECT_EQ(floats[1], 0.1f);
  EXPECT_EQ(load_element(floats, DataType::f32, 1), static_cast<double>(0.1f));

  std::uint16_t halves[2] = {0, 0};
  store_element(halves, DataType::f16, 1, -2.0);
  EXPECT_EQ(halves[0], 0);
  EXPECT_EQ(halves[1], 0xc000);
  EXPECT_EQ(load_element(halves, DataType::f16, 1), -2.0);
  store_element(halves, DataType::bf16, 0, -3.0);
  EXPECT_EQ(halves[0], 0xc040);
  EXPECT_EQ(load_element(halves, DataType::bf16, 0), -3.0);
}

}  // namespace
}  // namespace vkgemm::test
