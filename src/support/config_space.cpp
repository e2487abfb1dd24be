#include "support/config_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "choose.hpp"
#include "choose_rows.hpp"
#include "kernel.hpp"
#include "legality.hpp"
#include "nearest.hpp"
#include "pack.hpp"

namespace vkgemm::support {
namespace {

bool is_cpu(const DeviceCaps& caps) { return caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU; }

// Tiles that hang over the edges of a matrix by more than this factor are for other problems.
constexpr std::uint64_t most_overhang = 2;

class Grid {
 public:
  Grid(const ResolvedProblem& problem, const DeviceCaps& caps) : problem_(problem), caps_(caps) {}

  std::vector<Config> make() {
    if (caps_.nv.available) add_nv();
    if (caps_.khr.available) add_khr();
    add_fma();
    add_thin();
    return std::move(configs_);
  }

 private:
  // Legality is asked of what rank() makes of it; but not for what cannot be.
  void add(const Config& config) {
    if (config.tile_m / most_overhang > problem_.typical_m() ||
        config.tile_n / most_overhang > problem_.product_n()) {
      return;
    }
    configs_.push_back(config);
  }

  void add_nv() {
    for (const FlexibleShape& shape : caps_.flexible_shapes) {
      if (shape.scope != MatrixScope::workgroup || shape.input != problem_.a.type) continue;
      for (const std::uint32_t m : {32u, 64u, 128u, 256u}) {
        for (const std::uint32_t n : {32u, 64u, 128u, 256u}) {
          for (const std::uint32_t k : {16u, 32u, 64u}) {
            add({.path = Path::nv,
                 .tile_m = m,
                 .tile_n = n,
                 .tile_k = k,
                 .invocations = shape.invocations,
                 .unroll_k = 256 / k});
          }
        }
      }
    }
  }

  void add_khr() {
    for (const FragmentShape& shape : caps_.fragment_shapes) {
      if (shape.input != problem_.a.type || shape.accumulator != DataType::f32) continue;
      for (std::uint32_t size = std::max(caps_.limits.min_subgroup_size, 1u);
           size <= caps_.limits.max_subgroup_size; size *= 2) {
        add_khr(shape, size);
      }
    }
  }

  void add_khr(const FragmentShape& shape, std::uint32_t subgroup_size) {
    constexpr std::pair<std::uint32_t, std::uint32_t> arrangements[] = {
        {1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 4}, {4, 1}, {2, 4}, {4, 2}, {4, 4}};
    for (const auto& [along_m, along_n] : arrangements) {
      for (const std::uint32_t rows : {1u, 2u, 4u, 8u}) {
        for (const std::uint32_t columns : {1u, 2u, 4u, 8u}) {
          for (const std::uint32_t depth : {1u, 2u, 4u}) {
            Config c{.path = Path::khr,
                     .tile_m = shape.m * along_m * rows,
                     .tile_n = shape.n * along_n * columns,
                     .tile_k = shape.k * depth,
                     .fragment_m = shape.m,
                     .fragment_n = shape.n,
                     .fragment_k = shape.k,
                     .subgroups_m = along_m,
                     .subgroups_n = along_n,
                     .subgroup_size = subgroup_size,
                     .invocations = along_m * along_n * subgroup_size,
                     .peel = !is_cpu(caps_)};
            cut_epilogue(c, problem_, caps_);
            add(c);
            if (depth != 2) continue;
            c.stages = 3;
            cut_epilogue(c, problem_, caps_);
            add(c);
          }
        }
      }
    }
  }

  void add_fma() {
    for (const auto& [rows, columns] : {std::pair{4u, 4u}, {4u, 8u}, {8u, 4u}, {8u, 8u}}) {
      for (const std::uint32_t m : {8u, 16u, 32u, 64u, 128u, 256u}) {
        for (const std::uint32_t n : {8u, 16u, 32u, 64u, 128u, 256u}) {
          for (const std::uint32_t k : {8u, 16u, 32u}) {
            if (m < rows || n < columns) continue;
            const std::uint32_t invocations = m / rows * (n / columns);
            if (invocations < 32) continue;
            add({.path = Path::fma,
                 .tile_m = m,
                 .tile_n = n,
                 .tile_k = k,
                 .fragment_m = rows,
                 .fragment_n = columns,
                 .fragment_k = 1,
                 .invocations = invocations,
                 .peel = !is_cpu(caps_)});
          }
        }
      }
    }
  }

