// dispatch_limit.hpp: dispatches that end before a watchdog, or whoever waits behind them, loses
// patience. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/dispatch_plan.hpp"
#include "kernels/target.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// True if the workgroups of its longest dispatch can be those of several: not if all of them wait
// for one another, or share out the tiles by their number.
bool can_be_cut(const Config& config) noexcept;

// True if that dispatch, which can't be cut, is estimated to take longer than the problem allows,
// with its estimate_scale.
bool exceeds_dispatch_limit(const Config& config, double microseconds,
                            const ResolvedProblem& problem) noexcept;

// Cuts dispatches into such of at most so many workgroups: a multiple of `quantum`, and no less.
// The same tiles in the same order.
std::vector<Dispatch> cut_dispatches(const std::vector<Dispatch>& dispatches,
                                     std::uint64_t most_workgroups, std::uint64_t quantum);

struct DispatchTimes {
  double longest = 0.0;  // of the product's dispatches, microseconds by the scaled estimate
  bool kept = true;      // the problem's limit
};

// Cuts the kernel's dispatches so that each takes no longer than the problem's max_dispatch_us.
// `microseconds`: what the whole kernel is estimated to take, before the problem's estimate_scale;
// not known: into the smallest pieces.
// As many workgroups as run at the same time stay together: fewer would not end sooner.
std::optional<DispatchTimes> limit_dispatches(DispatchPlan& kernel,
                                              std::optional<double> microseconds,
                                              const Config& config, const ResolvedProblem& problem,
                                              const Target& target);

}  // namespace vkgemm
