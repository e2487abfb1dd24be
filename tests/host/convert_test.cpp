// Element conversions: every 16-bit pattern there and back, and rounding at each kind of boundary.
#include "problem/convert.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>

#include "base/cache_file.hpp"

namespace vkgemm::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Convert, EveryF16SurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double value = f16_to_double(half);
    if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(f16_to_double(double_to_f16(value))));
    } else {
      EXPECT_EQ(double_to_f16(value), half) << std::hex << bits;
    }
  }
}

TEST(Convert, EveryBf16SurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto brain = static_cast<std::uint16_t>(bits);
    const double value = bf16_to_double(brain);
    if ((bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(bf16_to_double(double_to_bf16(value))));
    } else {
      EXPECT_EQ(double_to_bf16(value), brain) << std::hex << bits;
    }
  }
}

TEST(Convert, KnownF16Values) {
  EXPECT_EQ(f16_to_double(0x3c00), 1.0);
  EXPECT_EQ(f16_to_double(0xc000), -2.0);
  EXPECT_EQ(f16_to_double(0x7bff), 65504.0);
  EXPECT_EQ(f16_to_double(0x0001), 0x1p-24);
  EXPECT_EQ(f16_to_double(0x03ff), 1023 * 0x1p-24);
  EXPECT_EQ(f16_to_double(0x0400), 0x1p-14);
  EXPECT_EQ(f16_to_double(0x7c00), kInfinity);
  EXPECT_TRUE(std::signbit(f16_to_double(0x8000)));
}

TEST(Convert, F16TiesGoToEven) {
  EXPECT_EQ(double_to_f16(2049.0), 0x6800);            // between 2048 and 2050
  EXPECT_EQ(double_to_f16(2051.0), 0x6802);            // between 2050 and 2052
  EXPECT_EQ(double_to_f16(2049.0 + 0x1p-40), 0x6801);  // just above the tie: up
  EXPECT_EQ(double_to_f16(1.0 + 0x1p-11), 0x3c00);
  EXPECT_EQ(double_to_f16(1.0 + 3 * 0x1p-11), 0x3c02);
  EXPECT_EQ(double_to_f16(-1.0 - 3 * 0x1p-11), 0xbc02);
}

// Rounding to float first would turn this into a tie, and the tie into the wrong neighbour.
TEST(Convert, RoundsOnlyOnce) {
  const double above_the_tie = 1.0 + 0x1p-11 + 0x1p-45;
  EXPECT_EQ(double_to_f16(above_the_tie), 0x3c01);
  EXPECT_EQ(double_to_bf16(1.0 + 0x1p-8 + 0x1p-45), 0x3f81);
}

TEST(Convert, F16Overflow) {
  EXPECT_EQ(double_to_f16(65519.0), 0x7bff);  // below the tie with 65536
  EXPECT_EQ(double_to_f16(65520.0), 0x7c00);
  EXPECT_EQ(double_to_f16(-65520.0), 0xfc00);
  EXPECT_EQ(double_to_f16(1e300), 0x7c00);
  EXPECT_EQ(double_to_f16(-kInfinity), 0xfc00);
}

TEST(Convert, F16Subnormals) {
  EXPECT_EQ(double_to_f16(0x1p-24), 0x0001);
  EXPECT_EQ(double_to_f16(0x1p-25), 0x0000);            // tie with zero, which is even
  EXPECT_EQ(double_to_f16(0x1p-25 + 0x1p-70), 0x0001);  // just above it
  EXPECT_EQ(double_to_f16(0x1p-26), 0x0000);
  EXPECT_EQ(double_to_f16(-0x1p-26), 0x8000);
  EXPECT_EQ(double_to_f16(0x1.ff8p-15), 0x03ff);
  EXPECT_EQ(double_to_f16(0x1.ffcp-15), 0x0400);  // tie, into the smallest normal
  EXPECT_EQ(double_to_f16(5e-324), 0x0000);
}

TEST(Convert, Bf16) {
  EXPECT_EQ(double_to_bf16(1.0), 0x3f80);
  EXPECT_EQ(double_to_bf16(1.0 + 0x1p-8), 0x3f80);      // tie to even
  EXPECT_EQ(double_to_bf16(1.0 + 3 * 0x1p-8), 0x3f82);  // tie to even
  EXPECT_EQ(double_to_bf16(3.3895313892515355e38), 0x7f7f);
  EXPECT_EQ(double_to_bf16(3.4e38), 0x7f80);
  EXPECT_EQ(double_to_bf16(0x1p-133), 0x0001);
  EXPECT_EQ(double_to_bf16(0x1p-134), 0x0000);
  EXPECT_EQ(bf16_to_double(0xc040), -3.0);
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
    const std::uint16_t halves[] = {double_to_f16(value), double_to_bf16(value)};
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
