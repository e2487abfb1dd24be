#include "tuner/candidates.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace vkgemm::tuner {
namespace {

bool has_path(const std::vector<ProposedConfig>& space, Path path) {
  return std::ranges::any_of(
      space, [path](const ProposedConfig& proposed) { return proposed.config.path() == path; });
}

std::vector<ProposedConfig> worth_a_look(const std::vector<ProposedConfig>& space,
                                         const CandidateLimits& limits) {
  struct OfPath {
    std::size_t count = 0;
    double best = 0.0;
  };
  std::map<Path, OfPath> paths;
  std::vector<ProposedConfig> out;
  for (const ProposedConfig& proposed : space) {
    OfPath& path = paths[proposed.config.path()];
    if (path.count == 0) path.best = proposed.estimate;
    if (proposed.estimate > limits.within * path.best) continue;
    const bool is_good =
        out.size() < limits.most && proposed.estimate <= limits.within * space.front().estimate;
    if (!is_good && path.count >= std::min(limits.of_a_path, limits.most)) continue;
    ++path.count;
    out.push_back(proposed);
  }
  return out;
}

}  // namespace

Candidates candidates(std::string_view architecture, const ResolvedProblem& problem,
                      const Target& target, const CandidateLimits& limits,
                      const std::function<bool(const Config&)>& allowed) {
  Candidates out;
  const TuningTable& generic = built_in_table("generic");
  out.guide = &built_in_table(architecture);
  out.space = search_space(*out.guide, problem, target, allowed);
  if (out.guide != &generic) {
    std::vector<ProposedConfig> others = search_space(generic, problem, target, allowed);
    std::erase_if(others, [&](const ProposedConfig& other) {
      return has_path(out.space, other.config.path());
    });
    if (out.space.empty()) out.guide = &generic;
    std::ranges::move(others, std::back_inserter(out.space));
  }
  out.legal = out.space.size();
  out.space = worth_a_look(out.space, limits);
  return out;
}

}  // namespace vkgemm::tuner
