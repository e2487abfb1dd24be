#include "kernels/quantise_rows.hpp"

#include <algorithm>
#include <bit>

#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/constants.hpp"
#include "kernels/tiling.hpp"
#include "lib/footprint.h"
#include "problem/data_type.hpp"

namespace vkgemm {
namespace {

// Bytes of codes that are stored at a time.
constexpr std::uint64_t store_bytes = QUANTISE_PIECE;

// An invocation's pieces are of whole loads.
static_assert(std::ranges::all_of(data_types, [](const DataTypeRow& row) {
  return size_in_bytes(row.type) == 1 || QUANTISE_PIECE * size_in_bytes(row.type) % load_bytes == 0;
}));

std::uint32_t local_size(const Limits& limits) {
  return std::min(std::uint32_t{QUANTISE_LOCAL_SIZE}, std::bit_floor(limits.max_invocations));
}

// A line is what shares a scale: a row, or a group of it.
std::uint64_t line_length(const ResolvedRowQuantisation& q) {
  return q.group_k == 0 ? q.columns : std::min<std::uint64_t>(q.columns, q.group_k);
}

// Invocations of a line: as many as it has pieces.
std::uint32_t lanes(const ResolvedRowQuantisation& q, const Limits& limits) {
  const std::uint64_t pieces =
      divided_up(std::max<std::uint64_t>(line_length(q), 1), QUANTISE_PIECE);
  return narrow(std::min<std::uint64_t>(std::bit_ceil(pieces), local_size(limits)));
}

std::uint64_t tiles(const ResolvedRowQuantisation& q, const Limits& limits) {
  return divided_up(q.rows * q.groups, local_size(limits) / lanes(q, limits));
}

// Unlike allows_vectors() for rows of any length, whose ends are taken element by element.
bool is_aligned(const ResolvedMatrix& matrix, std::uint64_t bytes) {
  const std::uint64_t element = size_in_bytes(matrix.type);
  return matrix.alignment % bytes == 0 && matrix.ld * element % bytes == 0 &&
         matrix.batch_stride * element % bytes == 0;
}

}  // namespace

std::optional<std::string> why_not_quantised(const ResolvedRowQuantisation& q,
                                             const DeviceCaps& caps) {
  if (!caps.int8_arithmetic) {
    return concat("codes.type is s8: it needs ", byte_features);
  }
  const Limits& limits = caps.limits;
  const std::uint32_t shared = QUANTISE_ROWS_BYTES(local_size(limits));
  if (limits.max_invocations == 0 || limits.max_shared_memory_bytes < shared) {
    return concat("the kernel that quantises takes ", shared,
                  " bytes of shared memory, the device has ", limits.max_shared_memory_bytes);
  }
  if (dispatch_count(tiles(q, limits), q.batch, limits) <= most_dispatches) return std::nullopt;
  return concat("rows is ", q.rows, " and batch is ", q.batch, ": at most ", most_dispatches,
                " dispatches are recorded");
}

Step quantise_rows_step(const ResolvedRowQuantisation& q, const Limits& limits) {
  Step step;
  step.key.module = "quantise_rows";
  Constants constants(step.key.constants);
  constants.set(SPEC_LOCAL_SIZE, local_size(limits));
  constants.set(SPEC_TILE_M, local_size(limits) / lanes(q, limits));
  constants.set(SPEC_A_GROUP_K, q.group_k);
  constants.set(SPEC_SOURCE_TYPE, row_of(q.source.type).constant);
  // Element by element neighbours are of different invocations: better for rows of less than a
  // piece.
  constants.set(SPEC_A_VECTOR, q.columns >= QUANTISE_PIECE && is_aligned(q.source, load_bytes) &&
                                   is_aligned(q.codes, store_bytes));
  gpu::QuantiseRowsParams params{};
  params.source_batch = q.source.batch_stride * size_in_bytes(q.source.type);
  params.codes_batch = q.codes.batch_stride * size_in_bytes(q.codes.type);
  params.rows = narrow(q.rows);
  params.columns = narrow(q.columns);
  params.source_ld = narrow(q.source.ld);
  params.codes_ld = narrow(q.codes.ld);
  step.params = params;
  step.dispatches = cut_grid(tiles(q, limits), q.batch, limits);
  return step;
}

}  // namespace vkgemm
