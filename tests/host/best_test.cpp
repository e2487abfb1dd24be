// Tests of best(), which finds the first row of rank() without ranking the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "device/caps.hpp"
#include "kernels/computation.hpp"
#include "kernels/legality.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"
#include "tuning/estimate.hpp"
#include "tuning/rank.hpp"

namespace vkgemm {
namespace {

using test::gemm;
using test::resolved;

// Problems of each kind that the bounds of a search tell apart, from tiny to large.
std::vector<ResolvedProblem> problems() {
  std::vector<ResolvedProblem> out;
  const auto add_all = [&](Problem p) {
    out.push_back(resolved(p));
    p.b.alignment = size_in_bytes(p.b.type);
    p.max_workspace_bytes = 1 << 20;
    out.push_back(resolved(p));
    p.max_workspace_bytes = 0;
    p.b.layout = Layout::col_major;
    out.push_back(resolved(p));
  };
  for (const DataType type : {DataType::f16, DataType::f32, DataType::s8}) {
    for (const auto& [m, n, k] : {std::array{1u, 4096u, 4096u},
                                  {64u, 64u, 16384u},
                                  {300u, 700u, 900u},
                                  {4096u, 4096u, 4000u}}) {
      Problem p = gemm(m, n, k, type);
      add_all(p);
      for (const RowOp op : {RowOp::rms_norm, RowOp::softmax, RowOp::max}) {
        p.row_reduction = RowReduction{.op = op};
        add_all(p);
      }
    }
  }
  Problem gated = gemm(512, 1024, 1024);
  gated.gated = Gated{};
  add_all(gated);
  Problem parts = gemm(2000, 2000, 2000, DataType::f32);
  parts.f32_arithmetic = F32Arithmetic::f16x3;
  add_all(parts);
  Problem sliced = gemm(100, 100, 10000);
  sliced.split_k.slices = 4;
  add_all(sliced);
  for (const Problem& p :
       {test::rows_in_groups(4096, 1000, 1000, 7), test::depth_in_groups(500, 1000, 9000, 7)}) {
    add_all(p);
  }
  return out;
}

std::vector<DeviceCaps> devices() {
  std::vector<DeviceCaps> out{test::h200()};  // without a self-test
  for (const DeviceCaps& caps : test::tabled_devices()) out.push_back(trusting(caps));
  return out;
}

TEST(Best, IsTheFirstOfTheRank) {
  const auto any = [](const Config&) { return true; };
  const std::vector<ResolvedProblem> all = problems();
  for (const DeviceCaps& caps : devices()) {
    const TuningTable& table = built_in_table(table_name(caps));
    for (const ResolvedProblem& problem : all) {
      const auto ranked = rank(table, problem, caps);
      const auto found = best(table, problem, caps, any);
      ASSERT_EQ(found.has_value(), !ranked.empty()) << caps.name;
      if (!found) continue;
      const ScoredRow& first = ranked.front();
      EXPECT_EQ(found->config, first.config) << caps.name << ": " << to_string(first);
      EXPECT_EQ(found->row, first.row);
      EXPECT_EQ(found->cost, first.cost);
      EXPECT_EQ(found->unsplit_cost, first.unsplit_cost);

      EXPECT_FALSE(best(table, problem, caps, any, first.cost));
      const auto below = best(table, problem, caps, any, 1.001 * first.cost);
      ASSERT_TRUE(below);
      EXPECT_EQ(below->config, first.config);

      const auto other = [&](const Config& c) { return c != first.config; };
      const auto second = std::ranges::find_if(ranked, other, &ScoredRow::config);
      const auto chosen = best(table, problem, caps, other);
      ASSERT_EQ(chosen.has_value(), second != ranked.end());
      if (chosen) {
        EXPECT_EQ(chosen->config, second->config) << caps.name << ": " << to_string(*second);
      }
    }
  }
}

TEST(Best, NoEstimateIsBelowItsBound) {
  const std::vector<ResolvedProblem> all = problems();
  for (const DeviceCaps& caps : devices()) {
    const TuningTable& table = built_in_table(table_name(caps));
    for (const ResolvedProblem& problem : all) {
      const Estimator estimator(problem, table.timing, caps);
      for (const ScoredRow& scored : rank(table, problem, caps)) {
        if (is_reshaped(scored.config, scored.row->config)) continue;  // has another rate
        const Config& c = scored.config;
        ASSERT_LE(estimator.least(c, c.rows, scored.row->rate), scored.cost) << to_string(scored);
        if (is_cpu(caps)) continue;
        const Estimate estimate(estimator, Computation(problem, c), scored.row->rate);
        ASSERT_LE(estimate.least(c.slices), scored.cost) << to_string(scored);
      }
    }
  }
}

// Estimates come before legality, so they must not divide by zero.
TEST(Best, EstimatesOfIllegalConfigurationsAreSafe) {
  const std::uint32_t values[] = {1, 1, 2, 4, 8, 16, 32, 64, 128};
  Problem gated = gemm(100, 100, 100);
  gated.gated = Gated{};
  Problem rows = gemm(100, 100, 100);
  rows.row_reduction = RowReduction{.op = RowOp::softmax};
  const DeviceCaps caps = trusting(test::h200());
  std::uint32_t state = 1;
  const auto any = [&] {
    state = state * 1664525u + 1013904223u;
    return values[(state >> 16) % std::size(values)];
  };
  int estimated = 0;
  for (const Problem& p : {gemm(100, 100, 100), gated, rows}) {
    const ResolvedProblem problem = resolved(p);
    for (int i = 0; i < 30000; ++i) {
      const Config c = test::any_config(any);
      if (!has_legal_ranges(c) || !may_be_legal(c, problem, caps)) continue;
      estimate_cost(c, 100.0, {}, problem, caps);
      ++estimated;
    }
  }
  EXPECT_GT(estimated, 1000);
}

}  // namespace
}  // namespace vkgemm
