#include "pack.hpp"

#include <algorithm>

namespace vkgemm {
namespace {

// Elements: a cache line of 16-bit ones.
constexpr std::uint64_t ld_multiple = 64;

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Of an operand that is `width` wide along M or N.
void pack(ResolvedMatrix& matrix, bool is_a, std::uint64_t width, std::uint64_t depth) {
  matrix.layout = is_a ? Layout::col_major : Layout::row_major;
  matrix.ld = rounded_up(std::max<std::uint64_t>(width, 1), ld_multiple);
  (is_a ? matrix.rows : matrix.cols) = matrix.ld;
  (is_a ? matrix.cols : matrix.rows) = depth;
  if (matrix.batch_stride != 0) matrix.batch_stride = matrix.ld * depth;
  matrix.alignment = 256;
  matrix.bytes = 0;  // no span of the caller's
}

}  // namespace

ResolvedProblem packed(const ResolvedProblem& problem, const Config& config) {
  ResolvedProblem out = problem;
  // Where both are copied, the depth is padded with zeros, too.
  if (config.pack_a && config.pack_b) out.k = rounded_up(problem.k, std::max(config.tile_k, 1u));
  if (config.pack_a) pack(out.a, true, problem.m, out.k);
  if (config.pack_b) pack(out.b, false, problem.n, out.k);
  return out;
}

std::uint64_t packed_bytes(const ResolvedMatrix& copy, std::uint64_t batch) {
  const std::uint64_t depth = copy.layout == Layout::col_major ? copy.cols : copy.rows;
  const std::uint64_t bytes = copy.ld * depth * size_in_bytes(copy.type);
  return rounded_up(copy.batch_stride != 0 ? bytes * batch : bytes, 256);
}

}  // namespace vkgemm
