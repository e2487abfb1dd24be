// Tuned shapes: from a file to the choice of a plan.
#include "tuning/nearest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kernels/legality.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm {
namespace {

using test::gemm;
using test::large_tile;
using test::resolved;
using test::small_tile;

TunedShape shape_of(const Problem& problem, std::string_view config, double microseconds = 100.0) {
  TunedShape shape;
  shape.problem = tuned_problem(resolved(problem));
  shape.row.config = test::config(config);
  shape.row.provenance = "measured: in a test";
  shape.microseconds = microseconds;
  return shape;
}

TuningTable table_of(std::vector<TunedShape> shapes) {
  TuningTable table;
  table.architecture = "nvidia_sm90";
  table.source = "test.json";
  // Its own rows, so that what is tuned and built in does not count.
  table.timing = built_in_table("nvidia_sm90").timing;
  table.rows = built_in_table("nvidia_sm90").rows;
  table.tuned = std::move(shapes);
  return table;
}

std::optional<ScoredRow> best_with(const TuningTable& table, const Problem& problem) {
  return DeviceTables(test::h200(), {table}).best(resolved(problem), test::h200());
}

TEST(Nearest, DistanceIsSymmetricAndCountsDoublings) {
  const std::array<Problem, 4> problems = {gemm(64, 64, 64), gemm(128, 64, 64), gemm(64, 256, 32),
                                           gemm(1, 8192, 777)};
  for (const Problem& a : problems) {
    for (const Problem& b : problems) {
      const TunedProblem from = tuned_problem(resolved(a));
      TunedProblem to = tuned_problem(resolved(b));
      to.aligned = from.aligned;
      EXPECT_EQ(shape_distance(from, to), shape_distance(to, from));
      EXPECT_EQ(shape_distance(from, to) == 0.0, a == b);
    }
  }
  const TunedProblem at = tuned_problem(resolved(gemm(64, 64, 64)));
  EXPECT_EQ(shape_distance(at, tuned_problem(resolved(gemm(128, 64, 64)))), 1.0);
  EXPECT_EQ(shape_distance(at, tuned_problem(resolved(gemm(64, 256, 32)))), std::sqrt(5.0));
}

TEST(Nearest, OtherKernelsSayNothing) {
  const Problem plain = gemm(256, 256, 256);
  const TunedProblem at = tuned_problem(resolved(plain));
  std::vector<Problem> others(7, plain);
  others[0].a.layout = Layout::col_major;
  others[1].b.layout = Layout::col_major;
  others[2].a.type = others[2].b.type = DataType::bf16;
  others[3].gated = Gated{};
  others[4].grouping = Grouping{.groups = 2};
  others[5].row_reduction = RowReduction{};
  others[6].a.alignment = 2;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const TunedProblem other = tuned_problem(resolved(others[i]));
    EXPECT_TRUE(std::isinf(shape_distance(at, other))) << i;
    EXPECT_EQ(parse_tuned_family(other.family), other.family);
  }
  Problem ieee = plain;
  ieee.a.type = ieee.b.type = DataType::f32;
  Problem in_parts = ieee;
  in_parts.f32_arithmetic = F32Arithmetic::bf16x9;
  EXPECT_TRUE(
      std::isinf(shape_distance(tuned_problem(resolved(ieee)), tuned_problem(resolved(in_parts)))));
  Problem codes = plain;
  codes.b.packing = Packing::packed;
  codes.quantised_b = Quantisation{.type = CodeType::e4m3, .group_k = 128, .group_n = 128};
  Problem wide_scales = codes;
  wide_scales.quantised_b->scale_type = DataType::f32;
  for (const Problem& problem : {codes, wide_scales}) {
    const std::string family = tuned_problem(resolved(problem)).family;
    EXPECT_EQ(parse_tuned_family(family), family);
  }
  EXPECT_TRUE(std::isinf(
      shape_distance(tuned_problem(resolved(codes)), tuned_problem(resolved(wide_scales)))));
  EXPECT_FALSE(parse_tuned_family("gemm:scales=f32"));
  EXPECT_FALSE(parse_tuned_family("gemm+"));
  EXPECT_FALSE(parse_tuned_family("gemm+softmax+gated"));
  EXPECT_FALSE(parse_tuned_family("conv"));
}

