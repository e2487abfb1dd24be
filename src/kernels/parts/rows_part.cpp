// rows_part.cpp: which strategy can reduce which rows, its dispatches, and what it costs.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/computation.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"
#include "lib/footprint.h"
#include "problem/data_type.hpp"
#include "problem/operands.hpp"
#include "problem/row_op.hpp"

namespace vkgemm {
namespace {

// Each workgroup takes one ticket.
constexpr std::uint64_t most_tickets = std::numeric_limits<std::int32_t>::max();

bool check_panel(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  const std::uint64_t tiles = tile_count(c, p);
  if (is_scalar(p.rows->op)) {  // nobody waits
    const std::uint64_t blocks = p.m / MERGE_LOCAL_SIZE + 1;
    if (dispatch_count(blocks, p.batch, s.caps.limits) <= most_dispatches) return true;
    return s.refuse("rows is panel: ", p.m, " rows in each of ", p.batch,
                    " matrices need too many dispatches to merge, at most ", most_dispatches,
                    " are recorded");
  }
  if (tiles > most_tickets / p.batch || row_control_words(c, p) > most_control_words) {
    return s.refuse("rows is panel: ", tiles, " tiles in each of ", p.batch,
                    " matrices are too many to count");
  }
  if (!s.caps.device_barrier.available) {
    return s.refuse("rows is panel: ", s.caps.device_barrier.reason);
  }
  // All workgroups of a panel, and of those that are begun beside it, must be resident at once.
  const std::uint64_t panels = std::min<std::uint64_t>(c.swizzle, tiles / tile_columns(c, p));
  const std::uint64_t waiting = tile_columns(c, p) * panels;
  if (const std::uint64_t units = s.caps.limits.compute_units; units != 0 && waiting > units) {
    return s.refuse("rows is panel: ", tile_columns(c, p),
                    " tiles in each row of tiles, in bands of ", panels, ", are ", waiting,
                    " workgroups that wait for each other, the device has ", units,
                    " compute units");
  }
  return true;
}

bool check_tiles(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  const std::string_view rows = to_string(c.rows);
  if (!descriptor(c).keeps_values) {
    return s.refuse("rows is ", rows, ": main loop ", to_string(c.main_loop()),
                    " hides where its values stand, two_pass it can");
  }
  if (c.slices > 1) {
    return s.refuse("rows is ", rows, ": slices is ", c.slices, ", only two_pass adds slices");
  }
  if (!std::has_single_bit(c.tile_n) || c.tile_n < least_row_tile_n || c.tile_n > most_row_tile_n) {
    return s.refuse("rows is ", rows, ": tile_n is ", c.tile_n, ", not a power of two from ",
                    least_row_tile_n, " to ", most_row_tile_n);
  }
  switch (c.rows) {
    case RowStrategy::resident:
      if (tile_columns(c, p) == 1) return true;
      return s.refuse("rows is resident: tile_n is ", c.tile_n, ", less than n, ", p.n);
    case RowStrategy::panel:
      return check_panel(s);
    case RowStrategy::recompute:
      if (!is_scalar(p.rows->op)) return true;
      return s.refuse("rows is recompute: ", to_string(p.rows->op),
                      " is one number a row, which needs no second product, panel gives it");
    case RowStrategy::none:
    case RowStrategy::two_pass:  // in no tiles
      break;
  }
  return true;
}

bool check_two_pass(const Case& s) {
  const Config& c = s.config;
  const ResolvedMatrix& a = s.problem->a;
  const bool copies = a.form == Form::copied_packed || s.problem->b.form == Form::copied_packed;
  if (copies && !descriptor(c).takes_fragments()) {
    return s.refuse("pack: copies are not built for rows in two passes on main loop ",
                    to_string(c.main_loop()));
  }
  const Limits& limits = s.caps.limits;
  constexpr std::uint32_t shared = REDUCE_ROWS_BYTES;
  if (limits.max_invocations < ROW_LOCAL_SIZE || limits.max_shared_memory_bytes < shared) {
    return s.refuse("rows is two_pass: the kernel that reduces takes ", ROW_LOCAL_SIZE,
                    " invocations and ", shared, " bytes of shared memory, the device has ",
                    limits.max_invocations, " and ", limits.max_shared_memory_bytes);
  }
  const RowChunks chunks = row_chunks(c, *s.problem);
  // The last part would be read beyond its end.
  if (a.is_packed() && !a.fragments && chunks.rows < s.problem->m) {
    return s.refuse("rows is two_pass: A is packed in rows, and too large to be reduced at once");
  }
  const std::uint64_t each =
      dispatch_count(chunks.rows, chunks.batches, limits) +
      dispatch_count(tile_count(c, *s.computation.product()), chunks.batches, limits);
  if (chunks.count() > most_dispatches / each) {
    return s.refuse("rows is two_pass: ", chunks.count(), " parts of ", chunks.rows,
                    " rows need too many dispatches, at most ", most_dispatches, " are recorded");
  }
  return true;
}

bool check(const Case& s) {
  const RowStrategy strategy = s.config.rows;
  const std::string_view name = to_string(strategy);
  if (!s.problem->rows) {
    return strategy == RowStrategy::none ||
           s.refuse("rows is ", name, ": the problem has no row_reduction");
  }
  if (strategy == RowStrategy::none) {
    return s.refuse("rows is none: row_reduction ", to_string(s.problem->rows->op),
                    " needs resident, panel, recompute or two_pass");
  }
  if (const auto why = why_not_built("reduce_rows")) return s.refuse(*why);
  return strategy == RowStrategy::two_pass ? check_two_pass(s) : check_tiles(s);
}

// Sizes of tiles that kernels without tiles may divide by.
constexpr std::size_t unused_divisors[] = {SPEC_TILE_K, SPEC_SWIZZLE};

void set_rows(Step& step, const ResolvedProblem& problem) {
  const RowReduction& rows = *problem.rows;
  Constants constants(step.key.constants);
  constants.set(SPEC_ROW_OP, row_of(rows.op).constant);
  for (const OperandRow& row : operand_rows()) {
    if (row.row_constant) constants.set(*row.row_constant, row.is_touched(problem));
  }
  constants.set(SPEC_ROW_VECTOR_TYPE, row_of(rows.vector_type).constant);
  constants.set(SPEC_ROW_VALUE_TYPE, row_of(rows.value_type).constant);
  constants.set(SPEC_ROW_EPS, std::bit_cast<std::uint32_t>(problem.eps));
}

// The numbers of rows from the states of tiles.
Step merge_step(const Config& config, const ResolvedProblem& problem, const Limits& limits) {
  Step step;
  step.key.module = "merge_states";
  Constants constants(step.key.constants);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{MERGE_LOCAL_SIZE});
  constants.set(SPEC_TILE_M, config.tile_m);
  constants.set(SPEC_TILE_N, config.tile_n);
  for (const std::size_t id : unused_divisors) constants.set(id, std::uint32_t{1});
  set_rows(step, problem);
  gpu::MergeParams params{};
  params.m = narrow(problem.m);
  params.n = narrow(problem.n);
  step.params = params;
  step.dispatches = cut_grid(divided_up(problem.m, MERGE_LOCAL_SIZE), problem.batch, limits);
  return step;
}

// A workgroup reduces tiles that it keeps.
void lower(Lowering& l) {
  const Config& config = l.config;
  const ResolvedProblem& problem = *l.problem;
  if (!problem.rows) return;
  DispatchPlan& out = l.plan;
  Step& product = out.product;
  product.key.module = module_name("reduce_tiles", config.main_loop(), *problem.input);
  set_rows(product, problem);
  gpu::ReduceTilesParams params{.gemm = product.gemm()};
  product.params = params;
  product.key.constants[SPEC_SPIN_LIMIT] = config.spin_limit;
  product.key.constants[SPEC_ROW_SHARED] = config.rows != RowStrategy::resident;
  const bool scalar = is_scalar(problem.rows->op);
  const auto stage = [](Step step, std::uint32_t value) {
    step.block<gpu::ReduceTilesParams>().gemm.slices = value;
    return step;
  };
  switch (config.rows) {
    case RowStrategy::panel:
      if (scalar) {  // nobody needs to wait
        out.after.push_back(merge_step(config, problem, l.target.caps.limits));
        product = stage(product, ROW_STAGE_STATISTICS);
        break;
      }
      out.before.push_back(reset_step(row_control_words(config, problem),
                                      row_state_bytes(config, problem), l.target.caps.limits));
      // Tiles that are given up, whose states are all there: the same pipeline, so the same bits.
      out.after.push_back(stage(product, ROW_STAGE_APPLY | ROW_STAGE_GUARDED));
      product = stage(product, ROW_STAGE_PANEL);
      break;
    case RowStrategy::recompute:
      out.after.push_back(stage(product, ROW_STAGE_APPLY));
      product = stage(product, ROW_STAGE_STATISTICS);
      break;
    case RowStrategy::resident:
      product = stage(product, ROW_STAGE_RESIDENT);
      break;
    case RowStrategy::none:
    case RowStrategy::two_pass:  // no rows for the product to reduce
      break;
  }
}

// The second pass over the values that a product of a chunk has left.
Step reduce_step(const ResolvedProblem& problem, const ResolvedProblem& product,
                 const Limits& limits) {
  constexpr std::uint64_t lane_columns = std::uint64_t{4} * ROW_LANE_X4;
  const std::uint64_t lanes = std::clamp<std::uint64_t>(
      std::bit_ceil(divided_up(problem.n, lane_columns)), 1, std::uint64_t{ROW_LOCAL_SIZE});
  const std::uint64_t rows = ROW_LOCAL_SIZE / lanes;
  const std::uint64_t columns = lanes * lane_columns;
  Step step;
  step.key.module = "reduce_rows";
  Constants constants(step.key.constants);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{ROW_LOCAL_SIZE});
  constants.set(SPEC_TILE_M, rows);
  constants.set(SPEC_TILE_N, columns);
  for (const std::size_t id : unused_divisors) constants.set(id, std::uint32_t{1});
  constants.set(SPEC_EDGES, problem.n % columns != 0);
  // Rows in the workspace are padded; in D they end where they end.
  constants.set(SPEC_A_VECTOR, !values_stand_in_d(problem) || allows_epilogue_vectors(problem.d));
  // Values in D that stay what they are need no second pass.
  const bool stores =
      problem.has_d() && !(is_scalar(problem.rows->op) && values_stand_in_d(problem));
  constants.set(SPEC_D_TYPE, stores ? row_of(problem.d.type).constant : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_D_VECTOR, stores && allows_epilogue_vectors(problem.d));
  constants.set(SPEC_ZERO_POINT, std::bit_cast<std::uint32_t>(problem.epilogue.zero_point));
  constants.set(SPEC_BYTE_TYPES, stores && is_byte(problem.d.type));
  constants.set(SPEC_D_COL_MAJOR, stores && problem.d.layout == Layout::col_major);
  set_rows(step, problem);
  gpu::ReduceRowsParams params{};
  params.m = narrow(product.m);
  params.n = narrow(problem.n);
  params.values_ld = narrow(product.d.ld);
  params.values_batch = product.d.batch_stride * sizeof(float);
  params.ldd = narrow(problem.d.ld);
  params.d_batch = problem.d.batch_stride * size_in_bytes(problem.d.type);
  step.params = params;
  step.dispatches = cut_grid(divided_up(product.m, rows), product.batch, limits);
  return step;
}

