#include "kernels/workspace.hpp"

#include "kernels/parts/grouping.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/split_k.hpp"

namespace vkgemm {

WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen) {
  WorkspaceLayout out;
  const auto take = [&out](std::uint64_t bytes) {
    const std::uint64_t begin = out.bytes;
    out.bytes += rounded_up(bytes, workspace_unit);
    return begin;
  };
  out.a = take(config.pack_a ? packed_bytes(seen.a, seen.batch) : 0);
  out.b = take(config.pack_b ? packed_bytes(seen.b, seen.batch) : 0);
  out.partial = take(partial_bytes(config, seen));
  out.control = take(control_word_count(config, seen) * sizeof(std::uint32_t));
  out.states = take(row_state_bytes(config, seen));
  out.values = take(row_value_bytes(config, seen));
  // Groups want nothing of this.
  if (seen.grouping && seen.max_workspace_bytes >= bad_group_bytes) out.bytes = bad_group_bytes;
  return out;
}

bool fits_workspace(const Config& config, const ResolvedProblem& seen) {
  return workspace_layout(config, seen).bytes <= seen.max_workspace_bytes;
}

std::uint64_t control_word_count(const Config& config, const ResolvedProblem& problem) {
  return row_control_words(config, problem) + split_control_words(config, problem);
}

}  // namespace vkgemm