  void add_thin() {
    for (const std::uint32_t m : {1u, 2u, 4u, 8u}) {
      for (const std::uint32_t n : {8u, 16u, 32u, 64u, 128u}) {
        for (const std::uint32_t k : {64u, 128u, 256u, 512u, 1024u}) {
          const std::uint32_t invocations = n / THIN_PIECE * (k / THIN_PIECE);
          if (invocations < 32) continue;
          add({.path = Path::fma,
               .tile_m = m,
               .tile_n = n,
               .tile_k = k,
               .fragment_m = m,
               .fragment_n = THIN_PIECE,
               .fragment_k = THIN_PIECE,
               .invocations = invocations});
        }
      }
    }
  }

  const ResolvedProblem& problem_;
  const DeviceCaps& caps_;
  std::vector<Config> configs_;
};

void set_khr_invocations(Config& c) {
  c.invocations = c.subgroups_m * c.subgroups_n * c.subgroup_size;
}

void set_fma_invocations(Config& c) {
  if (c.fragment_m == 0 || c.fragment_n == 0) return;
  c.invocations = c.tile_m / c.fragment_m * (c.tile_n / c.fragment_n) *
                  (is_thin(c) ? c.tile_k / c.fragment_k : 1);
}

class Steps {
 public:
  Steps(const Config& from, const ResolvedProblem& problem, const DeviceCaps& caps)
      : from_(from), problem_(problem), caps_(caps) {}

  // The configuration after a change, with what follows from it.
  template <class Change>
  void change(const Change& change) {
    Config c = from_;
    change(c);
    // Halves of one.
    const bool khr_holds = c.path != Path::khr || c.subgroups_m * c.subgroups_n != 0;
    if (c.tile_m * c.tile_n * c.tile_k == 0 || !khr_holds) return;
    if (c.path == Path::fma) set_fma_invocations(c);
    if (c.path == Path::khr) set_khr_invocations(c);
    add(c);
    if (c.path != Path::khr || (c.tile_m == from_.tile_m && c.stages == from_.stages &&
                                c.tile_k == from_.tile_k && c.tile_n == from_.tile_n)) {
      return;
    }
    cut_epilogue(c, problem_, caps_);
    add(c);
  }

  void scale(std::uint32_t Config::*field) {
    change([&](Config& c) { c.*field *= 2; });
    if (from_.*field % 2 == 0) change([&](Config& c) { c.*field /= 2; });
  }

  std::vector<Config> take() { return std::move(found_); }

 private:
  void add(const Config& c) {
    if (c == from_ || std::ranges::find(found_, c) != found_.end()) return;
    if (is_usable(c, problem_, caps_)) found_.push_back(c);
  }