// The additional time of a round of tiles when its rows are reduced, for each exponential of every
// value, and when workgroups wait for each other, in times of a tile's own overhead. Where two are
// resident they cover for one another. Fitted with nvidia_sm90's timing, after H200, driver
// 580.159.04, 2026-11-22, in rounds of 128x128 (two resident) and 128x256 (one): rms_norm in a tile
// 0.9 us; in panels 4.7 to 5.5 and 5.5 to 8.6 us; softmax 5.6 and 8.5 us more.
constexpr double reduce_tiles = 0.5;
constexpr double exponential_tiles = 2.45;
constexpr double wait_tiles = 2.5;
constexpr double covered = 0.63;

// Values between two passes come and go at this part of the rate of split-K's partial results, and
// their parts follow each other behind barriers (same runs: 3.74 ms at 131072x4096x512 in 32
// chunks, 7.64 at 131072x2048x4096 in 16; the products alone 2.26 and 6.91). With exponentials the
// second kernel is bound by them (4.45 and 4.50 ms at 131072x2048x2048, panels of 128x128 4.17).
constexpr double value_rate = 0.62;
constexpr double exponential_values = 1.2;

// The second pass's dispatch in those that add slices, and what each of a row's values adds to it
// in microseconds: one after the other a workgroup loads parts of a row, twice. Fitted with
// nvidia_sm90's timing.
constexpr double second_pass = 0.86;
constexpr double value_time = 0.0019;

