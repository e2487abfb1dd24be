#include "kernels/dispatch_limit.hpp"
#include "kernels/lowering.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "kernels/check.hpp"
#include "problem/resolve.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"
#include "tuning/rank.hpp"

namespace vkgemm {
namespace {

using test::gemm;
using test::resolved;

std::uint64_t workgroups(const Dispatch& d) {
  return std::uint64_t{d.tiles} * d.batches * d.slices;
}

// The kernel of what choose() takes, and how its dispatches were cut.
struct Limited {
  ScoredRow choice;
  DispatchPlan whole, cut;
  std::optional<DispatchTimes> times;
};
Limited limited(const Problem& problem, const DeviceCaps& caps) {
  const ResolvedProblem r = resolved(problem);
  const auto best = DeviceTables(caps).best(r, caps);
  EXPECT_TRUE(best);
  Limited out{.choice = *best, .whole = lower(best->config, r, caps), .cut = {}, .times = {}};
  out.cut = out.whole;
  out.times = limit_dispatches(out.cut, best->cost, best->config, r, caps);
  return out;
}

TEST(CutDispatches, TheSameTilesInTheSameOrder) {
  const std::vector<Dispatch> grids[] = {
      {{.tiles = 1, .batches = 1}},
      {{.tiles = 10, .batches = 7, .first_tile = 3, .first_batch = 2}},
      {{.tiles = 12, .batches = 1, .slices = 4}, {.tiles = 5, .batches = 1, .first_tile = 12}},
      {{.tiles = 3, .batches = 100}},
  };
  for (const auto& grid : grids) {
    for (const std::uint64_t most : {1u, 2u, 5u, 8u, 24u, 1000u}) {
      for (const std::uint64_t quantum : {1u, 3u}) {
        const auto pieces = cut_dispatches(grid, most, quantum);
        using Place = std::pair<std::uint64_t, std::uint64_t>;  // batch, tile
        const auto places = [](const std::vector<Dispatch>& dispatches) {
          std::vector<Place> out;
          for (const Dispatch& d : dispatches) {
            for (std::uint64_t batch = 0; batch < d.batches; ++batch) {
              for (std::uint64_t tile = 0; tile < d.tiles; ++tile) {
                out.push_back({d.first_batch + batch, d.first_tile + tile});
              }
            }
          }
          return out;
        };
        EXPECT_EQ(places(pieces), places(grid));
        for (const Dispatch& d : pieces) {
          EXPECT_LE(workgroups(d), std::max(most, quantum * d.slices)) << most << ' ' << quantum;
          // Only a matrix's last one may hold a part of what belongs together.
          const bool last = d.first_tile + d.tiles == grid.back().first_tile + grid.back().tiles ||
                            d.first_tile + d.tiles == grid.front().first_tile + grid.front().tiles;
          EXPECT_TRUE(d.tiles % quantum == 0 || last);
          EXPECT_EQ(d.slices, d.first_tile >= 12 ? 1u : grid.front().slices);
        }
      }
    }
  }
}

TEST(DispatchLimit, NoLimitCutsNothing) {
  const Limited whole = limited(gemm(8192, 8192, 8192), test::h200());
  EXPECT_FALSE(whole.times);
  EXPECT_EQ(whole.cut.product.dispatches, whole.whole.product.dispatches);
}

TEST(DispatchLimit, LongProductsAreCutIntoShortOnes) {
  Problem problem = gemm(8192, 8192, 8192);
  std::size_t dispatches = 0;
  for (const double limit : {100.0, 2.0, 1.0, 0.25}) {
    problem.max_dispatch_ms = limit;
    const Limited out = limited(problem, test::h200());
    ASSERT_TRUE(out.times);
    EXPECT_TRUE(out.times->kept) << limit;
    EXPECT_LE(out.times->longest, 1000.0 * limit);
    const std::size_t now = out.cut.product.dispatches.size();
    if (limit == 100.0) {
      EXPECT_EQ(now, 1u);
    } else {
      EXPECT_GT(now, dispatches) << limit;
      // Not in more pieces than are needed, but for what rounding down to whole rounds costs.
      EXPECT_LE(static_cast<double>(now), 1.5 * out.choice.cost / (1000.0 * limit) + 1.0);
    }
    dispatches = now;
  }
}

// Fewer workgroups than run at the same time take as long.
TEST(DispatchLimit, PiecesFillTheDevice) {
  Problem problem = gemm(8192, 8192, 8192);
  problem.max_dispatch_ms = 1e-6;
  const Limited out = limited(problem, test::h200());
  EXPECT_FALSE(out.times->kept);
  EXPECT_GT(out.cut.product.dispatches.size(), 1u);
  for (const Dispatch& d : out.cut.product.dispatches) {
    const bool last = &d == &out.cut.product.dispatches.back();
    EXPECT_TRUE(last || workgroups(d) >= 132) << workgroups(d);
  }
}

// As many as a recording may have, whatever the limit.
TEST(DispatchLimit, NotTooMany) {
  DeviceCaps caps = test::navi31();
  caps.limits.compute_units = 1;
  Problem problem = gemm(100000, 100000, 64, DataType::f32);
  problem.max_dispatch_ms = 1e-9;
  const ResolvedProblem r = resolved(problem);
  for (const char* const text :
       {"fma:tile=32x32x16,fragment=4x4", "fma:tile=64x64x16,fragment=8x8"}) {
    for (const std::uint64_t batch : {1u, 3u}) {
      ResolvedProblem many = r;
      many.batch = batch;
      const Config config = test::config(text);
      DispatchPlan kernel = lower(config, many, caps);
      limit_dispatches(kernel, 1e9, config, many, caps);
      EXPECT_GT(kernel.product.dispatches.size(), 5000u);
      EXPECT_LE(kernel.product.dispatches.size(), most_dispatches);
    }
  }
}

// Each step of a kernel: copies, sums, second passes.
TEST(DispatchLimit, AllStepsAreCut) {
  Problem sliced = gemm(2048, 2048, 8192);
  sliced.split_k = {.slices = 8, .reduction_mode = ReductionMode::two_dispatches};
  Problem rows = gemm(131072, 2048, 512);
  rows.row_reduction = RowReduction{.op = RowOp::rms_norm};
  for (Problem problem : {sliced, rows}) {
    problem.max_dispatch_ms = 0.05;
    const Limited out = limited(problem, test::h200());
    ASSERT_FALSE(out.cut.after.empty());
    EXPECT_GT(out.cut.product.dispatches.size(), out.whole.product.dispatches.size());
    for (std::size_t i = 0; i < out.cut.after.size(); ++i) {
      EXPECT_GT(out.cut.after[i].dispatches.size(), out.whole.after[i].dispatches.size());
    }
  }
}

// Workgroups that wait for each other are begun by one dispatch.
TEST(DispatchLimit, PanelsStayWhole) {
  const DeviceCaps caps = test::h200();
  Problem problem = gemm(8192, 4096, 512);
  problem.row_reduction = RowReduction{.op = RowOp::rms_norm};
  problem.max_dispatch_ms = 1e-6;
  const ResolvedProblem r = resolved(problem);
  int panels = 0;
  for (const ScoredRow& row : DeviceTables(caps).rank(r, caps)) {
    if (row.config.rows != RowStrategy::panel) continue;
    DispatchPlan kernel = lower(row.config, r, caps);
    limit_dispatches(kernel, row.cost, row.config, r, caps);
    EXPECT_GT(kernel.product.dispatches.size(), 1u);
    for (const Dispatch& d : kernel.product.dispatches) {
      EXPECT_EQ(d.tiles % (4096 / row.config.tile_n), 0u) << to_string(row.config);
    }
    ++panels;
  }
  EXPECT_GT(panels, 0);
}

TEST(DispatchLimit, WhatCannotBeCutIsNotChosen) {
  const DeviceCaps caps = test::h200();
  Problem problem = gemm(64, 64, 65536, DataType::f32);
  problem.split_k.reduction_mode = ReductionMode::device_barrier;
  problem.split_k.slices = 64;
  const DeviceTables tables(caps);
  ASSERT_TRUE(tables.best(resolved(problem), caps));
  problem.max_dispatch_ms = 1000.0;
  EXPECT_TRUE(tables.best(resolved(problem), caps));
  problem.max_dispatch_ms = 0.001;
  EXPECT_FALSE(tables.best(resolved(problem), caps));
  EXPECT_NE(
      tables.why_nothing_is_legal(resolved(problem), caps).front().find("max_dispatch_ms is 0.001"),
      std::string::npos);
  problem.split_k.reduction_mode = ReductionMode::last_arriver;
  EXPECT_TRUE(tables.best(resolved(problem), caps));

  Problem grouped = gemm(65536, 4096, 4096);
  grouped.grouping = Grouping{.groups = 8};
  grouped.max_dispatch_ms = 0.5;
  Config config = tables.best(resolved(grouped), caps)->config;
  EXPECT_FALSE(exceeds_dispatch_limit(config, 501.0, resolved(grouped)));
  config.schedule = Schedule::persistent;
  EXPECT_TRUE(exceeds_dispatch_limit(config, 501.0, resolved(grouped)));
  EXPECT_FALSE(exceeds_dispatch_limit(config, 499.0, resolved(grouped)));
}

// Without an estimate: as short as can be.
TEST(DispatchLimit, NoEstimate) {
  const DeviceCaps caps = test::h200();
  Problem problem = gemm(4096, 4096, 512);
  problem.max_dispatch_ms = 1000.0;
  const ResolvedProblem r = resolved(problem);
  const Config config = DeviceTables(caps).best(r, caps)->config;
  DispatchPlan kernel = lower(config, r, caps);
  const auto times = limit_dispatches(kernel, std::nullopt, config, r, caps);
  EXPECT_FALSE(times->kept);
  EXPECT_GT(kernel.product.dispatches.size(), 1u);
}

// A device that takes so many times as long as estimated gets pieces that are as much shorter.
TEST(DispatchLimit, TheEstimateIsScaled) {
  const DeviceCaps caps = test::h200();
  Problem problem = gemm(8192, 8192, 8192);
  problem.max_dispatch_ms = 100.0;
  const Limited whole = limited(problem, caps);
  EXPECT_EQ(whole.cut.product.dispatches.size(), 1u);
  problem.estimate_scale = 74.0;
  const Limited out = limited(problem, caps);
  EXPECT_GT(out.cut.product.dispatches.size(), 1u);
  EXPECT_TRUE(out.times->kept);
  EXPECT_LE(out.times->longest, 100e3);
  const auto pieces = static_cast<double>(out.cut.product.dispatches.size());
  EXPECT_GE(out.times->longest * pieces, 74.0 * out.choice.cost * 0.99);

  Problem unknown = gemm(64, 64, 65536, DataType::f32);
  unknown.max_dispatch_ms = 1000.0;
  unknown.estimate_scale = std::numeric_limits<double>::infinity();
  unknown.split_k = {.slices = 64, .reduction_mode = ReductionMode::device_barrier};
  EXPECT_FALSE(DeviceTables(caps).best(resolved(unknown), caps))
      << "what can't be cut may take for ever";
  for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    problem.estimate_scale = wrong;
    const auto result = resolve(problem);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("estimate_scale is "), std::string::npos);
  }
}

// Tables say whose times an estimate rests on.
TEST(DispatchLimit, TheEstimatesSourceIsKnown) {
  const auto source = [](const DeviceCaps& caps) {
    const DeviceTables tables(caps);
    const ResolvedProblem r = resolved(gemm(512, 512, 512));
    return std::string(tables.source_of_estimate(tables.best(r, caps)->config, r));
  };
  EXPECT_TRUE(source(test::h200()).starts_with("measured: NVIDIA H200"));
  for (DeviceCaps caps : {test::navi31(), test::battlemage(), test::lavapipe()}) {
    EXPECT_TRUE(source(caps).starts_with("derived: ")) << caps.name;
    caps.architecture = "generic";
    EXPECT_TRUE(source(caps).starts_with("derived: ")) << caps.name;
  }
}

TEST(DispatchLimit, IsANumber) {
  for (const double wrong :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    Problem problem = gemm(16, 16, 16);
    problem.max_dispatch_ms = wrong;
    const auto result = resolve(problem);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("max_dispatch_ms is "), std::string::npos);
  }
}

}  // namespace
}  // namespace vkgemm
