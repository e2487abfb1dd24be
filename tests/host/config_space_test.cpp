// Tests of what `vkgemm tune` looks at: problems from logs, configurations.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "files/plan_log.hpp"
#include "kernels/legality.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"
#include "tuner/config_space.hpp"
#include "tuning/device_tables.hpp"
#include "tuning/nearest.hpp"
#include "tuning/rank.hpp"

namespace vkgemm::tuner {
namespace {

using test::gemm;
using test::resolved;

std::vector<Problem> some_problems() {
  std::vector<Problem> problems = {gemm(1, 4096, 4096), gemm(512, 512, 512, DataType::bf16),
                                   gemm(4097, 4095, 4093), gemm(64, 64, 16384, DataType::f32)};
  Problem p = gemm(1024, 512, 256);
  p.row_reduction = RowReduction{.op = RowOp::softmax};
  problems.push_back(p);
  p = gemm(1024, 512, 256);
  p.gated = Gated{};
  problems.push_back(p);
  p = gemm(1024, 512, 256);
  p.grouping = Grouping{.groups = 8};
  p.a.layout = Layout::col_major;
  problems.push_back(p);
  p = gemm(128, 128, 65536);
  p.split_k.slices = 4;
  problems.push_back(p);
  p = gemm(128, 128, 65536);
  p.max_workspace_bytes = 0;
  problems.push_back(p);
  return problems;
}

TEST(ConfigSpace, IsLegalEverywhereAndSorted) {
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const Problem& problem : some_problems()) {
      const ResolvedProblem p = resolved(problem);
      const auto space = search_space(built_in_table("generic"), p, caps);
      ASSERT_FALSE(space.empty()) << caps.name << ": " << to_command_line(problem);
      EXPECT_TRUE(std::ranges::is_sorted(space, {}, &ProposedConfig::estimate));
      std::set<std::string> seen;
      for (const ProposedConfig& proposed : space) {
        ASSERT_TRUE(is_legal(proposed.config, p, caps)) << to_string(proposed.config);
        ASSERT_TRUE(is_usable(proposed.config, p, caps)) << to_string(proposed.config);
        ASSERT_TRUE(seen.insert(to_string(proposed.config)).second);
      }
    }
  }
}

// What the caller packed is taken as it lies: in the one order of fragments that the device has.
TEST(ConfigSpace, TakesWhatIsPacked) {
  const DeviceCaps untested = test::h200(), tested = trusting(untested);
  for (const DeviceCaps* caps : {&untested, &tested}) {
    const DeviceTables tables(*caps);
    for (const bool packs_a : {false, true}) {
      Problem problem = gemm(1024, 4096, 512);
      problem.b = {.packing = Packing::packed};
      if (packs_a) problem.a = {.packing = Packing::packed};
      ResolvedProblem p = resolved(problem);
      ASSERT_FALSE(tables.set_orders(p, *caps));
      EXPECT_EQ(p.b.fragments.has_value(), caps == &tested);
      const Target target = tables.target(*caps);
      const auto space = search_space(built_in_table(table_name(*caps)), p, target);
      const std::size_t rows = tables.rank(p, *caps).size();
      EXPECT_GT(space.size(), 2 * rows) << to_command_line(problem);
      for (const ProposedConfig& proposed : space) {
        const Config& c = proposed.config;
        ASSERT_TRUE(c.pack_b && (c.pack_a || !packs_a)) << to_string(c);
        ASSERT_EQ(c.main_loop() == MainLoop::khr_direct, caps == &tested) << to_string(c);
      }
      const auto around =
          neighbours(built_in_table(table_name(*caps)), space.front().config, p, target);
      EXPECT_FALSE(around.empty());
      for (const Config& c : around) ASSERT_TRUE(c.pack_b && is_legal(c, p, target));
    }
  }
}

