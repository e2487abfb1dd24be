#include "kernels/workspace.hpp"

#include "kernels/part.hpp"
#include "kernels/steps.hpp"

namespace vkgemm {

WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen) {
  WorkspaceLayout out;
  for (const Part* part : parts()) {
    if (part->add_workspace != nullptr) part->add_workspace(out, config, seen);
  }
  return out;
}

WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen,
                                 const Limits& limits) {
  WorkspaceLayout out = workspace_layout(config, seen);
  if (parameters_in_memory(limits)) out.add(&Addresses::parameters, gpu::most_parameter_bytes);
  return out;
}

bool fits_workspace(const Config& config, const ResolvedProblem& seen, const Limits& limits) {
  return workspace_layout(config, seen, limits).bytes <= seen.max_workspace_bytes;
}

}  // namespace vkgemm
