// row_kernel.cpp: row reductions, from what was decided to dispatches.
#include <algorithm>
#include <bit>

#include "lowering.hpp"
#include "row_reduction.hpp"

namespace vkgemm {
namespace {

// Of tiles, which the kernels that know none share code with.
constexpr std::size_t unused_divisors[] = {SPEC_TILE_K, SPEC_SWIZZLE};

std::uint32_t op_constant(RowOp op) {
  switch (op) {
    case RowOp::rms_norm:
      return ROW_OP_RMS_NORM;
    case RowOp::layer_norm:
      return ROW_OP_LAYER_NORM;
    case RowOp::softmax:
      return ROW_OP_SOFTMAX;
    case RowOp::l2_normalize:
      return ROW_OP_L2_NORMALIZE;
    case RowOp::logsumexp:
      return ROW_OP_LOGSUMEXP;
    case RowOp::sum:
      return ROW_OP_SUM;
    case RowOp::max:
      return ROW_OP_MAX;
    case RowOp::mean:
      return ROW_OP_MEAN;
    case RowOp::variance:
      return ROW_OP_VARIANCE;
  }
  return ROW_OP_NONE;
}

std::string_view tile_module(const Config& config, DataType input) {
  constexpr std::string_view names[2][3] = {
      {"reduce_tiles_khr_f16", "reduce_tiles_khr_bf16", "reduce_tiles_khr_f32"},
      {"reduce_tiles_fma_f16", "reduce_tiles_fma_bf16", "reduce_tiles_fma_f32"},
  };
  return names[config.path == Path::khr ? 0 : 1][static_cast<std::size_t>(input)];
}

void set_rows(Step& step, const ResolvedProblem& problem) {
  const RowReduction& rows = *problem.rows;
  Constants constants(step.key);
  constants.set(SPEC_ROW_OP, op_constant(rows.op));
  constants.set(SPEC_ROW_GAMMA, rows.gamma);
  constants.set(SPEC_ROW_SHIFT, rows.beta);
  constants.set(SPEC_ROW_VECTOR_TYPE, type_constant(rows.vector_type));
  constants.set(SPEC_ROW_VALUE_TYPE, type_constant(rows.value_type));
  step.params.eps = problem.eps;
}

// The numbers of rows from the states of tiles.
Step merge_step(const Config& config, const ResolvedProblem& problem, const Limits& limits) {
  Step step;
  step.key.module = "merge_states";
  Constants constants(step.key);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{MERGE_LOCAL_SIZE});
  constants.set(SPEC_TILE_M, config.tile_m);
  constants.set(SPEC_TILE_N, config.tile_n);
  for (const std::size_t id : unused_divisors) constants.set_size(id, 1);
  set_rows(step, problem);
  step.params.m = narrow(problem.m);
  step.params.n = narrow(problem.n);
  step.dispatches = cut_grid(divided_up(problem.m, MERGE_LOCAL_SIZE), problem.batch, limits);
  return step;
}

// A workgroup reduces tiles that it keeps.
Kernel lower_tiles(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps) {
  Kernel out = lower_product(config, problem, caps);
  Step& product = out.product;
  product.key.module = tile_module(config, problem.a.type);
  set_rows(product, problem);
  product.key.constants[SPEC_ROW_SHARED] = config.rows != RowStrategy::resident;
  const bool scalar = is_scalar(problem.rows->op);
  const auto stage = [](Step step, std::uint32_t value) {
    step.params.row_stage = value;
    return step;
  };
  switch (config.rows) {
    case RowStrategy::panel:
      if (scalar) {  // nobody needs to wait
        out.after.push_back(merge_step(config, problem, caps.limits));
        product.params.row_stage = ROW_STAGE_STATISTICS;
        break;
      }
      // For what is given up, whose states are all there: the same pipeline, so the same bits.
      out.after.push_back(stage(product, ROW_STAGE_APPLY | ROW_STAGE_GUARDED));
      product.params.row_stage = ROW_STAGE_PANEL;
      break;
    case RowStrategy::recompute:
      out.after.push_back(stage(product, ROW_STAGE_APPLY));
      product.params.row_stage = ROW_STAGE_STATISTICS;
      break;
    default:
      product.params.row_stage = ROW_STAGE_RESIDENT;
      break;
  }
  return out;
}

// The second pass over one part's values. `seen`: the product that has left them.
Step reduce_step(const ResolvedProblem& problem, const ResolvedProblem& seen,
                 const ResolvedProblem& last, const Limits& limits) {
  constexpr std::uint64_t lane_columns = std::uint64_t{4} * ROW_LANE_QUADS;
  const std::uint64_t lanes = std::clamp<std::uint64_t>(
      std::bit_ceil(divided_up(problem.n, lane_columns)), 1, std::uint64_t{ROW_LOCAL_SIZE});
  const std::uint64_t rows = ROW_LOCAL_SIZE / lanes;
  const std::uint64_t columns = lanes * lane_columns;
  Step step{.values = ValueAccess::reads};
  step.key.module = "reduce_rows";
  Constants constants(step.key);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{ROW_LOCAL_SIZE});
  constants.set(SPEC_TILE_M, rows);
  constants.set(SPEC_TILE_N, columns);
  for (const std::size_t id : unused_divisors) constants.set_size(id, 1);
  constants.set(SPEC_EDGES, problem.n % columns != 0);
  // Rows in the workspace are padded; in D they end where they end.
  constants.set(SPEC_A_VECTOR, !values_stand_in_d(problem) || allows_epilogue_vectors(problem.d));
  // Values in D that stay what they are need no second pass.
  const bool stores =
      problem.has_d() && !(is_scalar(problem.rows->op) && values_stand_in_d(problem));
  constants.set(SPEC_D_TYPE, stores ? type_constant(problem.d.type) : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_D_VECTOR, stores && allows_epilogue_vectors(problem.d));
  constants.set(SPEC_D_COL_MAJOR, stores && problem.d.layout == Layout::col_major);
  set_rows(step, problem);
  gpu::GemmParams& params = step.params;
  params.m = narrow(seen.m);
  params.n = narrow(problem.n);
  params.lda = narrow(seen.d.ld);
  params.a_batch = seen.d.batch_stride * sizeof(float);
  params.ldd = narrow(problem.d.ld);
  params.d_batch = problem.d.batch_stride * size_in_bytes(problem.d.type);
  step.dispatches = cut_grid(divided_up(seen.m, rows), seen.batch, limits);
  step.last_dispatches = cut_grid(divided_up(last.m, rows), last.batch, limits);
  return step;
}

