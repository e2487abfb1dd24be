#include "problem/resolved_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

#include "problem/data_type.hpp"
#include "problem/inputs/codes.hpp"

namespace vkgemm {
namespace {

std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  if (a > std::numeric_limits<std::uint64_t>::max() - b) return std::nullopt;
  return a + b;
}

MaybeError check_batch_stride(const OperandInfo& info, const Matrix& matrix,
                              const ResolvedMatrix& out, std::uint64_t outer, std::uint64_t batch) {
  if (info.access == Access::read || batch <= 1) return std::nullopt;
  if (matrix.batch_stride == std::uint64_t{0}) {
    return invalid_argument(concat(info.name, ".batch_stride is 0: the ", batch,
                                   " matrices of the ", info.collection,
                                   " would overwrite each other"));
  }
  if (outer == 0 || out.contiguous() == 0) return std::nullopt;
  // outer and ld are below 2^31: no overflow here.
  const std::uint64_t extent = (outer - 1) * out.ld + out.contiguous();
  if (out.batch_stride >= extent) return std::nullopt;
  // The batch may also lie side by side within the rows, as heads of an attention layer do.
  const auto last = checked_multiply(batch - 1, out.batch_stride);
  const auto side_by_side = last ? checked_add(*last, out.contiguous()) : std::nullopt;
  if (out.batch_stride >= out.contiguous() && side_by_side && *side_by_side <= out.ld) {
    return std::nullopt;
  }
  return invalid_argument(concat(info.name, ".batch_stride is ", out.batch_stride,
                                 ": the matrices of the ", info.collection,
                                 " would overlap, at least ", extent, " is needed"));
}

}  // namespace

std::uint64_t padded_depth(const std::optional<Quantisation>& q, std::uint64_t k) noexcept {
  const std::uint64_t block = q ? code_depth(*q) : 0, depth = rounded_up(k, packed_depth);
  return block == 0 ? depth : rounded_up(depth, block);
}

std::uint64_t ResolvedMatrix::half_elements() const noexcept {
  if (!quantisation) return ld * (lines() + (line_scales() ? 1 : 0));
  return packed_bytes(*quantisation, ld, lines()) / size_in_bytes(type);
}

std::uint32_t ResolvedMatrix::element_bits() const noexcept {
  return quantisation ? bits_of(quantisation->type) : 8 * element_bytes();
}

bool ResolvedMatrix::allows_vectors(std::uint32_t width_bytes) const noexcept {
  assert(std::has_single_bit(width_bytes));
  // Products may wrap: their lowest bits stay right.
  const std::uint64_t element = element_bytes();
  const std::uint64_t all = ld * element | batch_stride * element | contiguous() * element;
  return (all & (width_bytes - 1)) == 0 && alignment % std::min(width_bytes, load_bytes) == 0;
}

std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}

std::optional<std::uint64_t> extent_in_bytes(std::uint64_t count, std::uint64_t stride,
                                             std::uint64_t length, DataType type) {
  if (count == 0 || length == 0) return 0;
  const auto last = checked_multiply(count - 1, stride);
  const auto elements = last ? checked_add(*last, length) : std::nullopt;
  return elements ? checked_multiply(*elements, size_in_bytes(type)) : std::nullopt;
}

MaybeError check_size(std::string_view field, std::uint64_t value) {
  if (value <= largest_size) return std::nullopt;
  return invalid_argument(
      concat(field, " is ", value, ": at most ", largest_size, " is supported"));
}

Result<ResolvedMatrix> resolve_matrix(const OperandInfo& info, const Matrix& matrix,
                                      std::uint64_t rows, std::uint64_t cols, std::uint64_t batch,
                                      bool touched) {
  const bool row_major = matrix.layout == Layout::row_major;
  const std::uint32_t element = size_in_bytes(matrix.type);
  ResolvedMatrix out{.type = matrix.type,
                     .layout = matrix.layout,
                     .rows = rows,
                     .cols = cols,
                     .alignment = matrix.alignment};
  const std::uint64_t length = out.contiguous();
  const std::uint64_t outer = row_major ? rows : cols;

  if (matrix.ld) {
    const auto what = concat(row_major ? "a row" : "a column", " of ",
                             row_major ? info.cols_name : info.rows_name, " = ", length);
    if (*matrix.ld == 0) {
      return invalid_argument(
          concat(info.name, ".ld is 0: ", what, " needs at least ", length == 0 ? 1 : length));
    }
    if (*matrix.ld < length) {
      return invalid_argument(
          concat(info.name, ".ld is ", *matrix.ld, ": ", what, " needs at least ", length));
    }
    if (auto error = check_size(concat(info.name, ".ld"), *matrix.ld)) return *error;
  }
  out.ld = matrix.ld.value_or(length);

  const std::uint32_t alignment = matrix.alignment;
  if (alignment < element || (alignment & (alignment - 1)) != 0) {
    return invalid_argument(concat(info.name, ".alignment is ", alignment,
                                   ": a power of two is needed, at least ", element,
                                   ", the size of ", to_string(matrix.type)));
  }

  // A stride that is never taken is 0, so that it cannot stand in the way of vectors.
  out.batch_stride = batch > 1 ? matrix.batch_stride.value_or(outer * out.ld) : 0;
  if (auto error = check_batch_stride(info, matrix, out, outer, batch)) return *error;

  if (!touched || outer == 0 || length == 0 || batch == 0) return out;
  const std::uint64_t extent = (outer - 1) * out.ld + length;
  const auto bytes = extent_in_bytes(batch, out.batch_stride, extent, matrix.type);
  if (!bytes) {
    return invalid_argument(concat(info.name, ".batch_stride is ", out.batch_stride,
                                   ": a batch of ", batch, " does not fit 64 bits of bytes"));
  }
  out.bytes = *bytes;
  return out;
}

}  // namespace vkgemm
