#include "tuner/config_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/pack.hpp"
#include "tuning/nearest.hpp"
#include "tuning/rank.hpp"

namespace vkgemm::tuner {
namespace {

// Tiles that hang over the edges of a matrix by more than this factor are for other problems.
constexpr std::uint64_t most_overhang = 2;

// The configuration that takes what the caller packed in the order in which it lies.
Config in_given_order(Config config, const ResolvedProblem& problem) {
  if (const auto take = descriptor(config).take_order) take(config, problem);
  return config;
}

// The tiles that the main loops propose. Legality is asked of what rank() makes of them; but not
// for what cannot be.
std::vector<Config> grid(const ResolvedProblem& problem, const DeviceCaps& caps) {
  std::vector<Config> configs;
  for (const LoopDescriptor* loop : main_loops()) {
    if (caps.path(path_of(loop->loop)).available) loop->propose(configs, problem, caps);
  }
  for (Config& config : configs) config = in_given_order(config, problem);
  std::erase_if(configs, [&](const Config& config) {
    return config.tile_m / most_overhang > problem.typical_m() ||
           config.tile_n / most_overhang > problem.product_n();
  });
  return configs;
}

class Steps {
 public:
  Steps(const Config& from, const ResolvedProblem& problem, const Target& target)
      : from_(from), problem_(problem), target_(target) {}

  // The configuration after a change, and if that changes the tile also with what follows from it.
  template <class Change>
  void change(const Change& change) {
    Config c = from_;
    change(c);
    c = as_given(in_given_order(c, problem_), problem_, target_.caps);
    if (!has_legal_ranges(c)) return;  // halves of one, above all
    add(c);
    const bool same_tile = c.tile_m == from_.tile_m && c.tile_n == from_.tile_n &&
                           c.tile_k == from_.tile_k && c.main_loop() == from_.main_loop();
    const auto refit = descriptor(c).refit;
    if (same_tile || refit == nullptr) return;
    refit(c, problem_, target_.caps);
    add(c);
  }

  // Doubles and halves each number of a parameter.
  void scale(const Parameter& parameter) {
    for (std::size_t i = 0; i < parameter.count; ++i) {
      const std::uint32_t value = parameter.get(from_, i);
      change([&](Config& c) { parameter.set(c, i, 2 * value); });
      if (value % 2 == 0) change([&](Config& c) { parameter.set(c, i, value / 2); });
    }
  }

  std::vector<Config> take() { return std::move(found_); }

 private:
  void add(const Config& c) {
    if (c == from_ || std::ranges::find(found_, c) != found_.end()) return;
    if (is_usable(c, problem_, target_)) found_.push_back(c);
  }

