// grouping.cpp: what goes with groups, and what only they have.
#include <algorithm>
#include <bit>
#include <limits>

#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/computation.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/occupancy.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"

namespace vkgemm {
namespace {

// The word of the workspace that tells of bad offsets.
constexpr std::uint64_t bad_group_bytes = sizeof(std::uint32_t);

// The f32 values of rows that are added up, and the row of each term.
std::uint64_t row_sum_bytes(const ResolvedProblem& p) {
  return p.m * row_sum_values(p).ld * sizeof(float);
}
std::uint64_t place_bytes(const Grouping& grouping) {
  return rounded_up(places_of(grouping) * sizeof(std::uint32_t), std::uint64_t{RESET_PIECE_BYTES});
}

// Workgroups of sum_rows.comp for a row of D.
std::uint64_t sum_pieces(const ResolvedProblem& p) {
  return divided_up(p.n, std::uint64_t{4} * SUM_ROWS_LOCAL_SIZE);
}

bool check_row_index(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  if (!p.has_row_index()) return true;
  if (!descriptor(c).finds_rows) {
    return s.refuse("rows by index: not built on main loop ", to_string(c.main_loop()));
  }
  if (!p.adds_rows()) return true;
  const std::uint64_t bytes = row_sum_bytes(p);
  if (bytes > most_workspace_bytes) {
    return s.refuse("rows are added up: their values take ", bytes, " bytes");
  }
  constexpr std::uint64_t most_workgroups = std::numeric_limits<std::int32_t>::max();
  const std::uint64_t workgroups = sum_pieces(p) * p.grouping->d_rows;
  if (workgroups > most_workgroups ||
      dispatch_count(workgroups, 1, s.caps.limits) > most_dispatches) {
    return s.refuse("rows are added up: ", p.grouping->d_rows, " rows of D of ", sum_pieces(p),
                    " workgroups are too many to record");
  }
  return true;
}

bool check(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  const bool persistent = c.schedule == Schedule::persistent;
  if (!p.grouping) {
    return !persistent || s.refuse("schedule is persistent: only grouped problems have it");
  }
  if (const auto why = why_not_built("grouped", c.main_loop(), *p.input)) return s.refuse(*why);
  if (c.slices > 1) return s.refuse("slices is ", c.slices, ": not built for grouped problems");
  if (p.has_copies() && !descriptor(c).takes_fragments()) {
    return s.refuse("pack: not built for grouped problems on main loop ", to_string(c.main_loop()));
  }
  // Tiles of all groups are numbered together.
  constexpr std::uint64_t most_tiles = std::numeric_limits<std::int32_t>::max();
  if (persistent && tile_count(c, p) > most_tiles / p.batch) {
    return s.refuse("schedule is persistent: ", tile_count(c, p), " tiles in each of ", p.batch,
                    " groups, at most ", most_tiles, " can be numbered");
  }
  return check_row_index(s);
}

// As many as are resident at a time, but no more than there are tiles.
std::uint32_t persistent_workgroups(const Config& config, const ResolvedProblem& problem,
                                    const Target& target) {
  const std::uint64_t wanted =
      config.workgroups != 0 ? config.workgroups
                             : resident_workgroups(config, target.timing, problem, target.caps);
  const std::uint64_t most = workgroup_limit(target.caps.limits, 0);
  return narrow(std::min({wanted, most, tile_count(config, problem) * problem.batch}));
}

// The table of where groups begin and end.
std::uint64_t table_bytes(const Grouping& grouping) {
  const std::uint64_t groups = grouping.groups;
  const bool has_ends = grouping.bounds == GroupBounds::starts_and_sizes;
  return (has_ends ? 2 * groups : groups + 1) * sizeof(std::int32_t);
}
Step table_step(const Grouping& grouping, const Limits& limits) {
  Step step;
  step.once = true;
  step.alone = true;
  step.key.module = "group_table";
  Constants constants(step.key.constants);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{GROUP_TABLE_LOCAL_SIZE});
  constants.set(SPEC_OFFSETS_64, grouping.offsets == OffsetType::int64);
  constants.set(SPEC_GROUP_ENDS, grouping.bounds == GroupBounds::starts_and_sizes);
  gpu::GroupTableParams params{};
  params.groups = grouping.groups;
  step.params = params;
  step.dispatches = cut_grid(1, 1, limits);
  return step;
}

// Adds up rows of a product to rows of D.
Step sum_step(const ResolvedProblem& asked, const ResolvedProblem& product, const Limits& limits) {
  Step step;
  step.key.module = "sum_rows";
  Constants constants(step.key.constants);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{SUM_ROWS_LOCAL_SIZE});
  constants.set(SPEC_D_TYPE, row_of(asked.d.type).constant);
  constants.set(SPEC_D_VECTOR, allows_epilogue_vectors(asked.d));
  constants.set(SPEC_D_COL_MAJOR, std::uint32_t{0});
  constants.set(SPEC_ZERO_POINT, std::bit_cast<std::uint32_t>(asked.epilogue.zero_point));
  constants.set(SPEC_BYTE_TYPES, is_byte(asked.d.type));
  gpu::SumRowsParams params{};
  params.n = narrow(asked.n);
  params.values_ld = narrow(product.d.ld);
  params.ldd = narrow(asked.d.ld);
  params.terms = asked.grouping->d_terms;
  step.params = params;
  step.dispatches = cut_grid(sum_pieces(asked) * asked.grouping->d_rows, 1, limits);
  return step;
}

