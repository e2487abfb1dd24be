// exact_product.cpp: operands of the self-test, and what must come out, bit for bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "problem/convert.hpp"
#include "problem/inputs/codes.hpp"
#include "self_test/self_test.hpp"

namespace vkgemm {
namespace {

// Behind every matrix: as far as a kernel that overshoots a tile would reach at least.
constexpr std::uint64_t margin_bytes = 64;

std::uint64_t index_of(const Matrix& matrix, std::uint64_t row, std::uint64_t col) {
  return matrix.layout == Layout::row_major ? row * *matrix.ld + col : col * *matrix.ld + row;
}

std::uint64_t bytes_of(const Matrix& matrix, std::uint64_t rows, std::uint64_t cols) {
  const std::uint64_t outer = matrix.layout == Layout::row_major ? rows : cols;
  return outer * *matrix.ld * size_in_bytes(matrix.type) + margin_bytes;
}

std::string number_text(double number) {
  return std::isnan(number) ? std::string("NaN") : concat(number);
}

// Well mixed, so that elements next to each other have nothing to do with each other.
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// One of eight is negative.
int element(std::uint64_t operand, std::uint64_t row, std::uint64_t col) {
  const std::uint64_t random = mixed((operand << 48) + (row << 24) + col + 1);
  const int size = 1 + static_cast<int>(random % 15);
  return (random >> 32) % 8 == 0 ? -size : size;
}

std::vector<std::byte> operand(const Matrix& matrix, std::uint64_t rows, std::uint64_t cols,
                               std::uint64_t number) {
  std::vector<std::byte> bytes(bytes_of(matrix, rows, cols), ExactProduct::poison);
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t col = 0; col < cols; ++col) {
      store_element(bytes.data(), matrix.type, index_of(matrix, row, col),
                    element(number, row, col));
    }
  }
  return bytes;
}

// A quantised B, row-major, without padding.
struct Codes {
  const Problem& problem;
  bool rounds = true;
  const Quantisation& q = *problem.quantised_b;

  std::uint64_t group(std::uint64_t k) const { return q.group_k == 0 ? 0 : k / q.group_k; }
  int code(std::uint64_t k, std::uint64_t col) const { return element(1, k, col) % 8; }
  // Codes of e4m3 so small are subnormals: so many times 2^-9.
  bool is_float() const { return q.type == CodeType::e4m3; }
  int zero(std::uint64_t group, std::uint64_t col) const {
    return q.zeros ? 7 + static_cast<int>(mixed((group << 32) + col + 11) % 2) : 0;
  }
  unsigned bits(std::uint64_t k, std::uint64_t col) const {
    const int number = code(k, col) + zero(group(k), col);  // with zero points from 0 to 15
    if (is_float()) return static_cast<unsigned>(number < 0 ? 0x80 - number : number);
    return static_cast<unsigned>(number) & (bits_of(q.type) == 4 ? 0xfu : 0xffu);
  }
  int scale(std::uint64_t group, std::uint64_t col) const {
    constexpr int scales[] = {1, 2, 1025};
    return scales[mixed((group << 32) + col + 7) % std::size(scales)];
  }
  int value(std::uint64_t k, std::uint64_t col) const {
    const int exact = code(k, col) * scale(group(k), col);
    if (!rounds) return exact;
    std::uint16_t rounded = 0;
    store_element(&rounded, problem.b.type, 0, exact);
    return static_cast<int>(load_element(&rounded, problem.b.type, 0));
  }
  std::vector<std::byte> bytes(std::size_t& scales_offset, std::size_t& zeros_offset) const {
    const std::uint64_t n = problem.n, per_byte = 8 / bits_of(q.type);
    scales_offset = rounded_up(divided_up(problem.k, per_byte) * n, sizeof(std::uint32_t));
    const std::uint64_t groups = problem.k == 0 ? 0 : group(problem.k - 1) + 1;
    zeros_offset = scales_offset + groups * n * size_in_bytes(q.scale_type);
    std::vector<std::byte> out(zeros_offset + (q.zeros ? groups * n : 0));
    for (std::uint64_t col = 0; col < n; ++col) {
      for (std::uint64_t k = 0; k < problem.k; ++k) {
        out[k / per_byte * n + col] |= static_cast<std::byte>(bits(k, col) << (k % per_byte * 4));
      }
      for (std::uint64_t g = 0; g < groups; ++g) {
        store_element(out.data() + scales_offset, q.scale_type, g * n + col,
                      scale(g, col) * (is_float() ? 512 : 1));
        if (q.zeros) out[zeros_offset + g * n + col] = static_cast<std::byte>(zero(g, col));
      }
    }
    return out;
  }
};

}  // namespace

