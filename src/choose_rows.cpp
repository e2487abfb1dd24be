#include "choose_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "legality.hpp"
#include "lowering.hpp"
#include "row_reduction.hpp"

namespace vkgemm {
namespace {

// What a round of tiles takes longer when its rows are reduced, with exponentials of every value,
// and when workgroups wait for each other, in times of a tile's own overhead. Where two are
// resident they cover for one another. Fitted with nvidia_sm90's timing, after H200, driver
// 580.159.04, 2026-11-22, in rounds of 128x128 (two resident) and 128x256 (one): rms_norm in a tile
// 0.9 us; in panels 4.7 to 5.5 and 5.5 to 8.6 us; softmax 5.6 and 8.5 us more.
constexpr double reduce_tiles = 0.5;
constexpr double exponential_tiles = 4.9;
constexpr double wait_tiles = 2.5;
constexpr double covered = 0.63;

// Values between two passes come and go at this part of the rate of split-K's partial results, and
// their parts follow each other behind barriers (same runs: 3.74 ms at 131072x4096x512 in 32 parts,
// 7.64 at 131072x2048x4096 in 16; the products alone 2.26 and 6.91).
// With exponentials the second kernel is bound by them (4.45 and 4.50 ms at 131072x2048x2048,
// panels of 128x128 4.17).
constexpr double value_rate = 0.62;
constexpr double exponential_values = 1.2;
constexpr double kilobyte = 1024.0;

bool arrange_subgroups(Config& c) {
  const std::uint32_t subgroups = c.subgroups_m * c.subgroups_n;
  bool found = false;
  double best = 0.0;
  Config out = c;
  for (std::uint32_t along_n = 1; along_n <= subgroups; along_n *= 2) {
    if (subgroups % along_n != 0) continue;
    Config tried = c;
    tried.subgroups_n = along_n;
    tried.subgroups_m = subgroups / along_n;
    if (c.tile_m % (tried.subgroups_m * c.fragment_m) != 0 ||
        c.tile_n % (along_n * c.fragment_n) != 0) {
      continue;
    }
    const double cost = perimeter(tried);
    if (found && cost >= best) continue;
    found = true;
    best = cost;
    out = tried;
  }
  c = out;
  return found;
}

}  // namespace

double perimeter(const Config& c) {
  const auto inverse = [](double m, double n) { return 1.0 / m + 1.0 / n; };
  const double tile = inverse(c.tile_m, c.tile_n);
  if (c.path == Path::nv) return 2.0 * tile;  // the driver divides it
  const double rows = c.path == Path::khr ? c.tile_m / c.subgroups_m : c.fragment_m;
  const double cols = c.path == Path::khr ? c.tile_n / c.subgroups_n : c.fragment_n;
  return tile + inverse(rows, cols);
}

void cut_epilogue(Config& c, const ResolvedProblem& problem, const DeviceCaps& caps) {
  const std::uint32_t fragments = c.tile_m / (c.subgroups_m * c.fragment_m);
  std::uint64_t least = UINT64_MAX;
  for (std::uint32_t subtiles = 1; subtiles <= fragments; ++subtiles) {
    if (fragments % subtiles != 0) continue;
    Config tried = c;
    tried.subtiles = subtiles;
    const std::uint64_t bytes = shared_memory_bytes(tried, problem, caps);
    if (bytes >= least) continue;
    least = bytes;
    c.subtiles = subtiles;
  }
}

std::optional<RowVariant> resident_variant(const Config& config, const ResolvedProblem& problem,
                                           const DeviceCaps& caps) {
  if (config.path == Path::nv || is_thin(config) || problem.n > most_row_tile_n) {
    return std::nullopt;
  }
  // A loaded table's row may say anything.
  if (!has_legal_ranges(config, problem, caps)) return std::nullopt;
  const std::uint32_t width =
      std::max(least_row_tile_n, static_cast<std::uint32_t>(std::bit_ceil(problem.n)));
  Config c = config;
  c.rows = RowStrategy::resident;
  if (c.tile_n == width) return RowVariant{.config = c};
  const std::uint64_t area = std::uint64_t{c.tile_m} * c.tile_n;
  if (area % width != 0) return std::nullopt;
  c.tile_m = static_cast<std::uint32_t>(area / width);
  c.tile_n = width;
  if (c.path == Path::khr) {
    if (!arrange_subgroups(c)) return std::nullopt;
    cut_epilogue(c, problem, caps);
  } else if (c.tile_m % c.fragment_m != 0) {
    return std::nullopt;
  }
  while (shared_memory_bytes(c, problem, caps) > caps.limits.max_shared_memory_bytes) {
    // A ring first becomes one stage.
    if (c.stages > 1)
      c.stages = 1;
    else if (c.tile_k >= 2 * c.fragment_k && c.tile_k % (2 * c.fragment_k) == 0)
      c.tile_k /= 2;
    else
      return std::nullopt;
  }
  return RowVariant{.config = c, .rate_factor = perimeter(config) / perimeter(c)};
}

std::vector<RowVariant> row_variants(const Config& config, const ResolvedProblem& problem,
                                     const DeviceCaps& caps) {
  if (!problem.rows) return {{.config = config}};
  std::vector<RowVariant> out;
  if (const auto resident = resident_variant(config, problem, caps)) out.push_back(*resident);
  const auto add = [&out](Config variant, RowStrategy strategy) {
    variant.rows = strategy;
    out.push_back({.config = variant});
  };
  add(config, RowStrategy::two_pass);
  if (config.path == Path::nv || is_thin(config) || config.slices > 1) return out;
  if (is_scalar(problem.rows->op)) {
    add(config, RowStrategy::panel);
    return out;
  }
  if (caps.workgroups_make_progress && caps.limits.compute_units != 0) {
    // Those that wait for each other begin together: row by row of tiles.
    Config panel = config;
    panel.swizzle = 1;
    add(panel, RowStrategy::panel);
  }
  add(config, RowStrategy::recompute);
  return out;
}

double row_cost(const Config& config, const ResolvedProblem& problem, const TimingModel& timing,
                double product, double rounds, double resident) {
  if (config.rows == RowStrategy::none) return 0.0;
  const RowOp op = problem.rows->op;
  const double exponentials = op == RowOp::softmax     ? exponential_tiles
                              : op == RowOp::logsumexp ? 0.5 * exponential_tiles
                                                       : 0.0;
  const double exposed = rounds * timing.tile * (resident >= 2.0 ? covered : 1.0);
  const double reduce = exposed * (reduce_tiles + exponentials);
  switch (config.rows) {
    case RowStrategy::none:
      break;
    case RowStrategy::resident:
      return reduce;
    case RowStrategy::panel:
      return reduce + timing.sum + (is_scalar(op) ? 0.0 : exposed * wait_tiles);
    case RowStrategy::recompute:
      return product + 2.0 * reduce + timing.sum;
    case RowStrategy::two_pass: {
      const double values = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                            static_cast<double>(problem.batch) * 2.0 * sizeof(float);
      const auto parts = static_cast<double>(row_parts(config, problem).count());
      const double slower = exponentials > 0.0 ? exponential_values : 1.0;
      return slower * values / kilobyte / (value_rate * timing.workspace) +
             (2.0 * parts - 1.0) * timing.sum;
    }
  }
  return 0.0;
}

}  // namespace vkgemm
