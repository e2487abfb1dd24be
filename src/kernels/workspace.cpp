#include "kernels/workspace.hpp"

#include "kernels/part.hpp"

namespace vkgemm {

WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen) {
  WorkspaceLayout out;
  for (const Part* part : parts()) {
    if (part->add_workspace != nullptr) part->add_workspace(out, config, seen);
  }
  return out;
}

bool fits_workspace(const Config& config, const ResolvedProblem& seen) {
  return workspace_layout(config, seen).bytes <= seen.max_workspace_bytes;
}

}  // namespace vkgemm
