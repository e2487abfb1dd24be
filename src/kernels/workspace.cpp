#include "kernels/workspace.hpp"

#include "kernels/part.hpp"
#include "kernels/steps.hpp"

namespace vkgemm {

WorkspaceLayout workspace_layout(const Config& config, const ComputedProblem& problem) {
  WorkspaceLayout out;
  for (const Part* part : parts()) {
    if (part->add_workspace != nullptr) part->add_workspace(out, config, problem);
  }
  return out;
}

WorkspaceLayout workspace_layout(const Config& config, const ComputedProblem& problem,
                                 const Limits& limits) {
  WorkspaceLayout out = workspace_layout(config, problem);
  if (parameters_in_memory(limits)) out.add(&Addresses::parameters, gpu::most_parameter_bytes);
  return out;
}

bool fits_workspace(const Config& config, const ComputedProblem& problem, const Limits& limits) {
  return workspace_layout(config, problem, limits).bytes <= problem->max_workspace_bytes;
}

}  // namespace vkgemm
