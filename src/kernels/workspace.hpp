// workspace.hpp: what a configuration wants of the workspace. Pure.
#pragma once

#include "kernels/dispatch_plan.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"

namespace vkgemm {

// `seen`: the problem as packed() shows it.
WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen);

// True if Problem::max_workspace_bytes is enough. `seen` as above.
bool fits_workspace(const Config& config, const ResolvedProblem& seen);

}  // namespace vkgemm
