#include "oracle/code_blocks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "lib/quantised.h"
#include "oracle/small_float.hpp"
#include "problem/convert.hpp"

namespace vkgemm::oracle {
namespace {

struct BitField {
  std::uint32_t byte = 0, shift = 0, count = 0;
};

// The lower bits, then the upper ones.
using BitFields = std::array<BitField, 2>;

std::uint32_t get(const std::byte* block, const BitFields& fields) {
  std::uint32_t value = 0, shift = 0;
  for (const BitField& f : fields) {
    const auto byte = std::to_integer<std::uint32_t>(block[f.byte]);
    value |= (byte >> f.shift & ((1u << f.count) - 1)) << shift;
    shift += f.count;
  }
  return value;
}

void put(std::byte* block, const BitFields& fields, std::uint32_t value) {
  for (const BitField& f : fields) {
    const std::uint32_t mask = ((1u << f.count) - 1) << f.shift;
    const auto byte = std::to_integer<std::uint32_t>(block[f.byte]);
    block[f.byte] = static_cast<std::byte>((byte & ~mask) | (value << f.shift & mask));
    value >>= f.count;
  }
}

BitFields code_fields(std::uint32_t source, std::uint32_t i) {
  const std::uint32_t line = i % 32, part = i / 128;
  const auto half = [i](std::uint32_t first) { return BitField{first + i % 16, i / 16 * 4, 4}; };
  const auto pair = [=](std::uint32_t first) {
    return BitField{first + i / 64 * 32 + line, i % 64 / 32 * 4, 4};
  };
  const auto two = [=](std::uint32_t first) {
    return BitField{first + part * 32 + line, i % 128 / 32 * 2, 2};
  };
  const auto one = [i](std::uint32_t first) { return BitField{first + i / 8, i % 8, 1}; };
  const auto across = [=](std::uint32_t first) { return BitField{first + line, i / 32, 1}; };
  switch (source) {
    case SOURCE_Q4_0:
    case SOURCE_IQ4_NL:
      return {half(2)};
    case SOURCE_Q8_0:
      return {BitField{2 + i, 0, 8}};
    case SOURCE_MXFP4:
      return {half(1)};
    case SOURCE_Q4_1:
      return {half(4)};
    case SOURCE_Q5_0:
      return {half(6), one(2)};
    case SOURCE_Q5_1:
      return {half(8), one(4)};
    case SOURCE_NVFP4:
      return {BitField{4 + i / 16 * 8 + i % 8, i % 16 / 8 * 4, 4}};
    case SOURCE_Q2_0:
      return {BitField{2 + i / 4, i % 4 * 2, 2}};
    case SOURCE_Q1_0:
      return {one(2)};
    case SOURCE_TQ2_0:
      return {two(0)};
    case SOURCE_Q2_K:
      return {two(16)};
    case SOURCE_Q3_K:
      return {two(32), across(0)};
    case SOURCE_Q4_K:
      return {pair(16)};
    case SOURCE_Q5_K:
      return {pair(48), across(16)};
    case SOURCE_Q6_K:
      return {BitField{part * 64 + i % 64, i % 128 / 64 * 4, 4}, two(128)};
    default:  // SOURCE_IQ4_XS
      return {BitField{8 + i / 32 * 16 + i % 16, i % 32 / 16 * 4, 4}};
  }
}

BitFields scale_fields(std::uint32_t source, std::uint32_t g) {
  switch (source) {
    case SOURCE_Q2_K:
      return {BitField{g, 0, 4}};
    case SOURCE_Q3_K:
      return {BitField{96 + g % 8, g / 8 * 4, 4}, BitField{104 + g % 4, g / 4 * 2, 2}};
    case SOURCE_Q4_K:
    case SOURCE_Q5_K:
      if (g < 4) return {BitField{4 + g, 0, 6}};
      return {BitField{8 + g, 0, 4}, BitField{g, 6, 2}};
    case SOURCE_Q6_K:
      return {BitField{192 + g, 0, 8}};
    case SOURCE_IQ4_XS:
      return {BitField{4 + g / 2, g % 2 * 4, 4}, BitField{2 + g / 4, g % 4 * 2, 2}};
    default:  // a byte
      return {BitField{g, 0, 8}};
  }
}

BitFields minimum_fields(std::uint32_t source, std::uint32_t g) {
  if (source == SOURCE_Q2_K) return {BitField{g, 4, 4}};
  if (g < 4) return {BitField{8 + g, 0, 6}};
  return {BitField{8 + g, 4, 4}, BitField{4 + g, 6, 2}};
}

// Bytes before the f16 of scales and that of minima; none: there is no such number.
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
struct Floats {
  std::uint32_t scale = 0, minimum = none;
};
Floats floats_of(std::uint32_t source) {
  switch (source) {
    case SOURCE_MXFP4:
    case SOURCE_NVFP4:
      return {none, none};
    case SOURCE_Q4_1:
    case SOURCE_Q5_1:
    case SOURCE_Q4_K:
    case SOURCE_Q5_K:
      return {0, 2};
    case SOURCE_TQ2_0:
      return {64, none};
    case SOURCE_Q2_K:
      return {80, 82};
    case SOURCE_Q3_K:
      return {108, none};
    case SOURCE_Q6_K:
      return {208, none};
    default:
      return {};
  }
}

constexpr bool has_levels(std::uint32_t source) { return source >= SOURCE_Q2_K; }
constexpr bool is_iq4(std::uint32_t source) {
  return source == SOURCE_IQ4_NL || source == SOURCE_IQ4_XS;
}
constexpr bool is_fp4(std::uint32_t source) {
  return source == SOURCE_MXFP4 || source == SOURCE_NVFP4;
}

float f16_at(const std::byte* block, std::uint32_t byte) {
  return static_cast<float>(load_element(block + byte, DataType::f16, 0));
}

// Stored scales of groups, as integers.
struct Level2 {
  int lowest = 0, largest = 0;
};
Level2 level_of(std::uint32_t source) {
  switch (source) {
    case SOURCE_Q2_K:
      return {0, 15};
    case SOURCE_Q3_K:
    case SOURCE_IQ4_XS:
      return {-32, 31};
    case SOURCE_Q6_K:
      return {-128, 127};
    default:
      return {0, 63};
  }
}

constexpr std::array iq4_numbers{-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace

// Stored codes stand for themselves plus `lowest`, up to `largest`.
struct BlockFormat::Range {
  int lowest = 0, largest = 15;
};
// The scale and the minimum that the numbers of a group need.
struct BlockFormat::Level {
  double scale = 0.0, minimum = 0.0;
};

BlockFormat::Range BlockFormat::range() const {
  switch (source) {
    case SOURCE_Q4_0:
      return {-8, 7};
    case SOURCE_Q8_0:
      return {-128, 127};
    case SOURCE_Q5_0:
      return {-16, 15};
    case SOURCE_Q5_1:
    case SOURCE_Q5_K:
      return {0, 31};
    case SOURCE_Q1_0:
    case SOURCE_Q2_0:
    case SOURCE_TQ2_0:
      return {-1, 1};
    case SOURCE_Q2_K:
      return {0, 3};
    case SOURCE_Q3_K:
      return {-4, 3};
    case SOURCE_Q6_K:
      return {-32, 31};
    default:
      return {};
  }
}

std::uint32_t BlockFormat::codes() const { return BLOCK_CODES(source); }
std::uint32_t BlockFormat::bytes() const { return BLOCK_SIZE(source); }
std::uint32_t BlockFormat::code(const std::byte* block, std::uint32_t i) const {
  return get(block, code_fields(source, i));
}
void BlockFormat::set_code(std::byte* block, std::uint32_t i, std::uint32_t code) const {
  put(block, code_fields(source, i), code);
}

double BlockFormat::number(std::uint32_t code) const {
  if (is_iq4(source)) return iq4_numbers[code];
  if (is_fp4(source)) return small_float(code, 4, 1, 1);
  if (source == SOURCE_Q8_0) return static_cast<std::int8_t>(code);
  if (source == SOURCE_Q1_0) return code != 0 ? 1.0 : -1.0;
  return static_cast<int>(code) + range().lowest;
}

float BlockFormat::scale(const std::byte* block, std::uint32_t i) const {
  const std::uint32_t g = i / group;
  const std::uint32_t stored = get(block, scale_fields(source, g));
  if (source == SOURCE_MXFP4) return static_cast<float>(e8m0(stored));
  // ggml's have no sign and no NaN.
  if (source == SOURCE_NVFP4) {
    return stored == 0x7f ? 0.0f : static_cast<float>(small_float(stored & 0x7f, 8, 3, 7));
  }
  const float d = f16_at(block, floats_of(source).scale);
  if (!has_levels(source)) return d;
  if (source == SOURCE_Q6_K) return d * static_cast<float>(static_cast<std::int8_t>(stored));
  return d * static_cast<float>(static_cast<int>(stored) + level_of(source).lowest);
}

bool BlockFormat::has_minima() const { return floats_of(source).minimum != none; }

float BlockFormat::minimum(const std::byte* block, std::uint32_t i) const {
  const std::uint32_t at = floats_of(source).minimum;
  if (at == none) return 0.0f;
  const float m = f16_at(block, at);
  if (!has_levels(source)) return m;
  return -m * static_cast<float>(get(block, minimum_fields(source, i / group)));
}

void BlockFormat::set_scale(std::byte* block, std::uint32_t i, double scale) const {
  if (source == SOURCE_MXFP4) {
    put(block, scale_fields(source, 0), e8m0_from(scale));
  } else if (source == SOURCE_NVFP4) {
    std::byte byte{};
    store_element(&byte, DataType::e4m3, 0, std::min(scale, 448.0));
    put(block, scale_fields(source, i / group), std::to_integer<std::uint32_t>(byte));
  } else {
    store_element(block + floats_of(source).scale, DataType::f16, 0, scale);
  }
}

void BlockFormat::fill(std::byte* block, const std::function<std::uint32_t()>& random, double scale,
                       double minimum) const {
  std::generate_n(block, bytes(), [&] { return static_cast<std::byte>(random() >> 24); });
  const Floats floats = floats_of(source);
  if (floats.scale != none) store_element(block + floats.scale, DataType::f16, 0, scale);
  if (floats.minimum != none) store_element(block + floats.minimum, DataType::f16, 0, minimum);
  if (floats.scale != none) return;
  for (std::uint32_t i = 0; i < codes(); i += group) {
    set_scale(block, i, scale * std::ldexp(1.0, static_cast<int>(random() >> 30)));
  }
}

std::uint32_t BlockFormat::nearest(double number) const {
  const std::uint32_t count =
      1u << (code_fields(source, 0)[0].count + code_fields(source, 0)[1].count);
  if (source == SOURCE_Q1_0) return number < 0.0 ? 0 : 1;
  if (!is_iq4(source) && !is_fp4(source)) {
    const Range r = range();
    const double code = std::nearbyint(std::clamp(number, double(r.lowest), double(r.largest)));
    if (source == SOURCE_Q8_0) return static_cast<std::uint8_t>(static_cast<int>(code));
    return static_cast<std::uint32_t>(static_cast<int>(code) - r.lowest);
  }
  std::uint32_t best = 0;
  for (std::uint32_t code = 1; code < count; ++code) {
    if (std::fabs(this->number(code) - number) < std::fabs(this->number(best) - number))
      best = code;
  }
  return best;
}

BlockFormat::Level BlockFormat::wanted(std::span<const double> numbers) const {
  const double low = std::min(0.0, *std::ranges::min_element(numbers));
  const double high = std::max(0.0, *std::ranges::max_element(numbers));
  if (floats_of(source).minimum != none) {
    const double first = has_levels(source) ? low : *std::ranges::min_element(numbers);
    const double last = has_levels(source) ? high : *std::ranges::max_element(numbers);
    return {(last - first) / range().largest, has_levels(source) ? -first : first};
  }
  if (source == SOURCE_Q1_0) {
    double sum = 0.0;
    for (const double number : numbers) sum += std::fabs(number);
    return {sum / static_cast<double>(numbers.size())};
  }
  if (is_iq4(source)) return {std::max(high / 113.0, -low / 127.0)};
  if (is_fp4(source)) return {std::max(high, -low) / 6.0};
  return {std::max(high, -low) / range().largest};
}

void BlockFormat::quantise(std::span<const double> numbers, std::byte* block) const {
  std::fill_n(block, bytes(), std::byte{0});
  std::vector<Level> levels;
  Level most;
  for (std::uint32_t i = 0; i < codes(); i += group) {
    const Level level = wanted(numbers.subspan(i, group));
    most = {std::max(most.scale, level.scale), std::max(most.minimum, level.minimum)};
    levels.push_back(level);
  }
  const Floats floats = floats_of(source);
  if (has_levels(source)) {
    const double largest = level_of(source).largest;
    store_element(block + floats.scale, DataType::f16, 0, most.scale / largest);
    const double d = f16_at(block, floats.scale);
    double m = 0.0;
    if (floats.minimum != none) {
      store_element(block + floats.minimum, DataType::f16, 0, most.minimum / largest);
      m = f16_at(block, floats.minimum);
    }
    const auto steps = [&](double value, double of) {
      return of > 0.0 ? static_cast<int>(std::clamp(std::nearbyint(value / of), 0.0, largest)) : 0;
    };
    for (std::uint32_t g = 0; g < levels.size(); ++g) {
      const int stored =
          steps(levels[g].scale, d) - (source == SOURCE_Q6_K ? 0 : level_of(source).lowest);
      put(block, scale_fields(source, g), static_cast<std::uint32_t>(stored));
      if (floats.minimum != none) {
        put(block, minimum_fields(source, g),
            static_cast<std::uint32_t>(steps(levels[g].minimum, m)));
      }
    }
  } else {
    for (std::uint32_t g = 0; g < levels.size(); ++g) {
      set_scale(block, g * group, levels[g].scale > 0.0 ? levels[g].scale : 1.0);
    }
    if (floats.minimum != none) {
      store_element(block + floats.minimum, DataType::f16, 0, levels[0].minimum);
    }
  }
  for (std::uint32_t i = 0; i < codes(); ++i) {
    const double factor = scale(block, i);
    const bool scaled = factor > 0.0 && std::isfinite(factor);
    set_code(block, i, nearest(scaled ? (numbers[i] - minimum(block, i)) / factor : 0.0));
  }
}

}  // namespace vkgemm::oracle
