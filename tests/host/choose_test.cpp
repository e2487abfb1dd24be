#include "kernels/lowering.hpp"
#include "self_test/self_test.hpp"
#include "tuning/rank.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"
#include "embedded/embedded.hpp"
#include "kernels/dispatch_plan.hpp"
#include "kernels/legality.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::resolved;

// A device that does nothing but products.
constexpr TimingModel no_overhead() {
  constexpr double fast = 1e12;
  return {.launch = 0,
          .tile = 0,
          .store = fast,
          .latency = 0,
          .first_latency = 0,
          .ring_latency = 0,
          .load = fast,
          .memory = fast,
          .sum = 0,
          .workspace = fast};
}

TuningRow row_of(std::string_view config, double rate) {
  TuningRow row;
  row.config = test::config(config);
  row.rate = rate;
  row.provenance = "derived: for a test";
  return row;
}

Path best_path(const Problem& problem, const DeviceCaps& caps) {
  const auto ranked = rank(built_in_table("generic"), resolved(problem), caps);
  EXPECT_FALSE(ranked.empty()) << caps.name;
  return ranked.empty() ? Path::fma : ranked.front().row->config.path();
}

TEST(Rank, SomethingIsLegalForEveryProblemOnEveryDevice) {
  const std::uint64_t sizes[] = {1, 7, 16, 129, 4096};
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
      for (const std::uint64_t m : sizes) {
        for (const std::uint64_t n : sizes) {
          for (const std::uint64_t k : {0u, 1u, 4096u}) {
            for (int layouts = 0; layouts < 4; ++layouts) {
              Problem p = gemm(m, n, k, type);
              p.a.layout = static_cast<Layout>(layouts % 2);
              p.b.layout = static_cast<Layout>(layouts / 2);
              const ResolvedProblem r = resolved(p);
              const auto ranked = rank(built_in_table("generic"), r, caps);
              ASSERT_FALSE(ranked.empty()) << caps.name << " " << m << "x" << n << "x" << k;
              for (std::size_t i = 0; i < ranked.size(); ++i) {
                ASSERT_TRUE(is_legal(ranked[i].config, r, caps));
                ASSERT_TRUE(std::isfinite(ranked[i].cost));
                if (i > 0) {
                  ASSERT_LE(ranked[i - 1].cost, ranked[i].cost);
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(Rank, PathsFollowWhatTheDeviceCan) {
  EXPECT_NE(best_path(gemm(4096, 4096, 4096), test::h200()), Path::fma);
  EXPECT_EQ(best_path(gemm(4096, 4096, 4096), test::navi31()), Path::khr);
  EXPECT_EQ(best_path(gemm(4096, 4096, 4096), test::battlemage()), Path::khr);
  for (const DeviceCaps& caps : test::all_devices()) {
    EXPECT_EQ(best_path(gemm(512, 512, 512, DataType::f32), caps), Path::fma) << caps.name;
  }
  EXPECT_EQ(best_path(gemm(512, 512, 512, DataType::bf16), test::navi31()), Path::fma);
  EXPECT_EQ(best_path(gemm(512, 512, 512, DataType::bf16), test::lavapipe()), Path::fma);
}

// A CPU takes matrices apart again: path fma is faster (bench/NOTES.md), whatever the type.
TEST(Rank, OnACpuTheFasterPathIsChosen) {
  const DeviceCaps caps = test::lavapipe();
  const DeviceTables tables(caps);
  for (const std::uint64_t size : {16u, 64u, 128u, 256u, 512u}) {
    for (const Problem& problem : {gemm(size, 256, size), gemm(size, 512, 512)}) {
      const auto best = tables.best(resolved(problem), caps);
      ASSERT_TRUE(best);
      EXPECT_EQ(best->config.path(), Path::fma) << to_command_line(problem);
    }
  }
  // Who asks for matrices finds them.
  const auto all = tables.rank(resolved(gemm(64, 64, 64)), caps);
  EXPECT_TRUE(std::ranges::any_of(
      all, [](const ScoredRow& row) { return row.config.path() == Path::khr; }));
}

// Products of few columns are over long before the driver has compiled a large kernel for them, and
// of the smallest ones a matrix path's may be the quickest to compile.
TEST(Rank, OnACpuFewColumnsTakeWhatCompilesQuickly) {
  const DeviceCaps caps = test::lavapipe();
  const DeviceTables tables(caps);
  for (const DataType input : {DataType::f16, DataType::bf16, DataType::f32, DataType::s8}) {
    for (const std::uint64_t size : {1u, 16u, 64u, 128u}) {
      const Problem problem = gemm(size, size, size, input);
      const auto best = tables.best(resolved(problem), caps);
      ASSERT_TRUE(best) << to_command_line(problem);
      const auto* const fma = std::get_if<FmaLoop>(&best->config.loop);
      EXPECT_TRUE(fma == nullptr || fma->fragment_m * fma->fragment_n <= 16)
          << to_string(best->config) << " for " << to_command_line(problem);
    }
  }
}

TEST(Rank, MisalignedOperandsCostMoreOnNv) {
  const auto cost = [](std::string_view config, const Problem& p) {
    return estimate_cost(test::config(config), 100, {}, resolved(p), test::h200());
  };
  Problem p = gemm(4096, 4096, 4096);
  const double aligned = cost("nv:tile=128x128x32,invocations=128", p);
  p.b.alignment = 2;
  EXPECT_GT(cost("nv:tile=128x128x32,invocations=128", p), 2.0 * aligned);
  EXPECT_EQ(best_path(p, test::h200()), Path::khr);
}

TEST(Rank, WavesAreCounted) {
  const Config config = test::config("fma:tile=128x128x16,fragment=8x8");
  DeviceCaps caps = test::h200();
  caps.limits.compute_units = 4;
  const auto cost = [&](std::uint64_t m) {
    return estimate_cost(config, 10, no_overhead(), resolved(gemm(m, 128, 64)), caps);
  };
  EXPECT_NEAR(cost(1), cost(4 * 128), 1e-6 * cost(1)) << "one wave, whatever it holds";
  EXPECT_NEAR(cost(4 * 128 + 1), 2.0 * cost(4 * 128), 1e-6 * cost(1));
  Problem batched = gemm(128, 128, 64);
  batched.batch = 5;
  EXPECT_NEAR(estimate_cost(config, 10, no_overhead(), resolved(batched), caps), 2.0 * cost(128),
              1e-6 * cost(128));
  caps.limits.compute_units = 0;
  EXPECT_LT(cost(1), cost(128 * 1024)) << "unknown is not infinite";
}

TEST(Rank, TinyProblemsGetSmallTiles) {
  const auto best = [](const Problem& p, const DeviceCaps& caps) {
    return rank(built_in_table("generic"), resolved(p), caps).front().row->config;
  };
  EXPECT_LE(best(gemm(1, 4096, 4096), test::h200()).tile_m, 32u);
  EXPECT_LE(best(gemm(1, 4096, 4096, DataType::f32), test::h200()).tile_m, 32u);
  EXPECT_LE(best(gemm(256, 256, 256), test::h200()).tile_m, 64u);
  EXPECT_GE(best(gemm(8192, 8192, 8192), test::h200()).tile_m, 128u);
}

TEST(Rank, TiesKeepTheTablesOrder) {
  TuningTable table;
  table.architecture = "x";
  for (const std::string_view swizzle : {"8", "1", "4", "2"}) {
    table.rows.push_back(
        row_of("fma:tile=64x64x16,fragment=8x8,swizzle=" + std::string(swizzle), 1.0));
  }
  Problem p = gemm(64, 64, 64);
  p.max_workspace_bytes = 0;
  const auto ranked = rank(table, resolved(p), test::h200());
  ASSERT_EQ(ranked.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ranked[i].row, &table.rows[i]);
}

TEST(Rank, SkipsWhatTheTableRefuses) {
  TuningTable table;
  table.rows = {row_of("fma:tile=64x64x16,fragment=8x8", 9),
                row_of("fma:tile=32x32x16,fragment=4x4", 1)};
  table.refused = {{.architecture = "nvidia_sm90",
                    .config = table.rows[0].config,
                    .reason = "computes nonsense"}};
  Problem p = gemm(64, 64, 64);
  p.max_workspace_bytes = 0;
  const ResolvedProblem r = resolved(p);
  const auto ranked_on = [&](const DeviceCaps& caps) {
    return DeviceTables(caps, {table}).rank(r, caps);
  };
  const auto is_refused = [&](const ScoredRow& scored) {
    return scored.config == table.rows[0].config;
  };
  EXPECT_TRUE(std::ranges::none_of(ranked_on(test::h200()), is_refused));
  EXPECT_TRUE(std::ranges::any_of(ranked_on(test::navi31()), is_refused));
}

TEST(Rank, RowsOfPartsStandForThoseOfElements) {
  const std::string_view config =
      "khr_direct:tile=64x64x64,fragment=16x16x16,subgroups=2x2,subgroup_size=32,swap_a=1,"
      "interleave_k=1,pack=ab";
  TuningTable table;
  table.rows = {row_of(config, 100.0), row_of(config, 400.0)};
  table.rows[0].family = "f32_parts";
  const DeviceCaps caps = trusting(test::h200());
  Problem p = gemm(4096, 4096, 4096, DataType::f32);
  p.f32_arithmetic = F32Arithmetic::f16x3;
  const auto in_parts = rank(table, resolved(p), caps);
  ASSERT_FALSE(in_parts.empty());
  for (const ScoredRow& scored : in_parts) EXPECT_EQ(scored.row, &table.rows[0]);
  const auto elements = rank(table, resolved(gemm(4096, 4096, 4096)), caps);
  ASSERT_FALSE(elements.empty());
  for (const ScoredRow& scored : elements) EXPECT_EQ(scored.row, &table.rows[1]);
}

// A rest of one workgroup of 128 invocations takes longer than its share: 472 us, measured.
TEST(Rank, ALoneSmallWorkgroupIsSlow) {
  const Config small = test::config("fma:tile=64x128x16,fragment=8x8");
  const Config large = test::config("fma:tile=128x128x16,fragment=8x8");
  const ResolvedProblem p = resolved(gemm(2048, 2048, 2048, DataType::f32));
  EXPECT_NEAR(estimate_cost(small, 45.8, {}, p, test::h200()), 472.0, 30.0);
  EXPECT_NEAR(estimate_cost(large, 42.3, {}, p, test::h200()), 418.0, 30.0);
}

TEST(Rank, SplitsKWhereTilesAreFew) {
  const auto slices = [](const Problem& p, const DeviceCaps& caps) {
    return rank(built_in_table("nvidia_sm90"), resolved(p), caps).front().config.slices;
  };
  EXPECT_GE(slices(gemm(16, 16, 4096), test::h200()), 8u);
  EXPECT_GT(slices(gemm(128, 128, 65536), test::h200()), 32u);
  EXPECT_EQ(slices(gemm(4096, 4096, 4096), test::h200()), 1u);
  EXPECT_EQ(slices(gemm(16, 16, 32), test::h200()), 1u) << "there is nothing to share";

  Problem limited = gemm(128, 128, 65536);
  limited.max_workspace_bytes = 10 * 128 * 128 * 4;
  EXPECT_EQ(slices(limited, test::h200()), 8u) << "10 matrices of partial results";
  limited.max_workspace_bytes = 0;
  EXPECT_EQ(slices(limited, test::h200()), 1u);
  EXPECT_EQ(rank(built_in_table("generic"), resolved(gemm(16, 16, 4096)), test::lavapipe())
                .front()
                .config.slices,
            1u)
      << "a CPU computes slices one by one";
}

// Whatever is ranked is legal, and its plan wants no more than was allowed; in all tables.
TEST(Rank, WantsNoMoreWorkspaceThanAllowed) {
  std::size_t with_workspace = 0;
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const embedded::File& table : embedded::tables()) {
      for (const auto& [m, n, k] :
           {std::array{8192u, 8200u, 4080u}, std::array{4097u, 4095u, 4093u},
            std::array{16u, 16u, 40000u}, std::array{1u, 9999u, 777u}}) {
        for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{4096},
                                          std::uint64_t{67600000}, std::uint64_t{1} << 27}) {
          Problem p = gemm(m, n, k);
          p.b.layout = Layout::col_major;
          p.max_workspace_bytes = limit;
          const ResolvedProblem r = resolved(p);
          for (const ScoredRow& scored : rank(built_in_table(table.name), r, caps)) {
            ASSERT_TRUE(is_legal(scored.config, r, caps)) << to_string(scored);
            const std::uint64_t bytes = lower(scored.config, r, caps).workspace.bytes;
            ASSERT_LE(bytes, limit) << to_string(scored);
            if (bytes != 0) ++with_workspace;
          }
        }
      }
    }
  }
  EXPECT_GT(with_workspace, 100u);
}

TEST(Rank, ARowThatSaysItsSlicesKeepsThem) {
  TuningTable table;
  table.rows = {row_of("fma:tile=64x64x16,fragment=8x8,slices=3", 9)};
  const auto ranked = rank(table, resolved(gemm(64, 64, 65536)), test::h200());
  ASSERT_EQ(ranked.size(), 1u);
  EXPECT_EQ(ranked[0].config.slices, 3u);
  EXPECT_EQ(ranked[0].cost, ranked[0].unsplit_cost);
}

TEST(WhyNothingIsLegal, OneObjectionARow) {
  TuningTable table;
  table.architecture = "x";
  table.rows = {row_of("nv:tile=128x128x32,invocations=128", 9),
                row_of("khr:tile=8x8x8,fragment=8x8x8,subgroups=1x1,subgroup_size=8", 1)};
  const ResolvedProblem r = resolved(gemm(64, 64, 64));
  EXPECT_TRUE(rank(table, r, test::navi31()).empty());
  const std::vector<Objection> all = objections(table, r, test::navi31());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(to_string(all[0].config), "nv:tile=128x128x32,invocations=128");
  EXPECT_TRUE(contains(all[0].reason, "path nv is off")) << all[0].reason;
  EXPECT_TRUE(contains(all[1].reason, "fragment 8x8x8")) << all[1].reason;
  table.rows.clear();
  EXPECT_TRUE(objections(table, r, test::navi31()).empty());
}

// What is named is enough, and less is not.
void expect_least_workspace(Problem p, const DeviceCaps& caps) {
  const DeviceTables tables(caps);
  if (tables.best(resolved(p), caps)) return;
  const std::vector<std::string> why = tables.why_nothing_is_legal(resolved(p), caps);
  ASSERT_EQ(why.size(), 1u) << why.front();
  const std::string begin = concat("max_workspace_bytes is ", p.max_workspace_bytes,
                                   ", the least that a configuration takes is ");
  ASSERT_TRUE(why.front().starts_with(begin)) << why.front();
  const auto bytes = parse_number<std::uint64_t>(why.front().substr(begin.size()));
  ASSERT_TRUE(bytes) << why.front();
  for (const bool less : {false, true}) {
    p.max_workspace_bytes = *bytes - (less ? 1 : 0);
    EXPECT_EQ(tables.best(resolved(p), caps).has_value(), !less)
        << caps.name << ", " << to_command_line(p);
  }
}

TEST(WhyNothingIsLegal, SaysTheLeastWorkspace) {
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const std::uint64_t allowed : {0u, 100u, 1000u}) {
      Problem p = gemm(64, 64, 64);
      p.split_k.slices = 4;
      p.max_workspace_bytes = allowed;
      expect_least_workspace(p, caps);
      p.batch = 3;
      p.split_k.reduction_mode = ReductionMode::last_arriver;
      expect_least_workspace(p, caps);
      for (const RowOp op : {RowOp::layer_norm, RowOp::softmax, RowOp::max}) {
        for (const auto& [m, n, k] :
             {std::array{70u, 600u, 33u}, {5u, 2000u, 64u}, {300u, 4u, 8u}}) {
          Problem rows = gemm(m, n, k);
          rows.row_reduction = RowReduction{.op = op};
          rows.max_workspace_bytes = allowed;
          expect_least_workspace(rows, caps);
        }
      }
    }
  }
  Problem rows = gemm(70, 600, 33);
  rows.row_reduction = RowReduction{.op = RowOp::layer_norm};
  rows.max_workspace_bytes = 0;
  const DeviceTables tables(test::lavapipe().architecture);
  EXPECT_EQ(tables.why_nothing_is_legal(resolved(rows), test::lavapipe()).front(),
            "max_workspace_bytes is 0, the least that a configuration takes is 9728")
      << "two passes take 76800";
}

TEST(WhyNothingIsLegal, SaysEachReasonOnceAndTheCauseFirst) {
  DeviceCaps caps = test::h200();
  for (PathSupport* path : {&caps.nv, &caps.khr, &caps.fma}) {
    *path = {.available = false, .reason = path == &caps.fma ? "one" : "another"};
  }
  const std::vector<std::string> why =
      DeviceTables("nvidia_sm90").why_nothing_is_legal(resolved(gemm(64, 64, 64)), caps);
  ASSERT_EQ(why.size(), 3u);
  EXPECT_TRUE(why[0].starts_with("path fma is off: one (fma:")) << why[0];
  EXPECT_TRUE(why[1].starts_with("path khr is off: another (khr")) << why[1];
  EXPECT_TRUE(why[1].ends_with(" more)")) << why[1];
  EXPECT_TRUE(why[2].starts_with("path nv is off: another (nv:")) << why[2];
}

TEST(ScoredRow, Prints) {
  const TuningRow row = row_of("fma:tile=64x64x16,fragment=8x8", 2.5);
  const ScoredRow scored{.row = &row, .config = row.config, .cost = 1000.52};
  EXPECT_EQ(to_string(scored),
            "fma:tile=64x64x16,fragment=8x8, estimated 1000.5 us, rate 2.5, derived: for a test");
}

}  // namespace
}  // namespace vkgemm
