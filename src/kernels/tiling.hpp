// tiling.hpp: how D is cut into tiles, and a grid of tiles into dispatches. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/arithmetic.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Sizes that legality has bounded.
inline std::uint32_t narrow(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

// Columns of D that one workgroup computes.
constexpr std::uint32_t d_tile_n(const Config& c, const ResolvedProblem& problem) noexcept {
  return problem.gated ? c.tile_n / 2 : c.tile_n;
}

// Tiles of D in one matrix of the batch; with groups of rows, as many as there may be at most.
std::uint64_t tile_count(const Config& config, const ResolvedProblem& problem);

// One vkCmdDispatch of x × y (× slices of K) workgroups: tiles first_tile… of batches first_batch…,
// or, persistent, all tiles of all batches.
struct Dispatch {
  std::uint32_t tiles = 0;
  std::uint32_t batches = 0;
  std::uint32_t first_tile = 0;
  std::uint32_t first_batch = 0;
  std::uint32_t slices = 1;
  bool operator==(const Dispatch&) const = default;
};

// Workgroups that the device launches at most along an axis.
std::uint64_t workgroup_limit(const Limits& limits, std::size_t axis);

// The number of dispatches that cut_grid() makes, without making them.
std::uint64_t dispatch_count(std::uint64_t tiles, std::uint64_t batches, const Limits& limits);

// Cuts a grid of tiles × batches into dispatches that respect maxComputeWorkGroupCount.
std::vector<Dispatch> cut_grid(std::uint64_t tiles, std::uint64_t batches, const Limits& limits);

}  // namespace vkgemm
