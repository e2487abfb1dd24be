// operand_shape.hpp: the place of an operand's elements in the caller's memory. Pure.
#pragma once

#include <cstdint>

#include "vkgemm/problem.hpp"

namespace vkgemm {

// The matrices of an operand as the caller lays them out. A vector is a matrix of one row or of one
// column.
struct OperandShape {
  Matrix matrix;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t count = 0;          // of matrices: of a batch, or of groups
  std::uint32_t element_bytes = 0;  // 0: that of the matrix's type
  bool is_mask = false;             // an element has the bits of 8 neighbours of a line
  // Matrices of the batch's inner dimension, and elements from them to those of the next outer one.
  std::uint64_t inner_count = 0;  // 0: there is no outer one
  std::uint64_t outer_stride = 0;

  bool row_major() const noexcept { return matrix.layout == Layout::row_major; }
  std::uint64_t length() const noexcept { return row_major() ? cols : rows; }  // of a line
  std::uint64_t lines() const noexcept { return row_major() ? rows : cols; }
  std::uint64_t ld() const noexcept { return matrix.ld.value_or(length()); }
  std::uint64_t batch_stride() const noexcept {
    return matrix.batch_stride.value_or(lines() * ld());
  }
  bool has_padding() const noexcept {
    return ld() != length() || batch_stride() != lines() * length() ||
           (inner_count != 0 && outer_stride != inner_count * batch_stride());
  }
  // The distances of a matrix and of an element from the first ones, in elements.
  std::uint64_t matrix_index(std::uint64_t batch) const noexcept {
    if (inner_count == 0) return batch * batch_stride();
    return batch / inner_count * outer_stride + batch % inner_count * batch_stride();
  }
  std::uint64_t index(std::uint64_t batch, std::uint64_t i, std::uint64_t j) const noexcept {
    return matrix_index(batch) + (row_major() ? i * ld() + j : j * ld() + i);
  }
  std::uint32_t element() const noexcept {  // in bytes
    return element_bytes != 0 ? element_bytes : size_in_bytes(matrix.type);
  }
  // Bytes from the first element to behind the last one. Of a problem that resolve() accepts.
  std::uint64_t bytes() const noexcept {
    if (rows == 0 || cols == 0 || count == 0) return 0;
    return (index(count - 1, rows - 1, cols - 1) + 1) * element();
  }
};

// A vector along M, a column, has a value for each row of D; along N, a row, one for each column.
inline OperandShape vector_along_n(DataType type, std::uint64_t length, std::uint64_t count,
                                   std::uint64_t stride) {
  return {{.type = type, .batch_stride = stride}, 1, length, count};
}
inline OperandShape vector_along_m(DataType type, std::uint64_t length, std::uint64_t count,
                                   std::uint64_t stride) {
  return {{.type = type, .layout = Layout::col_major, .batch_stride = stride}, length, 1, count};
}

}  // namespace vkgemm