Kernel lower_two_pass(const Config& config, const ResolvedProblem& problem,
                      const DeviceCaps& caps) {
  const Parts parts = row_parts(config, problem);
  const ResolvedProblem seen = value_problem(config, problem);
  const ResolvedProblem last = value_problem(config, problem, true);
  Kernel out = lower_product(config, seen, caps);
  out.workspace = workspace_layout(config, problem);
  out.values_in_d = values_stand_in_d(problem);
  if (!parts.is_whole()) {
    out.parts = parts;
    out.product.last_dispatches = cut_grid(tile_count(config, last), last.batch, caps.limits);
    // Of the last part, too.
    if (last.m % config.tile_m != 0) out.product.key.constants[SPEC_EDGES] = 1;
  }
  const bool summed = config.slices > 1 && config.tier == SplitTier::two_dispatches;
  (summed ? out.after.back() : out.product).values = ValueAccess::writes;
  // Whoever stands in for a barrier that was given up.
  if (config.tier == SplitTier::device_barrier) out.after.back().values = ValueAccess::writes;
  out.after.push_back(reduce_step(problem, seen, last, caps.limits));
  return out;
}

}  // namespace

Kernel lower_rows(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps) {
  return config.rows == RowStrategy::two_pass ? lower_two_pass(config, problem, caps)
                                              : lower_tiles(config, problem, caps);
}

}  // namespace vkgemm
