#include "oracle/groups.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "problem/convert.hpp"
#include "problem/operands.hpp"
#include "problem/resolve.hpp"

namespace vkgemm::oracle {
namespace {

// A matrix of a part of the rows or columns lies as the whole one does.
Matrix one_of(const Matrix& matrix, const OperandShape& whole) {
  Matrix part = matrix;
  part.ld = whole.ld();
  part.batch_stride.reset();
  return part;
}

template <class Pointer>
PerOperand<Pointer> advanced(const PerOperand<Pointer>& operands,
                             const PerOperand<std::uint64_t>& bytes) {
  using Byte = std::conditional_t<std::is_same_v<Pointer, void*>, std::byte, const std::byte>;
  PerOperand<Pointer> out;
  for (const OperandRow& row : operand_rows()) {
    const Pointer data = operands[row.id];
    if (data != nullptr) out[row.id] = static_cast<Byte*>(data) + bytes[row.id];
  }
  return out;
}

}  // namespace

View view(const OperandShape& shape) {
  return {.type = shape.matrix.type,
          .row_major = shape.row_major(),
          .ld = shape.ld(),
          .batch_stride = shape.batch_stride(),
          .bytes = shape.bytes(),
          .is_mask = shape.is_mask};
}

double View::get(const void* data, std::uint64_t batch, std::uint64_t i, std::uint64_t j) const {
  if (!is_mask) return load_element(data, type, index(batch, i, j));
  const auto* const bytes = static_cast<const unsigned char*>(data);
  return bytes[byte_of_mask(batch, i, j)] >> bit_of_mask(i, j) & 1;
}

void View::set(void* data, std::uint64_t batch, std::uint64_t i, std::uint64_t j,
               double value) const {
  if (!is_mask) return store_element(data, type, index(batch, i, j), value);
  unsigned char& byte = static_cast<unsigned char*>(data)[byte_of_mask(batch, i, j)];
  const unsigned bit = 1u << bit_of_mask(i, j);
  byte = static_cast<unsigned char>(value != 0.0 ? byte | bit : byte & ~bit);
}

std::uint64_t product_column(const Problem& p, std::uint64_t half, std::uint64_t j) {
  if (!p.gated) return j;
  return p.gated->b == GatedB::interleaved ? 2 * j + half : j + half * p.n;
}

Views::Views(const Problem& p) {
  for (const OperandRow& row : operand_rows()) (*this)[row.id] = view(row.shape(p));
}

std::vector<std::byte> encode_offsets(std::span<const std::int64_t> offsets, OffsetType type) {
  const std::size_t size = size_in_bytes(type);
  std::vector<std::byte> bytes(offsets.size() * size);
  // Little-endian: the low half of a number comes first.
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::memcpy(bytes.data() + i * size, &offsets[i], size);
  }
  return bytes;
}

std::vector<std::int64_t> decode_offsets(const void* data, std::size_t count, OffsetType type) {
  if (count == 0) return {};  // no memory to copy from or to
  std::vector<std::int64_t> offsets(count);
  if (type == OffsetType::int64) {
    std::memcpy(offsets.data(), data, count * sizeof(std::int64_t));
    return offsets;
  }
  std::vector<std::int32_t> narrow(count);
  std::memcpy(narrow.data(), data, count * sizeof(std::int32_t));
  std::ranges::copy(narrow, offsets.begin());
  return offsets;
}

HostOperands GroupProduct::of(const HostOperands& operands) const {
  return advanced(operands, begins);
}
PerOperand<void*> GroupProduct::of(const PerOperand<void*>& results) const {
  return advanced(results, begins);
}

namespace {

std::vector<GroupProduct> outer_products(const Problem& problem) {
  std::vector<GroupProduct> products;
  for (std::uint64_t o = 0; o < problem.outer_batch; ++o) {
    GroupProduct product{.problem = inner_part(problem), .number = o * result_count(problem)};
    for (const OperandRow& row : operand_rows()) {
      if (!row.exists(problem)) continue;
      const OperandShape shape = row.shape(problem);
      product.begins[row.id] = o * shape.outer_stride * shape.element();
    }
    products.push_back(product);
  }
  return products;
}

}  // namespace

std::vector<GroupProduct> products_of(const Problem& problem, const void* offset_values) {
  if (!problem.grouping) return outer_products(problem);
  const Grouping& grouping = *problem.grouping;
  const bool along_m = grouping.along == GroupAlong::m;
  const std::vector<std::int64_t> offsets =
      decode_offsets(offset_values, std::size_t{grouping.groups} + 1, grouping.offsets);
  const auto offset = [&](std::size_t index) {
    const auto capacity = static_cast<std::int64_t>(along_m ? problem.m : problem.k);
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(offsets[index], 0, capacity));
  };
  std::vector<GroupProduct> products;
  for (std::uint64_t g = 0; g < grouping.groups; ++g) {
    const std::uint64_t begin = offset(g), end = std::max(offset(g + 1), begin);
    const std::uint64_t first_row = along_m ? begin : 0, first_k = along_m ? 0 : begin;
    GroupProduct product{.problem = problem, .number = g};
    for (const OperandRow& row : operand_rows()) {
      const OperandShape shape = row.shape(problem);
      const bool is_b = row.matrix == &Problem::b;
      // A vector along N has one row.
      const std::uint64_t i = is_b ? first_k : shape.rows == 1 ? 0 : first_row;
      const std::uint64_t j = row.matrix == &Problem::a ? first_k : 0;
      const std::uint64_t matrix = shape.count > 1 ? g : 0;
      product.begins[row.id] = shape.index(matrix, i, j) * shape.element();
    }
    Problem& p = product.problem;
    p.grouping.reset();
    (along_m ? p.m : p.k) = end - begin;
    for (const OperandRow& row : operand_rows()) {
      // Halves of B that are apart are described by one matrix.
      if (row.matrix == nullptr || row.id == OperandId::b_right) continue;
      p.*row.matrix = one_of(problem.*row.matrix, row.shape(problem));
    }
    products.push_back(product);
  }
  return products;
}

}  // namespace vkgemm::oracle
