#include "oracle/quantised.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "base/arithmetic.hpp"
#include "base/parallel.hpp"
#include "kernels/parts/quantised.hpp"
#include "lib/quantised.h"
#include "oracle/groups.hpp"
#include "problem/convert.hpp"
#include "problem/data_type.hpp"

namespace vkgemm::oracle {
namespace {

// Of a sign, an exponent and so many bits of mantissa, with subnormals.
double small_float(std::uint32_t code, int bits, int mantissa, int bias) {
  const std::uint32_t magnitude = code & ((1u << (bits - 1)) - 1);
  const int exponent = static_cast<int>(magnitude >> mantissa);
  const double fraction =
      (magnitude & ((1u << mantissa) - 1)) + (exponent != 0 ? 1 << mantissa : 0);
  const double value = std::ldexp(fraction, std::max(exponent, 1) - bias - mantissa);
  return (code >> (bits - 1)) != 0 ? -value : value;
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The largest magnitude of a group's codes.
double largest(CodeType type) {
  switch (type) {
    case CodeType::int8:
      return 127.0;
    case CodeType::int4:
      return 7.0;
    case CodeType::e4m3:
      return 448.0;
    case CodeType::e5m2:
      return 57344.0;
    case CodeType::mxfp4:
      return 6.0;
  }
  return 1.0;
}

double e8m0(std::uint32_t byte) {
  return byte == 255 ? nan : std::ldexp(1.0, static_cast<int>(byte) - 127);
}

// The scale, rounded up to a power of two: no code overflows.
std::uint32_t e8m0_from(double scale) {
  if (std::isnan(scale)) return 255;
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);
  return static_cast<std::uint32_t>(std::clamp(exponent + (fraction == 0.5 ? 126 : 127), 0, 254));
}

std::uint32_t block_bytes(CodeType type) {
  return GGML_BLOCK * bits_of(type) / 8 + (type == CodeType::mxfp4 ? 1 : 2);
}

}  // namespace

double code_value(CodeType type, bool has_zeros, std::uint32_t code) {
  switch (type) {
    case CodeType::int8:
      return static_cast<std::int8_t>(code);
    case CodeType::int4:
      return has_zeros || code < 8 ? code : static_cast<double>(code) - 16.0;
    case CodeType::e4m3:
      return (code & 0x7f) == 0x7f ? nan : small_float(code, 8, 3, 7);
    case CodeType::e5m2: {
      const std::uint32_t magnitude = code & 0x7f;
      if (magnitude > 0x7c) return nan;
      if (magnitude < 0x7c) return small_float(code, 8, 2, 15);
      return code < 0x80 ? std::numeric_limits<double>::infinity()
                         : -std::numeric_limits<double>::infinity();
    }
    case CodeType::mxfp4:
      return small_float(code, 4, 1, 1);
  }
  return 0.0;
}

std::uint32_t nearest_code(CodeType type, bool has_zeros, double value) {
  if (std::isnan(value)) return type == CodeType::e4m3 || type == CodeType::e5m2 ? 0x7f : 0;
  const auto whole = [&](double low, double high, std::uint32_t mask) {
    const double nearest = std::nearbyint(std::clamp(value, low, high));
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(nearest)) & mask;
  };
  if (type == CodeType::int8) return whole(-128.0, 127.0, 0xff);
  if (type == CodeType::int4) return has_zeros ? whole(0.0, 15.0, 0xf) : whole(-8.0, 7.0, 0xf);
  // Numbers grow with their codes, up to the largest.
  const double magnitude = std::min(std::fabs(value), largest(type));
  const auto value_of = [type](std::uint32_t code) { return code_value(type, false, code); };
  std::uint32_t low = 0, high = code_count(type) / 2 - 1;
  while (!(value_of(high) <= largest(type))) --high;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (value_of(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - value_of(low), above = value_of(high) - magnitude;
  const std::uint32_t nearest = below < above || (below == above && low % 2 == 0) ? low : high;
  return std::signbit(value) && nearest != 0 ? nearest | code_count(type) / 2 : nearest;
}

bool rounds_b(const Problem& problem, const Config& config) {
  return !problem.quantised_b || rounds_elements(config, *problem.quantised_b, problem.b.type);
}

CodeMatrix::CodeMatrix(const Problem& problem)
    : q_(with_group(*problem.quantised_b)),
      in_rows_(problem.b.layout == Layout::row_major),
      k_(problem.k) {
  matrices_ =
      problem.b.batch_stride == std::uint64_t{0} ? 1 : row_of(OperandId::b).shape(problem).count;
  columns_ = columns_of_b(problem);
  source_ = code_source(problem, matrices_).value();
  codes.resize(source_.codes.bytes);
  scales.resize(source_.scales.bytes);
  zeros.resize(source_.zeros.bytes);
}

std::uint64_t CodeMatrix::block_of(std::uint64_t matrix, std::uint64_t k,
                                   std::uint64_t column) const {
  return matrix * source_.codes.matrix + column * source_.codes.line +
         k / GGML_BLOCK * block_bytes(q_.type);
}

CodeMatrix::Place CodeMatrix::place_of_code(std::uint64_t matrix, std::uint64_t k,
                                            std::uint64_t column) const {
  const bool pairs = bits_of(q_.type) == 4;
  if (q_.layout == CodeLayout::ggml_blocks) {
    const std::uint64_t within = k % GGML_BLOCK, half = GGML_BLOCK / 2;
    const std::uint64_t scale = block_bytes(q_.type) - GGML_BLOCK * bits_of(q_.type) / 8;
    const bool upper = pairs && within >= half;
    return {block_of(matrix, k, column) + scale + (upper ? within - half : within), upper};
  }
  const std::uint64_t along_k = pairs ? k / 2 : k;
  const std::uint64_t at =
      in_rows_ ? along_k * source_.codes.line + column : column * source_.codes.line + along_k;
  return {matrix * source_.codes.matrix + at, pairs && k % 2 != 0};
}

std::uint64_t CodeMatrix::group_of(std::uint64_t k, std::uint64_t column) const {
  const std::uint64_t along_k = q_.group_k == 0 ? 0 : k / q_.group_k;
  const std::uint64_t along_n = q_.group_n == 0 ? 0 : column / q_.group_n;
  const std::uint64_t line = source_.scales.line;
  return in_rows_ ? along_k * line + along_n : along_n * line + along_k;
}

std::uint32_t CodeMatrix::code(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const {
  const Place place = place_of_code(matrix, k, column);
  const auto byte = std::to_integer<std::uint32_t>(codes[place.byte]);
  const std::uint32_t stored = bits_of(q_.type) == 8 ? byte : place.upper ? byte >> 4 : byte & 0xf;
  // q4_0 counts from the lowest value.
  const bool offset = q_.layout == CodeLayout::ggml_blocks && q_.type == CodeType::int4;
  return offset ? stored ^ 8 : stored;
}

void CodeMatrix::set_code(std::uint64_t matrix, std::uint64_t k, std::uint64_t column,
                          std::uint32_t code) {
  const Place place = place_of_code(matrix, k, column);
  if (q_.layout == CodeLayout::ggml_blocks && q_.type == CodeType::int4) code ^= 8;
  std::byte& byte = codes[place.byte];
  if (bits_of(q_.type) == 8) {
    byte = static_cast<std::byte>(code);
  } else if (place.upper) {
    byte = (byte & std::byte{0x0f}) | static_cast<std::byte>(code << 4);
  } else {
    byte = (byte & std::byte{0xf0}) | static_cast<std::byte>(code);
  }
}

double CodeMatrix::scale(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const {
  const bool mxfp4 = q_.type == CodeType::mxfp4;
  if (q_.layout == CodeLayout::ggml_blocks) {
    const std::byte* const at = codes.data() + block_of(matrix, k, column);
    return mxfp4 ? e8m0(std::to_integer<std::uint32_t>(*at)) : load_element(at, DataType::f16, 0);
  }
  const std::byte* const at = scales.data() + matrix * source_.scales.matrix;
  const std::uint64_t group = group_of(k, column);
  return mxfp4 ? e8m0(std::to_integer<std::uint32_t>(at[group]))
               : load_element(at, q_.scale_type, group);
}

void CodeMatrix::set_scale(std::uint64_t matrix, std::uint64_t k, std::uint64_t column,
                           double scale) {
  const bool mxfp4 = q_.type == CodeType::mxfp4;
  const bool ggml = q_.layout == CodeLayout::ggml_blocks;
  std::byte* const at = ggml ? codes.data() + block_of(matrix, k, column)
                             : scales.data() + matrix * source_.scales.matrix;
  const std::uint64_t group = ggml ? 0 : group_of(k, column);
  if (mxfp4) {
    at[group] = static_cast<std::byte>(e8m0_from(scale));
  } else {
    store_element(at, ggml ? DataType::f16 : q_.scale_type, group, scale);
  }
}

std::uint32_t CodeMatrix::zero(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const {
  if (!q_.zeros) return 0;
  return std::to_integer<std::uint32_t>(zeros[matrix * source_.zeros.matrix + group_of(k, column)]);
}

void CodeMatrix::set_zero(std::uint64_t matrix, std::uint64_t k, std::uint64_t column,
                          std::uint32_t zero) {
  zeros[matrix * source_.zeros.matrix + group_of(k, column)] = static_cast<std::byte>(zero);
}

float CodeMatrix::element(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const {
  const double value = code_value(q_.type, q_.zeros, code(matrix, k, column)) -
                       static_cast<double>(zero(matrix, k, column));
  return static_cast<float>(scale(matrix, k, column)) * static_cast<float>(value);
}

std::vector<float> CodeMatrix::elements(const Problem& plain) const {
  const View where = view(row_of(OperandId::b).shape(plain));
  std::vector<float> out(where.bytes / size_in_bytes(where.type));
  for (std::uint64_t matrix = 0; matrix < matrices_; ++matrix) {
    for (std::uint64_t k = 0; k < k_; ++k) {
      for (std::uint64_t n = 0; n < columns_; ++n) {
        out[where.index(matrix, k, n)] = element(matrix, k, n);
      }
    }
  }
  return out;
}

void CodeMatrix::quantise_columns(const Values& value, std::uint64_t matrix, std::uint64_t first,
                                  std::uint64_t last) {
  const std::uint64_t deep = q_.group_k == 0 ? std::max<std::uint64_t>(k_, 1) : q_.group_k;
  for (std::uint64_t k0 = 0; k0 < k_; k0 += deep) {
    const auto each = [&](const auto& function) {
      for (std::uint64_t k = k0; k < std::min(k0 + deep, k_); ++k) {
        for (std::uint64_t n = first; n < last; ++n) function(k, n);
      }
    };
    double low = 0.0, high = 0.0;
    each([&](std::uint64_t k, std::uint64_t n) {
      const double one = value(matrix, k, n);
      low = std::min(low, one);
      high = std::max(high, one);
    });
    const double range = q_.zeros ? (high - low) / 15.0 : std::max(high, -low) / largest(q_.type);
    set_scale(matrix, k0, first, range > 0.0 ? range : 1.0);
    // 0 or infinity where the range was too small or too large for the scale's type.
    const double factor = scale(matrix, k0, first);
    const bool scaled = factor > 0.0 && std::isfinite(factor);
    const double zero =
        q_.zeros && scaled ? std::clamp(std::nearbyint(-low / factor), 0.0, 15.0) : 0.0;
    if (q_.zeros) set_zero(matrix, k0, first, static_cast<std::uint32_t>(zero));
    each([&](std::uint64_t k, std::uint64_t n) {
      const double code = scaled ? value(matrix, k, n) / factor + zero : zero;
      set_code(matrix, k, n, nearest_code(q_.type, q_.zeros, code));
    });
  }
}

// Threads take columns: no two write to one byte.
void CodeMatrix::quantise(const Values& value) {
  const std::uint64_t wide = q_.group_n == 0 ? std::max<std::uint64_t>(columns_, 1) : q_.group_n;
  const std::uint64_t groups = divided_up(columns_, wide);
  const bool is_small = columns_ * k_ * matrices_ < 65536;
  const std::uint64_t threads = std::min<std::uint64_t>(
      groups, is_small ? 1 : std::max(1u, std::thread::hardware_concurrency()));
  const auto work = [&](std::uint64_t thread) {
    for (std::uint64_t matrix = 0; matrix < matrices_; ++matrix) {
      for (std::uint64_t g = groups * thread / threads; g < groups * (thread + 1) / threads; ++g) {
        quantise_columns(value, matrix, g * wide, std::min((g + 1) * wide, columns_));
      }
    }
  };
  on_threads(threads, work);
}

}  // namespace vkgemm::oracle
