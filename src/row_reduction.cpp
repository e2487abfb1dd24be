#include "row_reduction.hpp"

#include <algorithm>

#include "lowering.hpp"

namespace vkgemm {
namespace {

// Values of a part, which the second pass reads while they are in the L2 cache. Derived: those of
// current GPUs hold 6 to 126 MB; smaller parts are less work at a time for all compute units.
constexpr std::uint64_t most_part_bytes = std::uint64_t{64} << 20;

constexpr std::uint32_t row_alignment = 256;

ResolvedMatrix value_matrix(const ResolvedProblem& problem, const Parts& parts) {
  const std::uint64_t ld = divided_up(problem.n, 4) * 4;
  return {.type = DataType::f32,
          .layout = Layout::row_major,
          .rows = parts.rows,
          .cols = problem.n,
          .ld = ld,
          .batch_stride = parts.batches > 1 ? parts.rows * ld : 0,
          .alignment = row_alignment};
}

std::uint64_t row_pitch(const ResolvedMatrix& matrix) {
  return (matrix.layout == Layout::row_major ? matrix.ld : 1) * size_in_bytes(matrix.type);
}

}  // namespace

std::uint64_t Parts::count() const noexcept {
  return divided_up(all_rows, rows) * divided_up(all_batches, batches);
}

std::uint64_t tile_columns(const Config& config, const ResolvedProblem& problem) {
  return divided_up(problem.n, config.tile_n);
}

bool values_stand_in_d(const ResolvedProblem& problem) {
  return problem.has_d() && problem.d.type == DataType::f32 &&
         problem.d.layout == Layout::row_major;
}

Parts row_parts(const Config& config, const ResolvedProblem& problem) {
  Parts out{.rows = problem.m,
            .batches = problem.batch,
            .all_rows = problem.m,
            .all_batches = problem.batch};
  out.row_pitch.a = row_pitch(problem.a);
  if (problem.has_c()) out.row_pitch.c = row_pitch(problem.c);
  if (problem.has_d()) out.row_pitch.d = row_pitch(problem.d);
  if (problem.has_aux()) out.row_pitch.aux = row_pitch(problem.aux);
  if (problem.epilogue.bias == Bias::along_m) {
    out.row_pitch.bias = size_in_bytes(problem.epilogue.bias_type);
  }
  if (is_scalar(problem.rows->op)) {
    out.row_pitch.row_values = size_in_bytes(problem.rows->value_type);
  }
  // Slices of K are for products that are small.
  if (values_stand_in_d(problem) || config.slices > 1) return out;
  const std::uint64_t row_bytes = divided_up(problem.n, 4) * 4 * sizeof(float);
  const std::uint64_t fitting = std::max<std::uint64_t>(
      std::min(problem.max_workspace_bytes, most_part_bytes) / row_bytes, 1);
  out.batches = std::clamp<std::uint64_t>(fitting / std::max<std::uint64_t>(problem.m, 1), 1,
                                          std::max<std::uint64_t>(problem.batch, 1));
  if (fitting < problem.m) {
    out.rows = std::max<std::uint64_t>(fitting / config.tile_m, 1) * config.tile_m;
    out.rows = std::min(out.rows, problem.m);
  }
  return out;
}

ResolvedProblem value_problem(const Config& config, const ResolvedProblem& problem, bool last) {
  const Parts parts = row_parts(config, problem);
  ResolvedProblem out = problem;
  out.rows.reset();
  out.m = parts.rows;
  out.batch = parts.batches;
  if (!values_stand_in_d(problem)) out.d = value_matrix(problem, parts);
  if (last && parts.all_rows % parts.rows != 0) out.m = parts.all_rows % parts.rows;
  if (last && parts.all_batches % parts.batches != 0) out.batch = parts.all_batches % parts.batches;
  return out;
}

std::uint64_t row_state_bytes(const Config& config, const ResolvedProblem& problem) {
  if (config.rows != RowStrategy::panel && config.rows != RowStrategy::recompute) return 0;
  const std::uint64_t rows = divided_up(problem.m, config.tile_m) * config.tile_m;
  return rows * problem.batch * tile_columns(config, problem) * 2 * sizeof(float);
}

std::uint64_t row_value_bytes(const Config& config, const ResolvedProblem& problem) {
  if (config.rows != RowStrategy::two_pass || !problem.rows || values_stand_in_d(problem)) return 0;
  const Parts parts = row_parts(config, problem);
  return parts.rows * parts.batches * value_matrix(problem, parts).ld * sizeof(float);
}

std::uint64_t row_part_bytes(const Config& config) {
  const std::uint32_t quads = config.tile_n / 4;
  const std::uint32_t part =
      std::clamp<std::uint32_t>(ROW_PART(config.tile_m, config.tile_n), 1, std::max(quads, 1u));
  return std::uint64_t{config.tile_m} * (quads / part) * 2 * sizeof(float);
}

std::uint64_t row_scratch_bytes(const Config& config) {
  if (config.path != Path::fma) return 0;  // khr's slices have the same places
  const std::uint64_t rows = std::uint64_t{4} * (config.tile_m / config.fragment_m);
  return rows * (config.tile_n / 4 + 1) * 4 * sizeof(float);
}

}  // namespace vkgemm
