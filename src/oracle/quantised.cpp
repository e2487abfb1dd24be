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
#include "oracle/small_float.hpp"
#include "problem/convert.hpp"
#include "problem/data_type.hpp"

namespace vkgemm::oracle {
namespace {

// The place of one of eight columns in a word of AWQ.
std::uint64_t awq_place(std::uint64_t column) {
  constexpr std::uint64_t places[] = {0, 4, 1, 5, 2, 6, 3, 7};
  return places[column % 8];
}

std::byte with_nibble(std::byte byte, bool upper, std::uint32_t value) {
  return upper ? (byte & std::byte{0x0f}) | static_cast<std::byte>((value & 0xf) << 4)
               : (byte & std::byte{0xf0}) | static_cast<std::byte>(value & 0xf);
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The largest magnitude of a group's codes.
double largest(CodeType type) {
  switch (form_of(type).codes) {
    case CODES_INT8:
      return 127.0;
    case CODES_INT4:
      return 7.0;
    case CODES_E4M3:
      return 448.0;
    case CODES_E5M2:
      return 57344.0;
    default:
      return 6.0;
  }
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
    case CodeType::nvfp4:
      return small_float(code, 4, 1, 1);
    default:
      return BlockFormat{form_of(type).source, form_of(type).group_k}.number(code);
  }
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
  return !problem.quantised_b || rounds_elements(config, *problem.quantised_b, input_of(problem));
}

std::uint64_t matrix_of(const OperandShape& shape, std::uint64_t i) {
  if (shape.inner_count == 0) return i;
  const std::uint64_t inner = shape.batch_stride() == 0 ? 1 : shape.inner_count;
  return i / inner * shape.inner_count + i % inner;
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
  format_ = {source_of(q_), q_.group_k};
}

std::byte* CodeMatrix::block(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) {
  return codes.data() + matrix * source_.codes.matrix + column * source_.codes.line +
         k / format_.codes() * format_.bytes();
}
const std::byte* CodeMatrix::block(std::uint64_t matrix, std::uint64_t k,
                                   std::uint64_t column) const {
  return const_cast<CodeMatrix*>(this)->block(matrix, k, column);
}

CodeMatrix::Place CodeMatrix::place_of_code(std::uint64_t matrix, std::uint64_t k,
                                            std::uint64_t column) const {
  const std::uint64_t line = source_.codes.line;
  const auto nibble = [&](std::uint64_t byte, std::uint64_t place) {
    return Place{matrix * source_.codes.matrix + byte + place / 2, place % 2 != 0};
  };
  if (q_.layout == CodeLayout::awq) return nibble(k * line + column / 8 * 4, awq_place(column));
  if (q_.layout != CodeLayout::separate) return nibble(k / 8 * line + column * 4, k % 8);
  const bool pairs = bits_of(q_.type) == 4;
  const std::uint64_t along_k = pairs ? k / 2 : k;
  const std::uint64_t at = in_rows_ ? along_k * line + column : column * line + along_k;
  return {matrix * source_.codes.matrix + at, pairs && k % 2 != 0};
}

std::uint64_t CodeMatrix::group_of(std::uint64_t k, std::uint64_t column) const {
  const std::uint64_t along_k = q_.group_k == 0 ? 0 : k / q_.group_k;
  const std::uint64_t along_n = q_.group_n == 0 ? 0 : column / q_.group_n;
  const std::uint64_t line = source_.scales.line;
  return in_rows_ ? along_k * line + along_n : along_n * line + along_k;
}

// Codes of integers in blocks and words count from the lowest value.
std::uint32_t CodeMatrix::offset() const {
  return q_.type == CodeType::int4 && !q_.zeros && q_.layout != CodeLayout::separate ? 8 : 0;
}

std::uint32_t CodeMatrix::code(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const {
  if (in_blocks()) return format_.code(block(matrix, k, column), within(k)) ^ offset();
  const Place place = place_of_code(matrix, k, column);
  const auto byte = std::to_integer<std::uint32_t>(codes[place.byte]);
  const std::uint32_t stored = bits_of(q_.type) == 8 ? byte : place.upper ? byte >> 4 : byte & 0xf;
  return stored ^ offset();
}

void CodeMatrix::set_code(std::uint64_t matrix, std::uint64_t k, std::uint64_t column,
                          std::uint32_t code) {
  code ^= offset();
  if (in_blocks()) return format_.set_code(block(matrix, k, column), within(k), code);
  const Place place = place_of_code(matrix, k, column);
  std::byte& byte = codes[place.byte];
  if (bits_of(q_.type) == 8) {
    byte = static_cast<std::byte>(code);
  } else {
    byte = with_nibble(byte, place.upper, code);
  }
}

double CodeMatrix::scale(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const {
  if (in_blocks()) return static_cast<double>(format_.scale(block(matrix, k, column), within(k)));
  const std::byte* const at = scales.data() + matrix * source_.scales.matrix;
  const std::uint64_t group = group_of(k, column);
  if (q_.type == CodeType::mxfp4) return e8m0(std::to_integer<std::uint32_t>(at[group]));
  return load_element(at, scale_type(), group);
}

void CodeMatrix::set_scale(std::uint64_t matrix, std::uint64_t k, std::uint64_t column,
                           double scale) {
  if (in_blocks()) return format_.set_scale(block(matrix, k, column), within(k), scale);
  std::byte* const at = scales.data() + matrix * source_.scales.matrix;
  const std::uint64_t group = group_of(k, column);
  if (q_.type == CodeType::mxfp4) {
    at[group] = static_cast<std::byte>(e8m0_from(scale));
  } else {
    store_element(at, scale_type(), group, scale);
  }
}

// The place of a zero point in words.
CodeMatrix::Place CodeMatrix::place_of_zero(std::uint64_t matrix, std::uint64_t k,
                                            std::uint64_t column) const {
  const std::uint64_t word = (group_of(k, column) - column % 8) / 2;
  const std::uint64_t place = q_.layout == CodeLayout::awq ? awq_place(column) : column % 8;
  return {matrix * source_.zeros.matrix + word + place / 2, place % 2 != 0};
}

double CodeMatrix::zero(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const {
  if (!q_.zeros) return 0.0;
  if (q_.layout == CodeLayout::separate) {
    const std::byte* const at = zeros.data() + matrix * source_.zeros.matrix;
    return load_element(at, q_.float_zeros ? q_.scale_type : DataType::u8, group_of(k, column));
  }
  const Place place = place_of_zero(matrix, k, column);
  const auto byte = std::to_integer<std::uint32_t>(zeros[place.byte]);
  return (place.upper ? byte >> 4 : byte & 0xf) + (q_.layout == CodeLayout::gptq ? 1 : 0);
}

void CodeMatrix::set_zero(std::uint64_t matrix, std::uint64_t k, std::uint64_t column,
                          double zero) {
  if (q_.layout == CodeLayout::separate) {
    std::byte* const at = zeros.data() + matrix * source_.zeros.matrix;
    return store_element(at, q_.float_zeros ? q_.scale_type : DataType::u8, group_of(k, column),
                         zero);
  }
  const Place place = place_of_zero(matrix, k, column);
  const int stored = static_cast<int>(zero) - (q_.layout == CodeLayout::gptq ? 1 : 0);
  std::byte& byte = zeros[place.byte];
  byte = with_nibble(byte, place.upper, static_cast<std::uint32_t>(stored));
}

float CodeMatrix::element(std::uint64_t matrix, std::uint64_t k, std::uint64_t column) const {
  const auto number = static_cast<float>(code_value(q_.type, q_.zeros, code(matrix, k, column)));
  const auto factor = static_cast<float>(scale(matrix, k, column));
  const float product = factor * (number - static_cast<float>(zero(matrix, k, column)));
  if (!in_blocks() || !format_.has_minima()) return product;
  return product + format_.minimum(block(matrix, k, column), within(k));
}

namespace {

// The number of threads for `elements` in `parts`, which threads share.
std::uint64_t thread_count(std::uint64_t elements, std::uint64_t parts) {
  constexpr std::uint64_t few = 65536;
  const unsigned most = elements < few ? 1 : std::max(1u, std::thread::hardware_concurrency());
  return std::clamp<std::uint64_t>(parts, 1, most);
}

}  // namespace

std::vector<float> CodeMatrix::elements(const Problem& plain) const {
  const OperandShape where = row_of(OperandId::b).shape(plain);
  std::vector<float> out(where.bytes() / where.element());
  const std::uint64_t threads = thread_count(columns_ * k_ * matrices_, k_);
  on_threads(threads, [&](std::uint64_t thread) {
    for (std::uint64_t matrix = 0; matrix < matrices_; ++matrix) {
      for (std::uint64_t k = k_ * thread / threads; k < k_ * (thread + 1) / threads; ++k) {
        for (std::uint64_t n = 0; n < columns_; ++n) {
          out[where.index(matrix_of(where, matrix), k, n)] = element(matrix, k, n);
        }
      }
    }
  });
  return out;
}

void CodeMatrix::quantise_columns(const Values& value, std::uint64_t matrix, std::uint64_t first,
                                  std::uint64_t last) {
  if (in_blocks()) return quantise_blocks(value, matrix, first, last);
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
    if (q_.zeros) set_zeros(matrix, k0, first, last, scaled ? -low / factor : 0.0);
    const double zero = this->zero(matrix, k0, first);
    each([&](std::uint64_t k, std::uint64_t n) {
      const double code = scaled ? value(matrix, k, n) / factor + zero : zero;
      set_code(matrix, k, n, nearest_code(q_.type, q_.zeros, code));
    });
  }
}

// The zero points of a group, which words have for each column.
void CodeMatrix::set_zeros(std::uint64_t matrix, std::uint64_t k, std::uint64_t first,
                           std::uint64_t last, double zero) {
  const double lowest = q_.layout == CodeLayout::gptq ? 1.0 : 0.0;
  if (!q_.float_zeros) zero = std::clamp(std::nearbyint(zero), lowest, 15.0);
  for (std::uint64_t n = first; n < last; ++n) set_zero(matrix, k, n, zero);
}

void CodeMatrix::quantise_blocks(const Values& value, std::uint64_t matrix, std::uint64_t first,
                                 std::uint64_t last) {
  std::vector<double> numbers(format_.codes());
  for (std::uint64_t n = first; n < last; ++n) {
    for (std::uint64_t k = 0; k < k_; k += numbers.size()) {
      for (std::uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = value(matrix, k + i, n);
      format_.quantise(numbers, block(matrix, k, n));
    }
  }
}

// Threads take columns: no two write to one byte, with words of eight columns neither.
void CodeMatrix::quantise(const Values& value) {
  const bool in_words = !in_blocks() && q_.layout != CodeLayout::separate;
  const std::uint64_t own = in_words ? 8 : q_.group_n;
  const std::uint64_t wide = own == 0 ? std::max<std::uint64_t>(columns_, 1) : own;
  const std::uint64_t groups = divided_up(columns_, wide);
  const std::uint64_t threads = thread_count(columns_ * k_ * matrices_, groups);
  const auto work = [&](std::uint64_t thread) {
    for (std::uint64_t matrix = 0; matrix < matrices_; ++matrix) {
      for (std::uint64_t g = groups * thread / threads; g < groups * (thread + 1) / threads; ++g) {
        const std::uint64_t last = std::min((g + 1) * wide, columns_);
        const std::uint64_t step = in_words ? 1 : wide;
        for (std::uint64_t n = g * wide; n < last; n += step) {
          quantise_columns(value, matrix, n, std::min(n + step, last));
        }
      }
    }
  };
  on_threads(threads, work);
}

}  // namespace vkgemm::oracle
