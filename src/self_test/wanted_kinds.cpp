#include "self_test/wanted_kinds.hpp"

#include <algorithm>
#include <optional>

#include "kernels/verdicts.hpp"
#include "self_test/self_test.hpp"

namespace vkgemm {
namespace {

// The untested kinds, and the device as if all of them had passed.
struct Hope {
  std::vector<KernelKind> untested;
  DeviceCaps caps;
};

Hope hope(const DeviceCaps& caps) {
  Hope out{.untested = kernel_kinds(caps), .caps = caps};
  std::erase_if(out.untested, [&](const KernelKind& kind) {
    const auto denies = [&](const Denial& denial) { return covers(denial, kind); };
    return has_verdict(caps.verdicts, kind) || std::ranges::any_of(caps.denials, denies);
  });
  for (const KernelKind& kind : out.untested) {
    out.caps.verdicts.push_back({.kind = kind, .outcome = Outcome::passed});
  }
  return out;
}

// Appends the untested kinds that speak for the configuration.
void add_kinds(std::vector<KernelKind>& kinds, const Hope& hope, const Config& config,
               const Inputs& inputs) {
  for (const KernelKind& kind : hope.untested) {
    if (covers(kind, config, inputs) && std::ranges::find(kinds, kind) == kinds.end()) {
      kinds.push_back(kind);
    }
  }
}

void add_kinds_of_orders(std::vector<KernelKind>& kinds, const Hope& hope,
                         const ResolvedProblem& problem, const DeviceTables& tables) {
  for (const ResolvedMatrix* const matrix : {&problem.a, &problem.b}) {
    const TuningRow* const row = tables.order(*matrix, hope.caps).row;
    if (row != nullptr) add_kinds(kinds, hope, row->config, inputs_of(problem));
  }
}

}  // namespace

DeviceCaps hopeful(const DeviceCaps& caps) { return hope(caps).caps; }

std::vector<KernelKind> wanted_by_orders(const ResolvedProblem& problem, const DeviceTables& tables,
                                         const DeviceCaps& caps) {
  std::vector<KernelKind> kinds;
  add_kinds_of_orders(kinds, hope(caps), problem, tables);
  return kinds;
}

std::vector<KernelKind> wanted_kinds(const ResolvedProblem& problem, const Config* config,
                                     const DeviceTables& tables, const DeviceCaps& caps) {
  std::vector<KernelKind> kinds;
  const Hope hoped = hope(caps);
  if (hoped.untested.empty() || problem.is_empty()) return kinds;
  add_kinds_of_orders(kinds, hoped, problem, tables);
  ResolvedProblem ordered = problem;
  if (tables.set_orders(ordered, hoped.caps)) return kinds;
  std::optional<ScoredRow> best;
  if (config == nullptr && (best = tables.best(ordered, hoped.caps))) config = &best->config;
  if (config != nullptr) add_kinds(kinds, hoped, *config, inputs_of(ordered));
  return kinds;
}

}  // namespace vkgemm
