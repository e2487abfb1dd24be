// workspace.hpp: what a configuration wants of the workspace. Pure.
#pragma once

#include "kernels/computed_problem.hpp"
#include "kernels/dispatch_plan.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Without limits, for a device whose push constants hold all parameters.
WorkspaceLayout workspace_layout(const Config& config, const ComputedProblem& problem);
WorkspaceLayout workspace_layout(const Config& config, const ComputedProblem& problem,
                                 const Limits& limits);

// True if Problem::max_workspace_bytes is enough.
bool fits_workspace(const Config& config, const ComputedProblem& problem, const Limits& limits);

}  // namespace vkgemm
