// lowering.hpp: what was decided, as dispatches. Pure.
#pragma once

#include "kernels/dispatch_plan.hpp"
#include "kernels/target.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"

namespace vkgemm {

// The configuration must be legal for the problem and the device.
DispatchPlan lower(const Config& config, const ResolvedProblem& problem, const Target& target);

}  // namespace vkgemm