  const Config& from_;
  const ResolvedProblem& problem_;
  const DeviceCaps& caps_;
  std::vector<Config> found_;
};

void add_tile_steps(Steps& steps, const Config& from) {
  steps.scale(&Config::tile_m);
  steps.scale(&Config::tile_n);
  steps.scale(&Config::tile_k);
  // As large, of another form.
  steps.change([](Config& c) { c.tile_m *= 2, c.tile_n /= 2; });
  steps.change([](Config& c) { c.tile_m /= 2, c.tile_n *= 2; });
  if (from.path == Path::khr) {
    for (const auto field :
         {&Config::subgroups_m, &Config::subgroups_n, &Config::subgroup_size, &Config::subtiles}) {
      steps.scale(field);
    }
    steps.change([](Config& c) { c.subgroups_m *= 2, c.subgroups_n /= 2; });
    steps.change([](Config& c) { c.subgroups_m /= 2, c.subgroups_n *= 2; });
    // With as much work for each subgroup.
    steps.change([](Config& c) { c.tile_m *= 2, c.subgroups_m *= 2; });
    steps.change([](Config& c) { c.tile_n *= 2, c.subgroups_n *= 2; });
    steps.change([](Config& c) { c.tile_m /= 2, c.subgroups_m /= 2; });
    steps.change([](Config& c) { c.tile_n /= 2, c.subgroups_n /= 2; });
    steps.change([](Config& c) {
      c.stages = c.stages == 1 ? 3 : 1;
      if (c.stages == 3) c.tile_k = 2 * c.fragment_k;
    });
  } else if (from.path == Path::nv) {
    steps.scale(&Config::invocations);
    steps.scale(&Config::unroll_k);
  } else if (is_thin(from)) {
    steps.change([](Config& c) { c.tile_m *= 2, c.fragment_m *= 2; });
    steps.change([](Config& c) { c.tile_m /= 2, c.fragment_m /= 2; });
  } else {
    steps.scale(&Config::fragment_m);
    steps.scale(&Config::fragment_n);
  }
}

std::vector<Config> all_neighbours(const Config& config, const ResolvedProblem& problem,
                                   const DeviceCaps& caps, bool static_shapes) {
  Steps steps(config, problem, caps);
  add_tile_steps(steps, config);
  steps.scale(&Config::swizzle);
  if (config.swizzle != 1) steps.change([](Config& c) { c.swizzle = 1; });
  if (config.path != Path::nv) steps.change([](Config& c) { c.peel = !c.peel; });
  if (!problem.grouping) {
    steps.change([&](Config& c) {
      c.slices *= 2;
      if (problem.split_k.tier) c.tier = *problem.split_k.tier;
    });
    if (config.slices > 1) {
      steps.change([](Config& c) {
        c.slices /= 2;
        if (c.slices == 1) c.tier = SplitTier::two_dispatches;
      });
      steps.change([](Config& c) {
        c.tier = c.tier == SplitTier::two_dispatches ? SplitTier::last_arriver
                                                     : SplitTier::two_dispatches;
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
          !caps.workgroups_make_progress) {
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
                                         const DeviceCaps& caps, const SpaceLimits& limits) {
  TuningTable space;
  space.timing = table.timing;
  space.rows = table.rows;
  space.refused = table.refused;
  for (const Config& config : Grid(problem, caps).make()) {
    const auto rate = similar_rate(table, config, problem);
    if (!rate) continue;
    TuningRow row;
    row.config = config;
    row.rate = *rate;
    row.provenance = "derived: generated";
    space.rows.push_back(std::move(row));
  }
  std::vector<ProposedConfig> found;
  for (const ScoredRow& scored : rank(space, problem, caps)) {
    if (limits.allowed && !limits.allowed(scored.config)) continue;
    if (found.size() >= limits.most) break;
    if (!found.empty() && scored.cost > limits.within * found.front().estimate) break;
    const auto same = [&](const ProposedConfig& other) { return other.config == scored.config; };
    if (std::ranges::any_of(found, same) || !is_usable(scored.config, problem, caps)) continue;
    found.push_back({scored.config, scored.cost});
  }
  return found;
}

std::vector<Config> neighbours(const TuningTable& table, const Config& config,
                               const ResolvedProblem& problem, const DeviceCaps& caps,
                               const NeighbourLimits& limits) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  const auto estimate = [&](const Config& c) {
    const auto rate = similar_rate(table, c, problem);
    return rate ? estimate_cost(c, *rate, table.timing, problem, caps) : unknown;
  };
  const double most = limits.within * estimate(config);
  std::vector<ProposedConfig> around;
  for (const Config& other : all_neighbours(config, problem, caps, limits.static_shapes)) {
    const double cost = estimate(other);
    if (cost <= most || cost == unknown) around.push_back({other, cost});
  }
  std::ranges::stable_sort(around, {}, &ProposedConfig::estimate);
  std::vector<Config> out;
  out.reserve(around.size());
  for (const ProposedConfig& proposed : around) out.push_back(proposed.config);
  return out;
}

}  // namespace vkgemm::support
