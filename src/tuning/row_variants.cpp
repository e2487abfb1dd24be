#include "tuning/row_variants.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/footprint.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/rows.hpp"

namespace vkgemm {

std::optional<RowVariant> resident_variant(const Config& config, const ResolvedProblem& problem,
                                           const DeviceCaps& caps) {
  const LoopDescriptor& loop = descriptor(config);
  if (!loop.keeps_values || problem.n > most_row_tile_n) return std::nullopt;
  const std::uint32_t width =
      std::max(least_row_tile_n, static_cast<std::uint32_t>(std::bit_ceil(problem.n)));
  Config c = config;
  c.rows = RowStrategy::resident;
  if (c.tile_n == width) return RowVariant{.config = c};
  const std::uint64_t area = std::uint64_t{c.tile_m} * c.tile_n;
  if (area % width != 0) return std::nullopt;
  std::optional<Config> next =
      loop.reshaped(c, {.m = static_cast<std::uint32_t>(area / width), .n = width}, problem, caps);
  while (next && shared_memory_bytes(*next, problem, caps) > caps.limits.max_shared_memory_bytes) {
    const auto smaller = descriptor(*next).smaller;
    next = smaller != nullptr ? smaller(*next) : std::nullopt;
  }
  if (!next) return std::nullopt;
  return RowVariant{.config = *next, .rate_factor = perimeter(config) / perimeter(*next)};
}

bool may_gain_rate(const ResolvedProblem& problem) {
  return problem.rows && problem.n <= most_row_tile_n;
}

std::vector<RowVariant> row_variants(const Config& config, const ResolvedProblem& problem,
                                     const DeviceCaps& caps) {
  if (!problem.rows) return {{.config = config}};
  std::vector<RowVariant> out;
  out.reserve(4);
  if (const auto resident = resident_variant(config, problem, caps)) out.push_back(*resident);
  const auto add = [&out](Config variant, RowStrategy strategy) {
    variant.rows = strategy;
    out.push_back({.config = variant});
  };
  add(config, RowStrategy::two_pass);
  if (!descriptor(config).keeps_values || config.slices > 1) return out;
  if (is_scalar(problem.rows->op)) {
    add(config, RowStrategy::panel);
    return out;
  }
  if (caps.workgroups_make_progress && caps.limits.compute_units != 0) {
    // Workgroups that wait for each other begin together: row by row of tiles.
    Config panel = config;
    panel.swizzle = 1;
    add(panel, RowStrategy::panel);
  }
  add(config, RowStrategy::recompute);
  return out;
}

}  // namespace vkgemm