TEST(Nearest, AnExactHitWinsWhateverTheEstimateSays) {
  const Problem p = gemm(4096, 4096, 4096);
  const std::string before = to_string(best_with(table_of({}), p)->config);
  ASSERT_NE(before, small_tile);
  const auto best = best_with(table_of({shape_of(p, small_tile, 12345.0)}), p);
  ASSERT_TRUE(best);
  EXPECT_EQ(to_string(best->config), small_tile);
  EXPECT_EQ(best->cost, 12345.0);
  EXPECT_EQ(best->distance, 0.0);

  // Also before nearer entries of the file, and of two equal shapes that with the same epilogue.
  Problem heavy = p;
  heavy.epilogue.aux = true;
  const auto table = table_of({shape_of(gemm(4096, 4096, 4000), large_tile),
                               shape_of(p, large_tile), shape_of(heavy, small_tile)});
  EXPECT_EQ(to_string(best_with(table, heavy)->config), small_tile);
  EXPECT_EQ(to_string(best_with(table, p)->config), large_tile);

  // D's type and layout count, too.
  Problem wide = p;
  wide.d.type = DataType::f32;
  EXPECT_NE(tuned_problem(resolved(wide)), tuned_problem(resolved(p)));
  EXPECT_EQ(shape_distance(tuned_problem(resolved(wide)), tuned_problem(resolved(p))), 0.0);
  EXPECT_EQ(
      to_string(
          best_with(table_of({shape_of(p, large_tile), shape_of(wide, small_tile)}), wide)->config),
      small_tile);
  Problem rows = p;
  rows.row_reduction = RowReduction{.op = RowOp::softmax};
  EXPECT_FALSE(tuned_problem(resolved(rows)).d_col_major);
  rows.d.layout = Layout::col_major;
  EXPECT_TRUE(tuned_problem(resolved(rows)).d_col_major);
  Problem columns = p;
  columns.d.layout = Layout::col_major;
  EXPECT_FALSE(tuned_problem(resolved(columns)).d_col_major);  // computed as its transpose
}

TEST(Nearest, WithoutARowWithinReachTheModelChooses) {
  const Problem p = gemm(4096, 4096, 4096);
  const auto model = best_with(table_of({}), p);
  const auto far = best_with(table_of({shape_of(gemm(8192, 4096, 4096), small_tile)}), p);
  EXPECT_EQ(far->config, model->config);
  EXPECT_EQ(far->tuned, nullptr);
  const auto other = best_with(
      table_of({shape_of(gemm(4096, 4096, 4096, DataType::f32), "fma:tile=32x32x16,fragment=4x4")}),
      p);
  EXPECT_EQ(other->config, model->config);
}

TEST(Nearest, TheEfficiencyIsCarriedOver) {
  // The model underrates here what it underrates there.
  const auto table = table_of({shape_of(gemm(8192, 8192, 4096), small_tile, 1000.0)});
  const auto best = best_with(table, gemm(8192, 12288, 4096));
  ASSERT_TRUE(best);
  EXPECT_EQ(to_string(best->config), small_tile);
  EXPECT_NEAR(best->distance, 0.585, 0.001);
  EXPECT_NEAR(best->cost, 1500.0, 75.0);  // half as much again
}

// A shape whose tuned configuration is the one that the estimate prefers says nothing new: near it
// the choice is the estimate's, which differs.
TEST(Nearest, TheEstimateObjectsWhereItWasRight) {
  const Problem tuned = gemm(512, 1024, 1024);
  const std::string config = to_string(best_with(table_of({}), tuned)->config);
  int objections = 0;
  for (const std::uint64_t m : {270u, 350u, 420u, 510u, 600u, 700u, 850u, 1000u}) {
    const Problem p = gemm(m, 1024, 1024);
    const auto model = best_with(table_of({}), p);
    const auto best = best_with(table_of({shape_of(tuned, config)}), p);
    EXPECT_EQ(to_string(best->config), to_string(model->config)) << m;
    objections += best->tuned == nullptr ? 1 : 0;
  }
  EXPECT_GT(objections, 0);
  EXPECT_LT(objections, 8);
}

