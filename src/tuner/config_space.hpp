// config_space.hpp: the configurations that a tuner looks at. Pure.
#pragma once

#include <functional>
#include <vector>

#include "kernels/target.hpp"
#include "problem/resolved_problem.hpp"
#include "tuning/table.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm::tuner {

struct ProposedConfig {
  Config config;
  double estimate = 0.0;  // microseconds
};

// The configurations that the table's rows propose for the problem, and the grid of tiles that the
// main loops propose around them, each as the library completes them (slices of K, packing,
// strategies for rows). All legal, and of a workspace that the problem allows; by estimate, the
// best first. `allowed` not set: all are.
std::vector<ProposedConfig> search_space(const TuningTable& table, const ResolvedProblem& problem,
                                         const Target& target,
                                         const std::function<bool(const Config&)>& allowed = {});

struct NeighbourLimits {
  double within = 2.0;  // estimates up to this factor above the configuration's own
  bool static_shapes = false;
};

// The configurations one step away: one parameter halved, doubled, or switched. All legal, as
// above. By the table's estimate, the best first; it knows nothing of some parameters: those keep
// their order. Configurations that it can't judge at all come last.
std::vector<Config> neighbours(const TuningTable& table, const Config& config,
                               const ResolvedProblem& problem, const Target& target,
                               const NeighbourLimits& limits = {});

}  // namespace vkgemm::tuner