  const Config& from_;
  const ResolvedProblem& problem_;
  const Target& target_;
  std::vector<Config> found_;
};

void add_loop_steps(Steps& steps, const Config& from) {
  const auto vary = [&](const Parameter& parameter) {
    if (parameter.scales) steps.scale(parameter);
    if (parameter.is_switch()) {
      steps.change([&](Config& c) { parameter.set(c, 0, 1 - parameter.get(c, 0)); });
    }
  };
  for (const Parameter& parameter : common_parameters()) {
    if (parameter.scales) steps.scale(parameter);
  }
  // As large, of another form.
  steps.change([](Config& c) { c.tile_m *= 2, c.tile_n /= 2; });
  steps.change([](Config& c) { c.tile_m /= 2, c.tile_n *= 2; });
  for (const Parameter& parameter : descriptor(from).parameters) vary(parameter);
  for (const auto& step : descriptor(from).steps) steps.change(step);
  if (descriptor(from).enter == nullptr) return;
  for (const LoopDescriptor* const other : main_loops()) {
    if (other->loop != from.main_loop() && other->enter != nullptr) steps.change(other->enter);
  }
}

std::vector<Config> all_neighbours(const Config& config, const ResolvedProblem& problem,
                                   const Target& target, bool static_shapes) {
  Steps steps(config, problem, target);
  add_loop_steps(steps, config);
  if (config.swizzle != 1) steps.change([](Config& c) { c.swizzle = 1; });
  if (!problem.grouping) {
    steps.change([&](Config& c) {
      c.slices *= 2;
      if (problem.split_k.reduction_mode) c.reduction_mode = *problem.split_k.reduction_mode;
    });
    if (config.slices > 1) {
      steps.change([](Config& c) {
        c.slices /= 2;
        if (c.slices == 1) c.reduction_mode = ReductionMode::two_dispatches;
      });
      steps.change([](Config& c) {
        c.reduction_mode = c.reduction_mode == ReductionMode::two_dispatches
                               ? ReductionMode::last_arriver
                               : ReductionMode::two_dispatches;
      });
    }
    steps.change([](Config& c) { c.pack_a = !c.pack_a; });
    steps.change([](Config& c) { c.pack_b = !c.pack_b; });
  } else {
    steps.change([](Config& c) {
      c.schedule = c.schedule == Schedule::simple ? Schedule::persistent : Schedule::simple;
    });
  }
  if (problem.rows) {
    for (const RowStrategy strategy : {RowStrategy::resident, RowStrategy::panel,
                                       RowStrategy::recompute, RowStrategy::two_pass}) {
      // One whose workgroups wait in vain would take its turn only after it has given up.
      if (strategy == RowStrategy::panel && !is_scalar(problem.rows->op) &&
          !target.caps.workgroups_make_progress) {
        continue;
      }
      steps.change([&](Config& c) {
        c.rows = strategy;
        if (strategy == RowStrategy::panel) c.swizzle = 1;
      });
    }
  }
  if (static_shapes) steps.change([](Config& c) { c.static_shape = !c.static_shape; });
  return steps.take();
}

}  // namespace

std::vector<ProposedConfig> search_space(const TuningTable& table, const ResolvedProblem& problem,
                                         const Target& target,
                                         const std::function<bool(const Config&)>& allowed) {
  TuningTable space;
  space.timing = table.timing;
  space.rows = table.rows;
  space.refused = table.refused;
  for (const Config& config : grid(problem, target.caps)) {
    if (!has_legal_ranges(config)) continue;
    const auto rate = similar_rate(table, config, problem);
    if (!rate) continue;
    TuningRow row;
    row.config = config;
    row.rate = *rate;
    row.provenance = "derived: generated";
    space.rows.push_back(std::move(row));
  }
  std::vector<ProposedConfig> found;
  for (const ScoredRow& scored : rank(space, problem, target)) {
    if (allowed && !allowed(scored.config)) continue;
    const auto same = [&](const ProposedConfig& other) { return other.config == scored.config; };
    if (std::ranges::any_of(found, same) || !is_usable(scored.config, problem, target)) continue;
    found.push_back({scored.config, scored.cost});
  }
  return found;
}

std::vector<Config> neighbours(const TuningTable& table, const Config& config,
                               const ResolvedProblem& problem, const Target& target,
                               const NeighbourLimits& limits) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  const auto estimate = [&](const Config& c) {
    const auto rate = similar_rate(table, c, problem);
    return rate ? estimate_cost(c, *rate, table.timing, problem, target.caps) : unknown;
  };
  const double most = limits.within * estimate(config);
  std::vector<ProposedConfig> around;
  for (const Config& other : all_neighbours(config, problem, target, limits.static_shapes)) {
    const double cost = estimate(other);
    if (cost <= most || cost == unknown) around.push_back({other, cost});
  }
  std::ranges::stable_sort(around, {}, &ProposedConfig::estimate);
  std::vector<Config> out;
  out.reserve(around.size());
  for (const ProposedConfig& proposed : around) out.push_back(proposed.config);
  return out;
}

}  // namespace vkgemm::tuner
