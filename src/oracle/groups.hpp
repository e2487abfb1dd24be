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
  bool is_mask = false;

  std::uint64_t index(std::uint64_t batch, std::uint64_t i, std::uint64_t j) const noexcept {
    return batch * batch_stride + (row_major ? i * ld + j : j * ld + i);
  }

  // An element of an operand. That of a mask is a bit: 0 or 1.
  double get(const void* data, std::uint64_t batch, std::uint64_t i, std::uint64_t j) const;
  void set(void* data, std::uint64_t batch, std::uint64_t i, std::uint64_t j, double value) const;

 private:
  std::uint64_t byte_of_mask(std::uint64_t batch, std::uint64_t i, std::uint64_t j) const noexcept {
    return row_major ? index(batch, i, j / 8) : index(batch, i / 8, j);
  }
  std::uint32_t bit_of_mask(std::uint64_t i, std::uint64_t j) const noexcept {
    return (row_major ? j : i) % 8;
  }
};

View view(const OperandShape& shape);

struct Views : PerOperand<View> {
  explicit Views(const Problem& problem);
};

// The column of the product that is column j of l (half 0) or of r, in the order of B, aux and a
// bias along N. Without a gate it is j.
std::uint64_t product_column(const Problem& problem, std::uint64_t half, std::uint64_t j);

// Offsets, int32 or int64, from memory: the inverse of encode_integers().
std::vector<std::int64_t> decode_offsets(const void* data, std::size_t count, OffsetType type);

// The product of one group, or of one outer batch index, as a problem of its own, and the
// bytes from the first element of each operand to its own.
struct GroupProduct {
  Problem problem;
  PerOperand<std::uint64_t> begins;
  std::uint64_t number = 0;
  bool has_d = true;  // false: a row whose index is beyond D's rows
  // The term and the factor of a row that is added up to one of D.
  std::uint64_t term = 0;
  double weight = 1.0;

  // The same operands from where the group's begin.
  HostOperands of(const HostOperands& operands) const;
  PerOperand<void*> of(const PerOperand<void*>& results) const;
};

// True if a problem is several products.
inline bool has_products(const Problem& problem) noexcept {
  return problem.grouping || problem.outer_batch != 1;
}

// Offsets and indices are clamped as problem.hpp says. A row that has an index is a product of its
// own.
std::vector<GroupProduct> products_of(const Problem& problem, const HostOperands& operands);

}  // namespace vkgemm::oracle
