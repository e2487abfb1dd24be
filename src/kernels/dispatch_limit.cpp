#include "kernels/dispatch_limit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/check.hpp"
#include "kernels/lowering.hpp"
#include "kernels/occupancy.hpp"
#include "kernels/parts/rows.hpp"

namespace vkgemm {
namespace {

std::uint64_t workgroups(const Dispatch& d) {
  return std::uint64_t{d.tiles} * d.batches * d.slices;
}

std::uint64_t workgroups(const std::vector<Dispatch>& dispatches) {
  std::uint64_t sum = 0;
  for (const Dispatch& d : dispatches) sum += workgroups(d);
  return sum;
}

// Tiles of panels that wait for each other stay together; they are taken in bands of panels.
std::uint64_t inseparable_tiles(const Config& config, const ResolvedProblem& problem) {
  if (!problem.rows || config.rows != RowStrategy::panel) return 1;
  return std::uint64_t{tile_columns(config, problem)} * config.swizzle;
}

}  // namespace

bool can_be_cut(const Config& config) noexcept {
  return config.schedule != Schedule::persistent &&
         !(config.slices > 1 && config.reduction_mode == ReductionMode::device_barrier);
}

bool exceeds_dispatch_limit(const Config& config, double microseconds,
                            const ResolvedProblem& problem) noexcept {
  const double limit = problem.max_dispatch_us;
  return limit > 0.0 && problem.estimate_scale * microseconds > limit && !can_be_cut(config);
}

std::vector<Dispatch> cut_dispatches(const std::vector<Dispatch>& dispatches,
                                     std::uint64_t most_workgroups, std::uint64_t quantum) {
  std::vector<Dispatch> out;
  for (const Dispatch& whole : dispatches) {
    const std::uint64_t tiles_at_once =
        std::max(most_workgroups / whole.slices / quantum, std::uint64_t{1}) * quantum;
    const std::uint64_t most_tiles = std::min<std::uint64_t>(tiles_at_once, whole.tiles);
    const std::uint64_t most_batches = std::max(tiles_at_once / whole.tiles, std::uint64_t{1});
    for (std::uint64_t batch = 0; batch < whole.batches; batch += most_batches) {
      for (std::uint64_t tile = 0; tile < whole.tiles; tile += most_tiles) {
        Dispatch piece = whole;
        piece.first_tile += narrow(tile);
        piece.first_batch += narrow(batch);
        piece.tiles = narrow(std::min(most_tiles, whole.tiles - tile));
        piece.batches = narrow(std::min(most_batches, whole.batches - batch));
        out.push_back(piece);
      }
    }
  }
  return out;
}

std::optional<DispatchTimes> limit_dispatches(DispatchPlan& kernel,
                                              std::optional<double> microseconds,
                                              const Config& config, const ResolvedProblem& problem,
                                              const Target& target) {
  const double limit = problem.max_dispatch_us;
  if (!(limit > 0.0)) return std::nullopt;
  constexpr double unknown = std::numeric_limits<double>::infinity();
  const double chunks = kernel.chunks ? static_cast<double>(kernel.chunks->count()) : 1.0;
  // The time of one step: no more than that of all of them. A part of the rows takes its share.
  const double time = problem.estimate_scale * microseconds.value_or(unknown) / chunks;
  const std::uint64_t before = workgroups(kernel.product.dispatches);
  if (time > limit) {
    const std::uint64_t together = resident_workgroups(config, target.timing, problem, target.caps);
    const std::uint64_t quantum = inseparable_tiles(config, problem);
    // The most pieces of each step of each part, so that a recording has no more than legality
    // allows. The last tiles of each matrix are a piece, and pieces are rounded down to whole
    // quanta: twice as many for each.
    const double steps =
        static_cast<double>(kernel.before.size() + 1 + kernel.after.size()) * chunks;
    const auto most_pieces =
        std::max(static_cast<std::uint64_t>(most_dispatches / (4.0 * steps)), std::uint64_t{1});
    const auto cut = [&](std::vector<Dispatch>& dispatches) {
      const std::uint64_t all = workgroups(dispatches);
      const auto share = std::max(
          static_cast<std::uint64_t>(static_cast<double>(all) * (limit / time)), all / most_pieces);
      dispatches = cut_dispatches(dispatches,
                                  std::max(share / together, std::uint64_t{1}) * together, quantum);
    };
    const auto cut_step = [&](Step& step) {
      cut(step.dispatches);
      cut(step.last_dispatches);
    };
    for (Step& step : kernel.before) cut_step(step);
    if (can_be_cut(config)) cut_step(kernel.product);
    for (Step& step : kernel.after) cut_step(step);
  }
  std::uint64_t most = 0;
  for (const Dispatch& d : kernel.product.dispatches) most = std::max(most, workgroups(d));
  DispatchTimes times;
  times.longest =
      before == 0 ? 0.0 : time * static_cast<double>(most) / static_cast<double>(before);
  times.kept = times.longest <= limit;
  return times;
}

}  // namespace vkgemm
