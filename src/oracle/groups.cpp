#include "oracle/groups.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "problem/convert.hpp"
#include "problem/operands.hpp"
#include "problem/resolve.hpp"
#include "problem/row_index.hpp"

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

namespace {

std::int64_t clamped(std::int64_t offset, std::int64_t capacity) {
  return std::clamp<std::int64_t>(offset, 0, capacity);
}

struct Range {
  std::uint64_t begin = 0, end = 0;
};

// The range of each group.
std::vector<Range> ranges_of(const Problem& problem, const HostOperands& operands) {
  const Grouping& grouping = *problem.grouping;
  const std::size_t groups = grouping.groups;
  const auto capacity =
      static_cast<std::int64_t>(grouping.along == GroupAlong::m ? problem.m : problem.k);
  const bool has_offsets = grouping.bounds != GroupBounds::sizes;
  const bool has_sizes = grouping.bounds != GroupBounds::offsets;
  const auto starts =
      decode_offsets(operands[OperandId::offsets], has_offsets ? groups + (has_sizes ? 0 : 1) : 0,
                     grouping.offsets);
  const auto sizes =
      decode_offsets(operands[OperandId::group_sizes], has_sizes ? groups : 0, grouping.offsets);
  std::vector<Range> out;
  std::int64_t next = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    // A start before 0 moves its end, too.
    const std::int64_t start =
        std::clamp<std::int64_t>(has_offsets ? starts[g] : next, -1, capacity);
    const std::int64_t end = has_sizes ? start + clamped(sizes[g], capacity) : starts[g + 1];
    next = end;
    const auto begin = static_cast<std::uint64_t>(clamped(start, capacity));
    out.push_back({begin, std::max(static_cast<std::uint64_t>(clamped(end, capacity)), begin)});
  }
  return out;
}

// The first elements of the operands of a part of a group.
struct Place {
  std::uint64_t row = 0;    // of the product
  std::uint64_t k = 0;      // of A and B
  std::uint64_t a_row = 0;  // of A and of its rows' scales
  std::uint64_t d_row = 0;
  std::uint64_t matrix = 0;  // of B; or the group
};

GroupProduct part_of(const Problem& problem, const Range& range, const Place& at,
                     std::uint64_t number) {
  const bool along_m = problem.grouping->along == GroupAlong::m;
  GroupProduct product{.problem = problem, .number = number};
  for (const OperandRow& row : operand_rows()) {
    const OperandShape shape = row.shape(problem);
    const bool is_b = row.matrix == &Problem::b;
    const bool is_a = row.matrix == &Problem::a;
    const std::uint64_t own_row = is_a || row.id == OperandId::row_scales ? at.a_row
                                  : row.id == OperandId::d                ? at.d_row
                                                                          : at.row;
    // A vector along N has one row.
    const std::uint64_t i = is_b ? at.k : shape.rows == 1 ? 0 : own_row;
    const std::uint64_t j = is_a ? at.k : 0;
    const std::uint64_t matrix = shape.count > 1 ? at.matrix : 0;
    product.begins[row.id] = shape.index(matrix, i, j) * shape.element();
  }
  Problem& p = product.problem;
  p.grouping.reset();
  (along_m ? p.m : p.k) = range.end - range.begin;
  for (const OperandRow& row : operand_rows()) {
    // Halves of B that are apart are described by one matrix.
    if (row.matrix == nullptr || row.id == OperandId::b_right) continue;
    p.*row.matrix = one_of(problem.*row.matrix, row.shape(problem));
  }
  return product;
}

std::uint32_t index_at(const void* data, std::uint64_t i) {
  std::uint32_t out = 0;
  std::memcpy(&out, static_cast<const std::byte*>(data) + i * sizeof out, sizeof out);
  return out;
}

// The products of a group's rows.
void add_rows(const Problem& problem, const HostOperands& operands, const Range& group,
              std::uint64_t matrix, std::uint64_t number, std::vector<GroupProduct>& out) {
  const Grouping& g = *problem.grouping;
  for (std::uint64_t row = group.begin; row < group.end; ++row) {
    const std::uint64_t index = index_at(operands[OperandId::row_index], row);
    Place at{.row = row, .a_row = row, .d_row = row, .matrix = matrix};
    if (g.a_rows != 0) at.a_row = std::min(index / g.a_terms, g.a_rows - 1);
    const bool has_d = g.d_rows == 0 || index / g.d_terms < g.d_rows;
    if (g.d_rows != 0) at.d_row = has_d ? index / g.d_terms : 0;
    GroupProduct product = part_of(problem, {row, row + 1}, at, number);
    product.has_d = has_d;
    if (adds_rows(problem.grouping) && has_d) {
      product.term = index;
      if (g.row_weights) {
        float weight = 0.0f;
        std::memcpy(&weight, static_cast<const float*>(operands[OperandId::row_weights]) + index,
                    sizeof weight);
        product.weight = static_cast<double>(weight);
      }
    }
    out.push_back(product);
  }
}

}  // namespace

std::vector<GroupProduct> products_of(const Problem& problem, const HostOperands& operands) {
  if (!problem.grouping) return outer_products(problem);
  const Grouping& grouping = *problem.grouping;
  std::vector<GroupProduct> products;
  std::uint64_t g = 0;
  for (const Range& range : ranges_of(problem, operands)) {
    std::uint64_t matrix = g;
    if (grouping.b_matrices != 0) {
      matrix = std::min(index_at(operands[OperandId::b_index], g), grouping.b_matrices - 1);
    }
    if (has_row_index(problem.grouping)) {
      add_rows(problem, operands, range, matrix, g, products);
    } else {
      const bool along_m = grouping.along == GroupAlong::m;
      const std::uint64_t row = along_m ? range.begin : 0;
      products.push_back(part_of(problem, range,
                                 {.row = row,
                                  .k = along_m ? 0 : range.begin,
                                  .a_row = row,
                                  .d_row = row,
                                  .matrix = matrix},
                                 g));
    }
    ++g;
  }
  return products;
}

}  // namespace vkgemm::oracle