// Microseconds for each tile of a row in panels: what tiles know of a row is read in turn, by every
// tile that waits, or once by the dispatch that merges it. Fitted with nvidia_sm90's timing.
constexpr double column_time = 0.08;

// The time of values between two passes.
double value_transfer(const ResolvedProblem& problem, const TimingModel& timing) {
  const double values = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                        static_cast<double>(problem.batch) * 2.0 * sizeof(float);
  const double slower = row_of(problem.rows->op).exponentials > 0.0 ? exponential_values : 1.0;
  return slower * values / kilobyte / (value_rate * timing.workspace);
}

double cost(const Config& config, const Computation& computation, const TimingModel& timing,
            const ProductCost& product) {
  if (config.rows == RowStrategy::none) return 0.0;
  const ResolvedProblem& problem = computation.asked();
  const RowOp op = problem.rows->op;
  const double exponentials = row_of(op).exponentials * exponential_tiles;
  const double exposed = product.rounds * timing.tile * (product.resident >= 2.0 ? covered : 1.0);
  const double reduce = exposed * (reduce_tiles + exponentials);
  const double columns = static_cast<double>(tile_columns(config, problem));
  switch (config.rows) {
    case RowStrategy::none:
      break;
    case RowStrategy::resident:
      return reduce;
    case RowStrategy::panel:
      return reduce + timing.sum +
             (is_scalar(op) ? columns * column_time
                            : exposed * wait_tiles + product.rounds * columns * column_time);
    case RowStrategy::recompute:
      return product.microseconds + 2.0 * reduce + timing.sum + columns * column_time;
    case RowStrategy::two_pass: {
      const auto chunks = static_cast<double>(row_chunks(config, problem).count());
      return value_transfer(problem, timing) + (2.0 * chunks - 1.0) * second_pass * timing.sum +
             static_cast<double>(problem.n) * value_time;
    }
  }
  return 0.0;
}

