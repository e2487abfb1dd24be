// workspace.hpp: what a configuration wants of the workspace. Pure.
#pragma once

#include "kernels/dispatch_plan.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// `seen`: the problem as packed() shows it. Without limits, for a device whose push constants hold
// all parameters.
WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen);
WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen,
                                 const Limits& limits);

// True if Problem::max_workspace_bytes is enough. `seen` as above.
bool fits_workspace(const Config& config, const ResolvedProblem& seen, const Limits& limits);

}  // namespace vkgemm