TEST(Nearest, OpinionsAreCorrectedByErrors) {
  Opinion opinion{.here = 20, .best_here = 12, .there = 10, .best_there = 10};
  EXPECT_TRUE(opinion.objects());
  opinion.there = 20;  // it was wrong by a factor of two there
  EXPECT_FALSE(opinion.objects());
  opinion.there = 5;  // to be better than was thought is no licence here
  EXPECT_TRUE(opinion.objects());
}

// A table that leaves nothing is overruled: the choice is the one without it.
TEST(LoadedTables, TheirDenialsLeaveSomething) {
  for (const DeviceCaps& caps : test::all_devices()) {
    const DeviceTables built_in(caps);
    TuningTable denying, refusing;
    for (TuningTable* table : {&denying, &refusing}) {
      table->architecture = caps.architecture;
      table->timing = built_in_table(table_name(caps)).timing;
      table->source = "mine.json";
    }
    for (const std::string_view name : {table_name(caps), std::string_view("generic")}) {
      const TuningTable& known = built_in_table(name);
      std::vector<Config> configs;
      for (const TuningRow& row : known.rows) configs.push_back(row.config);
      for (const TunedShape& shape : known.tuned) configs.push_back(shape.row.config);
      for (const Config& config : configs) {
        denying.denied.push_back({.config = config, .reason = "not here", .wrong = true});
        refusing.refused.push_back(
            {.architecture = caps.architecture, .config = config, .reason = "not here"});
      }
    }
    Problem slices = gemm(64, 64, 64);
    slices.split_k.slices = 4;
    for (const Problem& p : {gemm(512, 512, 512), gemm(1, 4096, 4096, DataType::f32), slices}) {
      const auto without = built_in.best(resolved(p), caps);
      ASSERT_TRUE(without);
      EXPECT_EQ(built_in.why_denied(without->config, resolved(p), caps), std::nullopt);
      for (const TuningTable& table : {denying, refusing}) {
        const DeviceTables tables(caps, {table});
        const auto best = tables.best(resolved(p), caps);
        ASSERT_TRUE(best) << caps.name;
        EXPECT_EQ(best->config, without->config) << caps.name;
        EXPECT_EQ(tables.rank(resolved(p), caps).front().config, best->config);
        EXPECT_TRUE(tables.best_estimate(resolved(p), caps));
        const auto denied = tables.why_denied(best->config, resolved(p), caps);
        ASSERT_TRUE(denied) << caps.name;
        EXPECT_NE(denied->find("not here"), std::string::npos) << *denied;
        EXPECT_NE(denied->find("mine.json"), std::string::npos) << *denied;
      }
    }
  }
}

TEST(Nearest, WhatMayNotBeChosenIsPassedOver) {
  const Problem p = gemm(4096, 4096, 4096);
  const auto illegal = best_with(
      table_of({shape_of(p, "khr:tile=512x512x64,fragment=16x16x16,subgroups=2x2,subgroup_size=32"),
                shape_of(gemm(4096, 4096, 4000), small_tile)}),
      p);
  ASSERT_TRUE(illegal);
  EXPECT_TRUE(illegal->tuned == nullptr || to_string(illegal->config) == small_tile);

  TuningTable denying = table_of({shape_of(p, small_tile)});
  denying.denied.push_back({test::config(small_tile), "wrong"});
  EXPECT_NE(to_string(best_with(denying, p)->config), small_tile);
  // A built-in table's choice is denied, too.
  const auto model = best_with(table_of({}), p);
  TuningTable other = table_of({});
  other.denied.push_back({model->config, "wrong"});
  const DeviceTables tables(test::h200(), {other});
  const auto ranked = tables.rank(resolved(p), test::h200());
  ASSERT_FALSE(ranked.empty());
  for (const ScoredRow& row : ranked) EXPECT_NE(row.config, model->config);
  EXPECT_EQ(tables.best(resolved(p), test::h200())->config, ranked.front().config);

  // Slices that the caller did not ask for, and a workspace that there is not.
  const auto sliced = table_of({shape_of(p, std::string(small_tile) + ",slices=2")});
  EXPECT_EQ(best_with(sliced, p)->config.slices, 2u);
  Problem whole = p;
  whole.split_k.slices = 1;
  EXPECT_EQ(best_with(sliced, whole)->config.slices, 1u);
  Problem poor = p;
  poor.max_workspace_bytes = 0;
  EXPECT_EQ(best_with(sliced, poor)->config.slices, 1u);
}

