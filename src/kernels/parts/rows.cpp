#include "kernels/parts/rows.hpp"

#include <algorithm>

#include "kernels/tiling.hpp"
#include "lib/footprint.h"
#include "problem/epilogue_steps.hpp"
#include "problem/row_op.hpp"

namespace vkgemm {
namespace {

// Values of a part, which the second pass reads while they are in the L2 cache. Derived: those of
// current GPUs hold 6 to 126 MB; smaller parts are less work at a time for all compute units.
constexpr std::uint64_t most_part_bytes = std::uint64_t{64} << 20;

constexpr std::uint32_t row_alignment = 256;

}  // namespace

std::uint64_t tile_columns(const Config& config, const ResolvedProblem& problem) {
  return divided_up(problem.n, config.tile_n);
}

bool values_stand_in_d(const ResolvedProblem& problem) {
  return problem.has_d() && problem.d.type == DataType::f32 &&
         problem.d.layout == Layout::row_major;
}

RowChunks row_chunks(const Config& config, const ResolvedProblem& problem) {
  RowChunks out{.rows = problem.m,
                .batches = problem.batch,
                .all_rows = problem.m,
                .all_batches = problem.batch};
  // Slices of K are for products that are small. The sums of columns are those of all rows, and
  // functions get the place of an element among all.
  if (values_stand_in_d(problem) || config.slices > 1 || sums_columns(problem.epilogue) ||
      calls_function(problem.epilogue)) {
    return out;
  }
  const std::uint64_t row_bytes = rounded_up(problem.n, 4) * sizeof(float);
  const std::uint64_t whole = problem.max_workspace_bytes / workspace_unit * workspace_unit;
  const std::uint64_t fitting =
      std::max<std::uint64_t>(std::min(whole, most_part_bytes) / row_bytes, 1);
  out.batches = std::clamp<std::uint64_t>(fitting / std::max<std::uint64_t>(problem.m, 1), 1,
                                          std::max<std::uint64_t>(problem.batch, 1));
  if (fitting < problem.m) {
    out.rows = std::max<std::uint64_t>(fitting / config.tile_m, 1) * config.tile_m;
    out.rows = std::min(out.rows, problem.m);
  }
  return out;
}

ResolvedMatrix value_matrix(const ResolvedProblem& problem, const RowChunks& chunks) {
  const std::uint64_t ld = rounded_up(problem.n, 4);
  return {.type = DataType::f32,
          .layout = Layout::row_major,
          .rows = chunks.rows,
          .cols = problem.n,
          .ld = ld,
          .batch_stride = chunks.batches > 1 ? chunks.rows * ld : 0,
          .alignment = row_alignment};
}

std::uint64_t row_control_words(const Config& config, const ResolvedProblem& problem) {
  // One number a row needs no waiting.
  if (!problem.rows || config.rows != RowStrategy::panel || is_scalar(problem.rows->op)) return 0;
  return CONTROL_WORDS + tile_count(config, problem) * problem.batch;
}

std::uint64_t row_state_bytes(const Config& config, const ResolvedProblem& problem) {
  if (config.rows != RowStrategy::panel && config.rows != RowStrategy::recompute) return 0;
  if (!problem.rows) return 0;  // is not legal
  const std::uint64_t rows = rounded_up(problem.m, config.tile_m);
  return rows * problem.batch * tile_columns(config, problem) *
         ROW_STATE_BYTES(row_of(problem.rows->op).moments);
}

std::uint64_t row_value_bytes(const Config& config, const ResolvedProblem& problem) {
  if (config.rows != RowStrategy::two_pass || !problem.rows || values_stand_in_d(problem)) return 0;
  const RowChunks chunks = row_chunks(config, problem);
  return chunks.rows * chunks.batches * value_matrix(problem, chunks).ld * sizeof(float);
}

std::uint64_t row_part_bytes(const Config& config, const ResolvedProblem& problem) {
  if (!problem.rows || config.tile_n < least_row_tile_n) return 0;  // is not legal
  return std::uint64_t{
      ROW_PART_BYTES(config.tile_m, config.tile_n, row_of(problem.rows->op).moments)};
}

}  // namespace vkgemm
