// groups.hpp: a grouped problem as the products that it is made of, and where elements stand: for
// the reference, and for those who fill operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "oracle/verification.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

// A Matrix with nothing left to default.
struct View {
  DataType type = DataType::f16;
  bool row_major = true;
  std::uint64_t ld = 0;
  std::uint64_t batch_stride = 0;
  std::uint64_t bytes = 0;

  std::uint64_t index(std::uint64_t batch, std::uint64_t i, std::uint64_t j) const noexcept {
    return batch * batch_stride + (row_major ? i * ld + j : j * ld + i);
  }
};

View view(const Matrix& matrix, std::uint64_t rows, std::uint64_t cols, std::uint64_t batch);

struct Views {
  explicit Views(const Problem& problem);
  View a, b, c, d, aux;
};

// Columns of what is multiplied: 2N with a gate. columns_of_b: those of B, where a half of it may
// be another operand.
std::uint64_t product_columns(const Problem& problem);
std::uint64_t columns_of_b(const Problem& problem);
// Where among the former, as B, aux and a bias along N have them, column j of l (half 0) or of r
// stands. Without a gate that is j.
std::uint64_t product_column(const Problem& problem, std::uint64_t half, std::uint64_t j);

// How many matrices an operand has, in a batch or for groups.
struct MatrixCounts {
  explicit MatrixCounts(const Problem& problem);
  std::uint64_t a, b, d;  // C and aux as D
};

// Offsets as they are in memory, and back: int32 or int64.
std::vector<std::byte> encode_offsets(std::span<const std::int64_t> offsets, OffsetType type);
std::vector<std::int64_t> decode_offsets(const void* data, std::size_t count, OffsetType type);

// The product of one group as a problem of its own. `operands` point to its first elements; `d` and
// `aux` are the bytes to those of D and aux.
struct GroupProduct {
  Problem problem;
  HostOperands operands;
  std::uint64_t d = 0;
  std::uint64_t aux = 0;
  std::uint64_t number = 0;
};

// Offsets are clamped as problem.hpp says.
std::vector<GroupProduct> products_of(const Problem& problem, const HostOperands& operands);

inline const void* advanced(const void* data, std::uint64_t bytes) {
  return data == nullptr ? nullptr : static_cast<const std::byte*>(data) + bytes;
}
inline void* advanced(void* data, std::uint64_t bytes) {
  return data == nullptr ? nullptr : static_cast<std::byte*>(data) + bytes;
}

}  // namespace vkgemm::oracle