// Rows by index, and matrices: the fields that have another meaning are in abi.h.
void lower_indices(Lowering& l, gpu::GroupedParams& params) {
  const Grouping& grouping = *l.problem->grouping;
  const ResolvedProblem& asked = l.computation.asked();
  const Limits& limits = l.target.caps.limits;
  if (asked.gathers_rows()) {
    l.constants.set(SPEC_GATHER, grouping.a_terms);
    params.gemm.a_batch = grouping.a_rows;
  }
  if (places_rows(grouping)) {
    l.constants.set(SPEC_SCATTER,
                    asked.adds_rows() ? std::uint32_t{SCATTER_TERMS} : std::uint32_t{SCATTER_ROWS});
    params.gemm.d_batch = places_of(grouping);
  }
  if (grouping.b_matrices != 0) {
    l.constants.set(SPEC_INDEXED_B, std::uint32_t{1});
    params.gemm.batch = grouping.b_matrices;
  }
  if (!asked.adds_rows()) return;
  l.plan.before.push_back(reset_step(0, place_bytes(grouping), limits));
  l.plan.product.writes_values = true;
  l.plan.after.push_back(sum_step(asked, *l.problem, limits));
}

void lower(Lowering& l) {
  if (!l.problem->grouping) return;
  const Grouping& grouping = *l.problem->grouping;
  Step& product = l.plan.product;
  product.key.module = module_name("grouped", l.config.main_loop(), *l.problem->input);
  set_groups(l.constants, *l.problem);
  l.constants.set(SPEC_PERSISTENT, l.config.schedule == Schedule::persistent);
  gpu::GroupedParams params{.gemm = product.gemm()};
  params.groups = grouping.groups;
  if (grouping.bounds != GroupBounds::offsets) {
    l.plan.before.push_back(table_step(grouping, l.target.caps.limits));
  }
  lower_indices(l, params);
  product.params = params;
  if (l.config.schedule == Schedule::persistent) {
    product.dispatches = {
        {.tiles = persistent_workgroups(l.config, *l.problem, l.target), .batches = 1}};
  }
}

// Comes before all other parts: callers find the word where the workspace begins.
void add_workspace(WorkspaceLayout& out, const Config&, const ComputedProblem& computed) {
  const ResolvedProblem& p = *computed;
  if (!p.grouping) return;
  const Grouping& grouping = *p.grouping;
  const bool has_table = grouping.bounds != GroupBounds::offsets;
  if (p.max_workspace_bytes < bad_group_bytes && !has_table && !p.adds_rows()) return;
  out.add(&Addresses::bad_group, bad_group_bytes);
  if (has_table) out.add(&Addresses::offsets, table_bytes(grouping));
  if (p.adds_rows()) {
    out.add(&Addresses::values, row_sum_bytes(p));
    out.add(&Addresses::partial, place_bytes(grouping));
  }
  // Alone it needs no more.
  if (!p.has_copies() && !has_table && !p.adds_rows()) out.bytes = bad_group_bytes;
}

// Microseconds of the dispatches before and after the product.
double cost(const Config&, const Computation& computation, const TimingModel& timing,
            const ProductCost&) {
  const ResolvedProblem& p = computation.asked();
  if (!p.grouping) return 0.0;
  double sum = p.grouping->bounds != GroupBounds::offsets ? timing.sum : 0.0;
  if (p.adds_rows()) {
    sum += 2.0 * timing.sum +
           2.0 * static_cast<double>(row_sum_bytes(p)) / kilobyte / timing.workspace;
  }
  return sum;
}

std::string describe(const Config& c, const ResolvedProblem& p, const DispatchPlan&) {
  if (!p.grouping) return {};
  std::string text = concat("grouped along ", to_string(p.grouping->along), ": ",
                            p.grouping->groups, p.grouping->groups == 1 ? " group" : " groups",
                            ", b ", to_string(p.grouping->b), ", ");
  if (p.is_grouped(GroupAlong::m)) {
    text += concat(p.group_slots(p.m, c.tile_m), " slots of ", c.tile_m, " rows, ");
  }
  if (p.grouping->bounds != GroupBounds::offsets) {
    text += concat("a dispatch makes a table of ", to_string(p.grouping->bounds), ", ");
  }
  if (p.gathers_rows()) text += concat("rows of A gathered from ", p.grouping->a_rows, ", ");
  if (p.scatters_rows()) text += concat("rows of D scattered to ", p.grouping->d_rows, ", ");
  if (p.adds_rows()) {
    text += concat("a last dispatch adds up ", p.grouping->d_terms,
                   p.grouping->row_weights ? " weighted" : "",
                   p.grouping->d_terms == 1 ? " row" : " rows", " for each row of D, ");
  }
  if (p.grouping->b_matrices != 0)
    text += concat(p.grouping->b_matrices, " matrices of B by index, ");
  text += concat("schedule ", to_string(c.schedule));
  if (c.schedule == Schedule::persistent) {
    text += concat(": ", tile_count(c, p) * p.batch, " tiles by turns");
  }
  return text;
}

}  // namespace

ResolvedMatrix row_sum_values(const ResolvedProblem& p) {
  const std::uint64_t x4 = 4;
  return {.type = sum_type,
          .layout = Layout::row_major,
          .rows = p.m,
          .cols = p.n,
          .ld = rounded_up(p.n, x4),
          .alignment = workspace_unit};
}

extern constexpr Part grouping_part{.check = check,
                                    .lower = lower,
                                    .describe = describe,
                                    .cost = cost,
                                    .add_workspace = add_workspace};

}  // namespace vkgemm