ExactProduct::ExactProduct(const Problem& problem, bool rounds_elements)
    : problem_(problem),
      a_(operand(problem.a, problem.m, problem.k, 0)),
      expected_(bytes_of(problem.d, problem.m, problem.n), poison) {
  const auto element_of_b = [&](std::uint64_t k, std::uint64_t col) {
    return problem.quantised_b ? Codes{problem, rounds_elements}.value(k, col) : element(1, k, col);
  };
  b_ = problem.quantised_b ? Codes{problem}.bytes(scales_offset_, zeros_offset_)
                           : operand(problem.b, problem.k, problem.n, 1);
  std::vector<int> row_of_a(problem.k);
  std::vector<int> columns_of_b(problem.k * problem.n);
  for (std::uint64_t k = 0; k < problem.k; ++k) {
    for (std::uint64_t col = 0; col < problem.n; ++col) {
      columns_of_b[col * problem.k + k] = element_of_b(k, col);
    }
  }
  std::vector<std::int64_t> row_sums(problem.m);
  for (std::uint64_t row = 0; row < problem.m; ++row) {
    for (std::uint64_t k = 0; k < problem.k; ++k) row_of_a[k] = element(0, row, k);
    for (std::uint64_t col = 0; col < problem.n; ++col) {
      int sum = 0;
      for (std::uint64_t k = 0; k < problem.k; ++k) {
        sum += row_of_a[k] * columns_of_b[col * problem.k + k];
      }
      store_element(expected_.data(), problem.d.type, index_of(problem.d, row, col), sum);
      row_sums[row] += sum;
    }
  }
  row_values_offset_ = rounded_up(expected_.size(), std::uint64_t{16});
  expected_.resize(row_values_offset_, poison);
  if (problem.row_reduction) expect_row_values(row_sums);
}

void ExactProduct::expect_row_values(std::span<const std::int64_t> sums) {
  expected_.resize(row_values_offset_ + sums.size() * sizeof(float) + margin_bytes, poison);
  for (std::size_t row = 0; row < sums.size(); ++row) {
    store_element(expected_.data() + row_values_offset_, DataType::f32, row,
                  static_cast<double>(sums[row]));
  }
}

std::optional<std::string> ExactProduct::why_rows_are_wrong(std::span<const std::byte> d) const {
  if (!problem_.row_reduction || d.size() < expected_.size()) return std::nullopt;
  for (std::uint64_t row = 0; row < problem_.m; ++row) {
    const auto value = [&](const std::byte* bytes) {
      return load_element(bytes + row_values_offset_, DataType::f32, row);
    };
    const double expected = value(expected_.data()), got = value(d.data());
    if (expected == got) continue;
    return concat("expected the sum ", expected, ", got ", number_text(got), " of row ", row);
  }
  return std::nullopt;
}

std::optional<std::string> ExactProduct::why_wrong(std::span<const std::byte> d) const {
  if (std::ranges::equal(d, expected_)) return std::nullopt;
  const std::uint64_t size = size_in_bytes(problem_.d.type);
  const auto value = [&](std::span<const std::byte> bytes, std::uint64_t index) {
    return number_text(load_element(bytes.data(), problem_.d.type, index));
  };
  const auto what = concat("m ", problem_.m, ", n ", problem_.n, ", k ", problem_.k, ", a ",
                           to_string(problem_.a.layout), ", b ", to_string(problem_.b.layout));
  std::uint64_t wrong = 0;
  std::string first;
  for (std::uint64_t row = 0; row < problem_.m; ++row) {
    for (std::uint64_t col = 0; col < problem_.n; ++col) {
      const std::uint64_t index = index_of(problem_.d, row, col);
      const bool there = (index + 1) * size <= d.size();
      if (there && std::memcmp(&d[index * size], &expected_[index * size], size) == 0) continue;
      if (wrong++ != 0) continue;
      first =
          concat("expected ", value(expected_, index), ", got ",
                 there ? value(d, index) : std::string("nothing"), " at (", row, ", ", col, ")");
    }
  }
  if (wrong == 0) {
    if (const auto rows = why_rows_are_wrong(d)) return concat(*rows, " (", what, ")");
    return concat("wrote where no element of D stands (", what, ")");
  }
  return concat(first, ", ", wrong, " of ", problem_.m * problem_.n, " elements are wrong (", what,
                ")");
}

}  // namespace vkgemm