// More than the table has; among them what its measured rows would be on this device.
TEST(ConfigSpace, GoesBeyondTheTable) {
  const DeviceCaps h200 = test::h200();
  const auto has = [&](const Problem& problem, std::string_view config) {
    const auto space = search_space(built_in_table("generic"), resolved(problem), h200);
    return std::ranges::any_of(
        space, [&](const ProposedConfig& p) { return p.config == test::config(config); });
  };
  Problem columns = gemm(4096, 4096, 4096);
  columns.a.layout = Layout::col_major;
  EXPECT_TRUE(has(columns,
                  "khr_ring:tile=256x128x32,fragment=16x16x16,subgroups=4x2,subgroup_size=32,"
                  "subtiles=4"));
  EXPECT_TRUE(has(gemm(1, 12288, 4096, DataType::f32), "skinny:tile=1x64x512"));
}

TEST(ConfigSpace, NeighboursAreLegalAndOthers) {
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const Problem& problem : some_problems()) {
      const ResolvedProblem p = resolved(problem);
      auto space = search_space(built_in_table("generic"), p, caps);
      space.resize(std::min<std::size_t>(space.size(), 5));
      for (const ProposedConfig& from : space) {
        const auto around =
            neighbours(built_in_table("generic"), from.config, p, caps, {.within = 1e9});
        EXPECT_FALSE(around.empty()) << caps.name << ": " << to_string(from.config);
        std::set<std::string> seen = {to_string(from.config)};
        for (const Config& config : around) {
          ASSERT_TRUE(is_usable(config, p, caps)) << to_string(config);
          ASSERT_TRUE(seen.insert(to_string(config)).second) << to_string(config);
          ASSERT_EQ(test::config(to_string(config)), config);
        }
      }
    }
  }
}

TEST(ConfigSpace, NeighboursComeByEstimate) {
  const DeviceCaps h200 = test::h200();
  const TuningTable& table = built_in_table("nvidia_sm90");
  const ResolvedProblem p = resolved(gemm(4096, 4096, 4096));
  const auto estimate = [&](const Config& config) {
    return estimate_cost(config, similar_rate(table, config, p).value(), table.timing, p, h200);
  };
  const Config from = search_space(table, p, h200).at(0).config;
  const auto all = neighbours(table, from, p, h200, {.within = 1e9});
  const auto near = neighbours(table, from, p, h200, {.within = 1.2});
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, estimate));
  EXPECT_GT(estimate(all.back()), estimate(all.front()));
  // The ones within the limit stand in the same order.
  ASSERT_FALSE(near.empty());
  ASSERT_LT(near.size(), all.size());
  EXPECT_TRUE(std::equal(near.begin(), near.end(), all.begin()));
  EXPECT_LE(estimate(near.back()), 1.2 * estimate(from));
  EXPECT_GT(estimate(all[near.size()]), 1.2 * estimate(from));
  // A table that knows no rates keeps all.
  EXPECT_EQ(neighbours(TuningTable{}, from, p, h200).size(), all.size());
}

TEST(PlanLog, FindsCommandsAmongOtherLines) {
  std::istringstream log(
      "starting up\n"
      "vkgemm info: vkgemm run --m 1 --n 2 --k 3 --dtype f16 --config fma:tile=1x1x1\n"
      "\n"
      "12:00 vkgemm run  --m 1 --n 2 --k 3   --dtype f16 --config khr:tile=2x2x2\r\n"
      "vkgemm warning: pipeline cache not saved\n"
      "vkgemm run --m 4 --n 5 --k 6\n"
      "I said: vkgemm run vkgemm run --m 7 --config=fma:tile=1x1x1");
  const files::PlanLog read = files::read_plan_log(log);
  EXPECT_EQ(read.problems, (std::vector<std::string>{"--m 1 --n 2 --k 3 --dtype f16",
                                                     "--m 4 --n 5 --k 6", "--m 7"}));
  EXPECT_EQ(read.lines_of, (std::vector<std::size_t>{2, 6, 7}));
  EXPECT_EQ(read.lines, 7u);
  EXPECT_EQ(read.repeats, 1u);
  EXPECT_EQ(read.others, 3u);
}

}  // namespace
}  // namespace vkgemm::tuner