TEST(Nearest, BuiltInTablesChooseAsWithoutAFile) {
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const Problem& p : {gemm(1, 4096, 4096), gemm(512, 512, 512), gemm(4097, 4095, 4093)}) {
      const auto& own = built_in_table(table_name(caps));
      auto ranked = rank(own, resolved(p), caps);
      if (ranked.empty()) ranked = rank(built_in_table("generic"), resolved(p), caps);
      const auto best = DeviceTables(caps).best(resolved(p), caps);
      ASSERT_TRUE(best);
      const auto known = std::ranges::find_if(own.tuned, [&](const TunedShape& shape) {
        return shape.problem == tuned_problem(resolved(p)) &&
               is_legal(shape.row.config, resolved(p), caps);
      });
      if (known != own.tuned.end()) {
        EXPECT_EQ(best->tuned, &*known);
        EXPECT_EQ(best->cost, known->microseconds);
        continue;
      }
      EXPECT_EQ(best->config, ranked.front().config);
      EXPECT_EQ(best->cost, ranked.front().cost);
    }
  }
}

// A shape may have two entries: the first is for devices whose self-test allows for its main loop.
TEST(Nearest, TheFirstOneThatIsLegal) {
  const ResolvedProblem p = resolved(gemm(4096, 4096, 4096));
  const DeviceTables tables(test::h200());
  const DeviceCaps h200 = test::h200();
  const auto untested = tables.best(p, h200), tested = tables.best(p, trusting(h200));
  ASSERT_TRUE(untested && tested);
  EXPECT_NE(untested->config.main_loop(), MainLoop::khr_direct);
  EXPECT_EQ(tested->config.main_loop(), MainLoop::khr_direct);
  EXPECT_TRUE(untested->timed && tested->timed);
  EXPECT_LT(tested->cost, untested->cost);
}

// The nearer one speaks of what is loaded and what is built in, what is loaded where both are as
// near, and alone where the loaded table has rows.
TEST(Nearest, LoadedAndBuiltInShapes) {
  const auto& built_in = built_in_table("nvidia_sm90_h200").tuned;
  const auto known = std::ranges::find_if(built_in, [](const TunedShape& shape) {
    const ResolvedProblem p = resolved(gemm(4096, 4096, 4096));
    return shape.problem == tuned_problem(p) && is_legal(shape.row.config, p, test::h200());
  });
  ASSERT_NE(known, built_in.end());
  const Problem p = gemm(4096, 4096, 4096);
  const auto best = [&](const Problem& tuned, bool with_rows) {
    TuningTable table = table_of({shape_of(tuned, small_tile)});
    if (!with_rows) table.rows.clear();
    const auto chosen = best_with(table, p);
    return chosen ? to_string(chosen->config) : "nothing";
  };
  EXPECT_EQ(best(gemm(4096, 4096, 3000), false), to_string(known->row.config));
  EXPECT_EQ(best(p, false), small_tile);
  EXPECT_EQ(best(p, true), small_tile);
  EXPECT_NE(best_with(table_of({}), p)->tuned, &*known);
}

// A configuration that was timed on an H200 is chosen on others of its architecture, too, but not
// called theirs.
TEST(Nearest, AnotherDeviceHasOtherTimes) {
  DeviceCaps h100 = test::h200();
  h100.name = "NVIDIA H100 PCIe";
  h100.limits.compute_units = 114;
  const ResolvedProblem p = resolved(gemm(4096, 4096, 4096));
  const DeviceTables tables(test::h200());
  const auto here = tables.best(p, test::h200());
  const auto there = tables.best(p, h100);
  ASSERT_TRUE(here && there);
  EXPECT_TRUE(here->timed);
  EXPECT_EQ(here->cost, here->tuned->microseconds);
  EXPECT_EQ(there->config, here->config);
  EXPECT_EQ(there->tuned, here->tuned);
  EXPECT_FALSE(there->timed);
  EXPECT_NE(there->cost, here->cost);
}

}  // namespace
}  // namespace vkgemm
