// grouping.cpp: what goes with groups, and what only they have.
#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/occupancy.hpp"
#include "kernels/part.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"

namespace vkgemm {
namespace {

// The word of the workspace that tells of bad offsets.
constexpr std::uint64_t bad_group_bytes = sizeof(std::uint32_t);

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
  return true;
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

void lower(Lowering& l) {
  if (!l.problem->grouping) return;
  const Grouping& grouping = *l.problem->grouping;
  Step& product = l.plan.product;
  product.key.module = module_name("grouped", l.config.main_loop(), *l.problem->input);
  set_groups(l.constants, *l.problem);
  l.constants.set(SPEC_PERSISTENT, l.config.schedule == Schedule::persistent);
  gpu::GroupedParams params{.gemm = product.gemm()};
  params.groups = grouping.groups;
  product.params = params;
  if (l.config.schedule == Schedule::persistent) {
    product.dispatches = {
        {.tiles = persistent_workgroups(l.config, *l.problem, l.target), .batches = 1}};
  }
}

// Comes before all other parts: callers find the word where the workspace begins.
void add_workspace(WorkspaceLayout& out, const Config&, const ComputedProblem& computed) {
  const ResolvedProblem& p = *computed;
  if (!p.grouping || p.max_workspace_bytes < bad_group_bytes) return;
  out.add(&Addresses::bad_group, bad_group_bytes);
  if (!p.has_copies()) out.bytes = bad_group_bytes;  // alone it needs no more
}

std::string describe(const Config& c, const ResolvedProblem& p, const DispatchPlan&) {
  if (!p.grouping) return {};
  std::string text = concat("grouped along ", to_string(p.grouping->along), ": ",
                            p.grouping->groups, p.grouping->groups == 1 ? " group" : " groups",
                            ", b ", to_string(p.grouping->b), ", ");
  if (p.is_grouped(GroupAlong::m)) {
    text += concat(p.group_slots(p.m, c.tile_m), " slots of ", c.tile_m, " rows, ");
  }
  text += concat("schedule ", to_string(c.schedule));
  if (c.schedule == Schedule::persistent) {
    text += concat(": ", tile_count(c, p) * p.batch, " tiles by turns");
  }
  return text;
}

}  // namespace

extern constexpr Part grouping_part{
    .check = check, .lower = lower, .describe = describe, .add_workspace = add_workspace};

}  // namespace vkgemm
