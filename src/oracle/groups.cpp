#include "oracle/groups.hpp"

#include <algorithm>
#include <cstring>

namespace vkgemm::oracle {
namespace {

// A matrix of a part of the rows or columns lies as the whole one does.
Matrix one_of(const Matrix& matrix, const View& whole) {
  Matrix part = matrix;
  part.ld = whole.ld;
  part.batch_stride.reset();
  return part;
}

}  // namespace

View view(const Matrix& matrix, std::uint64_t rows, std::uint64_t cols, std::uint64_t batch) {
  View v{};
  v.type = matrix.type;
  v.row_major = matrix.layout == Layout::row_major;
  const std::uint64_t outer = v.row_major ? rows : cols;
  const std::uint64_t inner = v.row_major ? cols : rows;
  v.ld = matrix.ld.value_or(inner);
  v.batch_stride = matrix.batch_stride.value_or(outer * v.ld);
  if (rows != 0 && cols != 0 && batch != 0) {
    const std::uint64_t elements = (batch - 1) * v.batch_stride + (outer - 1) * v.ld + inner;
    v.bytes = elements * size_in_bytes(matrix.type);
  }
  return v;
}

std::uint64_t product_columns(const Problem& p) { return p.gated ? 2 * p.n : p.n; }

std::uint64_t columns_of_b(const Problem& p) {
  return p.gated && p.gated->b == GatedB::separate ? p.n : product_columns(p);
}

std::uint64_t product_column(const Problem& p, std::uint64_t half, std::uint64_t j) {
  if (!p.gated) return j;
  return p.gated->b == GatedB::interleaved ? 2 * j + half : j + half * p.n;
}

MatrixCounts::MatrixCounts(const Problem& p) : a(p.batch), b(p.batch), d(p.batch) {
  if (!p.grouping) return;
  if (p.grouping->b == GroupedB::per_group) b = p.grouping->groups;
  if (p.grouping->along == GroupAlong::k) d = p.grouping->groups;
}

Views::Views(const Problem& p) {
  const MatrixCounts counts(p);
  a = view(p.a, p.m, p.k, counts.a);
  b = view(p.b, p.k, columns_of_b(p), counts.b);
  c = view(p.c, p.m, p.n, counts.d);
  d = view(p.d, p.m, p.n, counts.d);
  aux = view(p.aux, p.m, product_columns(p), counts.d);
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

std::vector<GroupProduct> products_of(const Problem& problem, const HostOperands& operands) {
  const Grouping& grouping = *problem.grouping;
  const Epilogue& epilogue = problem.epilogue;
  const bool along_m = grouping.along == GroupAlong::m;
  const Views views(problem);
  const std::vector<std::int64_t> offsets =
      decode_offsets(operands.offsets, std::size_t{grouping.groups} + 1, grouping.offsets);
  const auto offset = [&](std::size_t index) {
    const auto capacity = static_cast<std::int64_t>(along_m ? problem.m : problem.k);
    return static_cast<std::uint64_t>(std::clamp<std::int64_t>(offsets[index], 0, capacity));
  };
  std::vector<GroupProduct> products;
  for (std::uint64_t g = 0; g < grouping.groups; ++g) {
    const std::uint64_t begin = offset(g), end = std::max(offset(g + 1), begin);
    const std::uint64_t row = along_m ? begin : 0, k = along_m ? 0 : begin;
    const std::uint64_t own_b = grouping.b == GroupedB::per_group ? g : 0;
    const std::uint64_t own_d = along_m ? 0 : g;
    const auto bytes_to = [](const View& v, std::uint64_t matrix, std::uint64_t i,
                             std::uint64_t j) {
      return v.index(matrix, i, j) * size_in_bytes(v.type);
    };
    GroupProduct product{.problem = problem, .number = g};
    Problem& p = product.problem;
    p.grouping.reset();
    (along_m ? p.m : p.k) = end - begin;
    p.a = one_of(p.a, views.a);
    p.b = one_of(p.b, views.b);
    p.c = one_of(p.c, views.c);
    p.d = one_of(p.d, views.d);
    p.aux = one_of(p.aux, views.aux);
    const std::uint64_t bias =
        g * epilogue.bias_batch_stride + (epilogue.bias == Bias::along_m ? row : 0);
    const auto own = [&](Scales scales, std::uint64_t length) {
      return scales == Scales::per_matrix ? g * length : 0;
    };
    const std::uint64_t row_scales = along_m ? row : own(epilogue.row_scales, problem.m);
    const std::uint64_t column_scales = own(epilogue.column_scales, product_columns(problem));
    product.operands = {
        .a = advanced(operands.a, bytes_to(views.a, 0, row, k)),
        .b = advanced(operands.b, bytes_to(views.b, own_b, k, 0)),
        .c = advanced(operands.c, bytes_to(views.c, own_d, row, 0)),
        .bias = advanced(operands.bias, bias * size_in_bytes(epilogue.bias_type)),
        .b_right = advanced(operands.b_right, bytes_to(views.b, own_b, k, 0)),
        .row_scales = advanced(operands.row_scales, row_scales * sizeof(float)),
        .column_scales = advanced(operands.column_scales, column_scales * sizeof(float)),
    };
    product.d = bytes_to(views.d, own_d, row, 0);
    product.aux = bytes_to(views.aux, own_d, row, 0);
    products.push_back(product);
  }
  return products;
}

}  // namespace vkgemm::oracle
