// split_k.cpp: what slices of K ask for, and who adds them.
#include "kernels/parts/split_k.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/gated.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"

namespace vkgemm {
namespace {

// Each workgroup takes one more than there are.
constexpr std::uint64_t most_tickets = std::uint64_t{1} << 31;

// Words that the workgroups which add the partial results share.
std::uint64_t split_control_words(const Config& config, const ResolvedProblem& problem) {
  if (config.reduction_mode == ReductionMode::two_dispatches) return 0;
  return CONTROL_WORDS + tile_count(config, problem) * problem.batch;
}

// The check for what the reduction modes without a second dispatch need.
bool check_reduction_mode(const Case& s) {
  const Config& c = s.config;
  if (c.reduction_mode == ReductionMode::two_dispatches) return true;
  const std::string_view mode = to_string(c.reduction_mode);
  if (c.slices == 1)
    return s.refuse("reduction_mode is ", mode, ": slices is 1, nothing is to be added");
  if (!descriptor(c).shows_stores) {
    return s.refuse("reduction_mode is ", mode, ": main loop ", to_string(c.main_loop()),
                    " cannot show what it stores to other workgroups of ",
                    "the same dispatch, reduction_mode two_dispatches it can");
  }
  if (c.reduction_mode == ReductionMode::device_barrier && !s.caps.device_barrier.available) {
    return s.refuse("reduction_mode is ", mode, ": ", s.caps.device_barrier.reason);
  }
  // Tickets and tiles are counted in 32 bits.
  const std::uint64_t tiles = tile_count(c, *s.problem);
  if (tiles > most_control_words / s.problem->batch ||
      split_control_words(c, *s.problem) > most_control_words ||
      tiles * s.problem->batch > most_tickets / c.slices) {
    return s.refuse("reduction_mode is ", mode, ": ", tiles, " tiles in each of ", s.problem->batch,
                    " matrices are too many to count");
  }
  return true;
}

bool check(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  if (!check_reduction_mode(s)) return false;
  if (c.slices == 1) return true;
  if (const auto why = why_not_built("sum_slices")) return s.refuse(*why);
  const std::uint32_t most_z = s.caps.limits.max_workgroup_count[2];
  if (most_z != 0 && c.slices > most_z) {
    return s.refuse("slices is ", c.slices, ", the device has at most ", most_z,
                    " workgroups in z");
  }
  const std::uint64_t matrices = p.batch * c.slices;
  const std::uint64_t row_bytes = partial_ld(p) * sizeof(float);
  if (p.batch > most_workspace_bytes / c.slices || matrices > most_workspace_bytes / row_bytes ||
      p.m > most_workspace_bytes / row_bytes / matrices) {
    return s.refuse("slices is ", c.slices, ": partial results of ", p.m, " rows of ", row_bytes,
                    " bytes in each of ", p.batch, " matrices take more than ",
                    most_workspace_bytes, " bytes");
  }
  constexpr std::uint64_t most_blocks = std::numeric_limits<std::int32_t>::max();
  const std::uint64_t blocks = sum_block_count(p);
  if (blocks > most_blocks || dispatch_count(blocks, p.batch, s.caps.limits) > most_dispatches) {
    return s.refuse("slices is ", c.slices, ": ", blocks,
                    " workgroups to add the partial results are too many");
  }
  return true;
}

// The module that adds partial results knows neither tiles nor A and B: one pipeline for all.
PipelineKey sum_key(const ResolvedProblem& p) {
  PipelineKey key;
  key.module = p.input->sum_kernel;
  Constants constants(key.constants);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{SUM_LOCAL_SIZE});
  constexpr std::size_t divisors[] = {SPEC_TILE_M, SPEC_TILE_N, SPEC_TILE_K, SPEC_SWIZZLE};
  for (const std::size_t id : divisors) constants.set(id, std::uint32_t{1});
  set_epilogue(constants, p, true);
  set_gate(constants, p);
  return key;
}

// The workgroups that wait for one another. More than are resident at a time are of no use, and do
// no harm.
std::uint32_t launched_workgroups(const Config& config, const ResolvedProblem& problem,
                                  const Limits& limits) {
  if (config.workgroups != 0) return config.workgroups;
  const std::uint64_t items = tile_count(config, problem) * problem.batch * config.slices;
  return narrow(std::min(items, workgroup_limit(limits, 0)));
}

void lower(Lowering& l) {
  const Config& config = l.config;
  Step& product = l.plan.product;
  if (config.slices == 1) return;
  for (Dispatch& dispatch : product.dispatches) dispatch.slices = config.slices;
  const Limits& limits = l.target.caps.limits;
  if (adds_in_product(config)) {
    product.key.module = module_name("gemm_split", config.main_loop(), *l.problem->input);
    gpu::SplitParams params{.gemm = product.gemm()};
    product.params = params;
    l.constants.set(SPEC_SPIN_LIMIT, config.spin_limit);
    l.plan.before.push_back(reset_step(split_control_words(config, *l.problem), 0, limits));
  }
  switch (config.reduction_mode) {
    case ReductionMode::two_dispatches:
      l.constants.set(SPEC_SPLIT, std::uint32_t{SPLIT_TWO_DISPATCHES});
      l.plan.after.push_back(
          {.key = sum_key(*l.problem),
           .params = product.params,
           .dispatches = cut_grid(sum_block_count(*l.problem), l.problem->batch, limits)});
      return;
    case ReductionMode::last_arriver:
      l.constants.set(SPEC_SPLIT, std::uint32_t{SPLIT_LAST_ARRIVER});
      break;
    case ReductionMode::device_barrier: {
      // Whatever happens to the barrier, the last arrivers have what they need.
      l.plan.after.push_back(product);
      Constants fallback(l.plan.after.back().key.constants);
      fallback.set(SPEC_SPLIT, std::uint32_t{SPLIT_LAST_ARRIVER});
      fallback.set(SPEC_GUARDED, true);
      l.constants.set(SPEC_SPLIT, std::uint32_t{SPLIT_DEVICE_BARRIER});
      product.dispatches = {
          {.tiles = launched_workgroups(config, *l.problem, limits), .batches = 1}};
      break;
    }
  }
}

void add_workspace(WorkspaceLayout& out, const Config& c, const ComputedProblem& computed) {
  const ResolvedProblem& p = *computed;
  if (c.slices == 1) return;
  out.add(&Addresses::partial, p.batch * c.slices * p.m * partial_ld(p) * sizeof(float));
  out.add(&Addresses::control, split_control_words(c, p) * sizeof(std::uint32_t));
}

std::string_view describe_reduction_mode(ReductionMode mode) {
  switch (mode) {
    case ReductionMode::two_dispatches:
      return "by a second dispatch";
    case ReductionMode::last_arriver:
      return "by the last workgroup of each tile";
    case ReductionMode::device_barrier:
      return "by all workgroups behind a barrier, by a second dispatch if they give up waiting";
  }
  return "?";
}

std::string describe(const Config& c, const ResolvedProblem&, const DispatchPlan&) {
  if (c.slices == 1) return {};
  return concat("split-K: ", c.slices, " slices of K, added in order ",
                describe_reduction_mode(c.reduction_mode));
}

}  // namespace

std::uint64_t partial_ld(const ResolvedProblem& problem) {
  return divided_up(problem.n, 4) * (problem.gated ? 8 : 4);
}

std::uint64_t sum_block_count(const ResolvedProblem& problem) {
  return divided_up(problem.m * divided_up(problem.n, 4), SUM_LOCAL_SIZE);
}

double sum_cost(std::uint32_t slices, double write_and_read, const TimingModel& timing) {
  if (slices == 1) return 0.0;
  // The sum loads so many slices at once, and waits for them, again and again.
  const double turns = std::ceil(static_cast<double>(slices) / SUM_UNROLL);
  return timing.sum + slices * write_and_read + (turns - 1.0) * timing.latency;
}

extern constexpr Part split_k_part{
    .check = check, .lower = lower, .describe = describe, .add_workspace = add_workspace};

}  // namespace vkgemm
