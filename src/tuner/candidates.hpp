// candidates.hpp: the configurations that a search begins with. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "tuner/config_space.hpp"
#include "tuning/table.hpp"

namespace vkgemm::tuner {

struct CandidateLimits {
  std::size_t most = 48;
  double within = 2.5;  // estimates up to this factor above the best one
  // The fewest candidates of each path that can compute the problem. Estimates compare
  // configurations of one path; those of another path may be off by any factor.
  std::size_t of_a_path = 4;
};

struct Candidates {
  std::vector<ProposedConfig> space;   // by estimate, the best first, path by path
  const TuningTable* guide = nullptr;  // the table whose estimates the search follows
  std::size_t legal = 0;               // all that are legal, whatever the estimate says
};

// The best of search_space() with the built-in table of `architecture`, and of the generic one for
// paths that this has nothing for.
Candidates candidates(std::string_view architecture, const ResolvedProblem& problem,
                      const Target& target, const CandidateLimits& limits,
                      const std::function<bool(const Config&)>& allowed = {});

}  // namespace vkgemm::tuner
