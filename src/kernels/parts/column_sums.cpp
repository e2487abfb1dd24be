// column_sums.cpp: the sums of columns (StepOp::sum_columns): each tile leaves a row of sums in the
// workspace, and a second dispatch adds the rows.
#include "kernels/parts/column_sums.hpp"

#include <numeric>
#include <string>
#include <variant>

#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/computation.hpp"
#include "kernels/part.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {
namespace {

// The problem's m and batch, of all chunks.
std::uint64_t whole_m(const ResolvedProblem& p) { return p.whole_m != 0 ? p.whole_m : p.m; }
std::uint64_t whole_batch(const ResolvedProblem& p) {
  return p.whole_batch != 0 ? p.whole_batch : p.batch;
}

// Rows of sums of a matrix; with groups of rows, of all groups.
std::uint64_t row_count(const Config& c, const ResolvedProblem& p) {
  return p.is_grouped(GroupAlong::m) ? p.group_slots(p.m, c.tile_m)
                                     : divided_up(whole_m(p), c.tile_m);
}

// The leading dimension of the rows. Chunks begin at a whole number of bytes for each row of D.
std::uint64_t row_ld(const Config& c, const ResolvedProblem& p) {
  const std::uint64_t x4 = 4;
  return rounded_up(p.n, p.whole_m != 0 ? std::lcm(std::uint64_t{c.tile_m}, x4) : x4);
}
std::uint64_t row_bytes(const Config& c, const ResolvedProblem& p) {
  return row_ld(c, p) * sizeof(float);
}
// All groups of rows have slots of one matrix.
std::uint64_t matrix_bytes(const Config& c, const ResolvedProblem& p) {
  return p.is_grouped(GroupAlong::m) ? 0 : row_count(c, p) * row_bytes(c, p);
}

// Workgroups that add the rows of a matrix, and matrices of sums.
std::uint64_t block_count(const ResolvedProblem& p) {
  return divided_up(p.n, 4 * std::uint64_t{COLUMNS_X4});
}
std::uint64_t sum_count(const ResolvedProblem& p) {
  return p.is_grouped(GroupAlong::m) ? p.grouping->groups : whole_batch(p);
}

bool check(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  if (!sums_columns(p.epilogue)) return true;
  if (c.slices > 1) {
    return s.refuse("slices is ", c.slices, ": a step sums columns, and no slice has their values");
  }
  const std::uint64_t rows = row_count(c, p);
  if (p.batch > most_workspace_bytes / row_bytes(c, p) / rows) {
    return s.refuse("a step sums columns: ", rows, " rows of ", row_bytes(c, p),
                    " bytes in each of ", p.batch, " matrices take more than ",
                    most_workspace_bytes, " bytes");
  }
  if (dispatch_count(block_count(p), sum_count(p), s.caps.limits) > most_dispatches) {
    return s.refuse("a step sums columns: ", block_count(p), " workgroups for each of ",
                    sum_count(p), " vectors are too many to record");
  }
  return true;
}

Step sum_step(const Lowering& l, std::size_t tensor) {
  const ResolvedProblem& p = *l.problem;
  const bool groups_of_rows = p.is_grouped(GroupAlong::m);
  Step step;
  step.once = true;
  step.key.module = "sum_columns";
  Constants constants(step.key.constants);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{COLUMNS_LOCAL_SIZE});
  for (const std::size_t id : {SPEC_TILE_M, SPEC_TILE_N, SPEC_TILE_K, SPEC_SWIZZLE}) {
    constants.set(id, std::uint32_t{1});
  }
  gpu::SumColumnsParams params{};
  params.extra_row = row_bytes(l.config, p);
  params.extra_batch = matrix_bytes(l.config, p);
  params.column_sums_batch = p.tensors[tensor].batch_stride * sizeof(float);
  params.rows = narrow(row_count(l.config, p));
  params.n = narrow(p.n);
  if (groups_of_rows) {
    set_groups(constants, p);
    constants.set(SPEC_TILE_M, l.config.tile_m);
    params.rows = narrow(p.m);
    params.groups = p.grouping->groups;
  }
  step.params = params;
  step.dispatches = cut_grid(block_count(p), sum_count(p), l.target.caps.limits);
  return step;
}

void lower(Lowering& l) {
  const ResolvedProblem& p = *l.problem;
  const auto tensor = summed_tensor(p.epilogue);
  if (!tensor) return;
  const auto set_pitches = [&](Step& step) {
    std::visit(
        [&](auto& block) {
          if constexpr (requires {
                          head_of(block).extra;
                          head_of(block).alpha;
                        }) {
            head_of(block).extra_batch = matrix_bytes(l.config, p);
            head_of(block).ld_extra = narrow(row_ld(l.config, p));
          }
        },
        step.params);
  };
  set_pitches(l.plan.product);
  for (Step& step : l.plan.after) set_pitches(step);  // the same tiles again
  l.plan.after.push_back(sum_step(l, *tensor));
}

std::string describe(const Config& c, const ResolvedProblem& p, const DispatchPlan&) {
  const auto tensor = summed_tensor(p.epilogue);
  if (!tensor) return {};
  return concat("column sums: ", tensor_names[*tensor], ", ", row_count(c, p),
                " rows of tiles, added by a second dispatch");
}

// Microseconds: one more dispatch, and the rows, which come and go.
double cost(const Config& c, const Computation& computation, const TimingModel& timing,
            const ProductCost&) {
  const ResolvedProblem& p = computation.asked();
  if (!sums_columns(p.epilogue)) return 0.0;
  const double bytes = 2.0 * static_cast<double>(row_count(c, p)) *
                       static_cast<double>(row_bytes(c, p)) * static_cast<double>(p.batch);
  return timing.sum + bytes / kilobyte / timing.workspace;
}

void add_workspace(WorkspaceLayout& out, const Config& c, const ComputedProblem& computed) {
  const ResolvedProblem& p = *computed;
  if (!sums_columns(p.epilogue)) return;
  out.add(&Addresses::extra, row_count(c, p) * row_bytes(c, p) * whole_batch(p));
}

}  // namespace

void set_sum_pitches(RowChunks& chunks, const Config& c, const ResolvedProblem& p) {
  if (!sums_columns(p.epilogue)) return;
  chunks.row_pitch.extra = row_bytes(c, p) / c.tile_m;
  chunks.batch_pitch.extra = matrix_bytes(c, p);
}

extern constexpr Part column_sums_part{.check = check,
                                       .lower = lower,
                                       .describe = describe,
                                       .cost = cost,
                                       .add_workspace = add_workspace};

}  // namespace vkgemm
