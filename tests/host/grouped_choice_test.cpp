// Tests the choices of the tables for grouped problems.
#include <gtest/gtest.h>

#include "kernels/legality.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"
#include "tuning/estimate.hpp"
#include "tuning/rank.hpp"

namespace vkgemm {
namespace {

using test::depth_in_groups;
using test::gemm;
using test::resolved;
using test::rows_in_groups;

Config best(const Problem& problem, const DeviceCaps& caps = test::h200()) {
  const auto ranked = rank(built_in_table(table_name(caps)), resolved(problem), caps);
  EXPECT_FALSE(ranked.empty());
  return ranked.empty() ? Config{} : ranked.front().config;
}

TEST(ChooseGrouped, ByAnAverageGroup) {
  // Tokens of experts while decoding: B is read once, by the skinny loop.
  Problem decode = rows_in_groups(256, 768, 2048, 128);
  decode.a.type = decode.b.type = decode.d.type = DataType::bf16;
  EXPECT_TRUE(best(decode).main_loop() == MainLoop::skinny) << to_string(best(decode));
  EXPECT_EQ(best(decode).schedule, Schedule::simple);
  // And while there are many of them.
  const Problem train = rows_in_groups(64 * 512, 4096, 4096, 64);
  EXPECT_GE(best(train).tile_m * best(train).tile_n, 128u * 128) << to_string(best(train));
  EXPECT_EQ(best(train).schedule, Schedule::simple);
  const Problem small = rows_in_groups(640, 128, 256, 4);
  EXPECT_LE(best(small).tile_m, 64u) << to_string(best(small));
  const Problem gradient = depth_in_groups(4096, 4096, 64 * 512, 64);
  EXPECT_EQ(best(gradient).schedule, Schedule::simple);
  // Dense products see none of the rows for groups.
  for (const ScoredRow& scored : rank(built_in_table("nvidia_sm90"),
                                      resolved(gemm(2, 768, 2048, DataType::bf16)), test::h200())) {
    EXPECT_EQ(scored.row->family, "gemm") << to_string(scored);
  }
}

// Rows of the direct loop count like all others, with the time of their copies: A's slots and all
// matrices of B.
TEST(ChooseGrouped, TheDirectLoopPaysForItsCopies) {
  TuningTable table = built_in_table("nvidia_sm90");
  TuningRow row = table.rows.front();
  row.family = "grouped";
  row.config = test::config(
      "khr_direct:tile=128x64x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32,subtiles=4,"
      "pack=ab");
  row.rate = 1e6;
  table.rows.push_back(row);
  const Problem train = rows_in_groups(64 * 128, 2048, 2048, 8);
  const auto cost = [&](Problem p, const TimingModel& timing) {
    return estimate_cost(row.config, row.rate, timing, resolved(p), trusting(test::h200()));
  };
  Problem shared = train;
  shared.grouping->b = GroupedB::shared;
  TimingModel free_copies = table.timing;
  free_copies.copy = 1e30;
  const auto copies = [&](const Problem& p) {
    return cost(p, table.timing) - cost(p, free_copies);
  };
  const double slots = 64.0 * 128 / 128 + 8;
  const double of_a = slots * 128 * 2048, of_b = 2048.0 * 2048;
  EXPECT_NEAR(copies(train) / copies(shared), (of_a + 8 * of_b) / (of_a + of_b), 1e-6);
  const auto ranked = rank(table, resolved(train), trusting(test::h200()));
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(ranked.front().config.main_loop(), MainLoop::khr_direct);
  Problem tight = train;
  tight.max_workspace_bytes = 1 << 20;
  for (const ScoredRow& scored : rank(table, resolved(tight), trusting(test::h200()))) {
    EXPECT_NE(scored.config.main_loop(), MainLoop::khr_direct);
  }
}

TEST(ChooseGrouped, SomethingIsLegalOnEveryDevice) {
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const std::uint32_t groups : {1u, 100u, 65535u}) {
      for (const std::uint64_t size : {1u, 5000u}) {
        for (const Problem& p :
             {rows_in_groups(size, 100, 50, groups), depth_in_groups(100, 50, size, groups)}) {
          const auto ranked = rank(built_in_table("generic"), resolved(p), caps);
          ASSERT_FALSE(ranked.empty()) << caps.name;
          for (const ScoredRow& scored : ranked) {
            ASSERT_TRUE(is_legal(scored.config, resolved(p), caps));
            EXPECT_EQ(scored.config.slices, 1u);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace vkgemm