std::string_view family(const ResolvedProblem& p) {
  return p.rows ? to_string(p.rows->op) : std::string_view();
}

bool is_family(std::string_view name) { return parse_row_op(name).has_value(); }

void add_workspace(WorkspaceLayout& out, const Config& c, const ComputedProblem& computed) {
  const ResolvedProblem& p = *computed;
  if (keeps_tiles(c.rows)) {
    out.add(&Addresses::control, row_control_words(c, p) * sizeof(std::uint32_t));
    out.add(&Addresses::partial, row_state_bytes(c, p));
  } else if (c.rows == RowStrategy::two_pass) {
    out.add(&Addresses::values, row_value_bytes(c, p));
  }
}

std::string_view describe_strategy(RowStrategy strategy) {
  switch (strategy) {
    case RowStrategy::none:
      break;
    case RowStrategy::resident:
      return "a tile has whole rows";
    case RowStrategy::panel:
      return "tiles of the same rows tell each other what they know of them";
    case RowStrategy::recompute:
      return "computed twice, first for what is to be known of the rows";
    case RowStrategy::two_pass:
      return "by a second kernel";
  }
  return "?";
}

std::string describe(const Config& c, const ResolvedProblem& p, const DispatchPlan& plan) {
  if (!p.rows) return {};
  std::string text = concat("rows: ", to_string(p.rows->op), ", ", to_string(c.rows), ": ",
                            describe_strategy(c.rows));
  if (c.rows == RowStrategy::two_pass) {
    if (plan.values_in_d) return text + ", values in D";
    const std::uint64_t chunks = plan.chunks ? plan.chunks->count() : 1;
    return text +
           concat(", values in the workspace, in ", chunks, chunks == 1 ? " part" : " parts");
  }
  const std::uint64_t values = divided_up(std::uint64_t{c.tile_m} * c.tile_n, invocations(c));
  return text + concat(", ", values, " values an invocation, ", tile_columns(c, p),
                       tile_columns(c, p) == 1 ? " tile" : " tiles", " a row");
}

}  // namespace

double least_row_time(RowStrategy strategy, const ResolvedProblem& problem,
                      const TimingModel& timing, double product) {
  if (strategy == RowStrategy::recompute) return product;
  return strategy == RowStrategy::two_pass && problem.rows ? value_transfer(problem, timing) : 0.0;
}

void add_second_pass(DispatchPlan& out, const Computation& computation,
                     const ResolvedProblem& product, const Limits& limits) {
  const Config& config = computation.config();
  const ResolvedProblem& problem = *computation.whole();
  out.values_in_d = values_stand_in_d(problem);
  const bool summed = config.slices > 1 && config.reduction_mode == ReductionMode::two_dispatches;
  (summed ? out.after.back() : out.product).writes_values = true;
  // The step that stands in for a barrier that was given up.
  if (config.reduction_mode == ReductionMode::device_barrier) out.after.back().writes_values = true;
  out.after.push_back(reduce_step(problem, product, limits));
}

extern constexpr Part rows_part{.check = check,
                                .lower = lower,
                                .describe = describe,
                                .cost = cost,
                                .family = family,
                                .is_family = is_family,
                                .add_workspace = add_workspace};

}  // namespace vkgemm
