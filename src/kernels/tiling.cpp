#include "kernels/tiling.hpp"

#include <algorithm>

namespace vkgemm {
namespace {

// The least that Vulkan allows, should a limit be unknown.
constexpr std::uint32_t least_workgroup_count = 65535;

}  // namespace

std::uint64_t workgroup_limit(const Limits& limits, std::size_t axis) {
  const std::uint32_t limit = limits.max_workgroup_count[axis];
  return limit != 0 ? limit : least_workgroup_count;
}

std::uint64_t tile_count(const Config& config, const ResolvedProblem& problem) {
  const std::uint64_t rows = problem.is_grouped(GroupAlong::m)
                                 ? problem.group_slots(problem.m, config.tile_m)
                                 : divided_up(problem.m, config.tile_m);
  return rows * divided_up(problem.n, d_tile_n(config, problem));
}

std::uint64_t dispatch_count(std::uint64_t tiles, std::uint64_t batches, const Limits& limits) {
  return divided_up(tiles, workgroup_limit(limits, 0)) *
         divided_up(batches, workgroup_limit(limits, 1));
}

std::vector<Dispatch> cut_grid(std::uint64_t tiles, std::uint64_t batches, const Limits& limits) {
  const std::uint64_t most_tiles = workgroup_limit(limits, 0);
  const std::uint64_t most_batches = workgroup_limit(limits, 1);
  std::vector<Dispatch> out;
  if (tiles == 0 || batches == 0) return out;
  out.reserve(static_cast<std::size_t>(dispatch_count(tiles, batches, limits)));
  for (std::uint64_t batch = 0; batch < batches; batch += most_batches) {
    for (std::uint64_t tile = 0; tile < tiles; tile += most_tiles) {
      out.push_back({.tiles = narrow(std::min(most_tiles, tiles - tile)),
                     .batches = narrow(std::min(most_batches, batches - batch)),
                     .first_tile = narrow(tile),
                     .first_batch = narrow(batch)});
    }
  }
  return out;
}

}  // namespace vkgemm
