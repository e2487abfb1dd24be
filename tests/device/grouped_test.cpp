// Grouped products: groups of rows and of K, of any sizes, on both schedules.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "groups.hpp"
#include "harness.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr std::uint32_t no_group = std::numeric_limits<std::uint32_t>::max();

class Grouped : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
};
VKGEMM_ON_EACH_PATH(Grouped);

// --- groups of rows
// ---------------------------------------------------------------------------------------

TEST_P(Grouped, RowsOfAnySize) {
  const Offsets offsets = offsets_of(awkward_sizes(config().tile_m));
  for (const GroupedB b : {GroupedB::shared, GroupedB::per_group}) {
    Problem problem = grouped(gemm({0, 21, 37}, input()), offsets);
    problem.grouping->b = b;
    EXPECT_TRUE(passes_on_both(config(), with_padding(problem), {.shift = 1, .offsets = offsets}));
  }
}

// A column-major A is loaded element by element, whatever its alignment.
TEST_P(Grouped, RowsInEveryLayout) {
  const Offsets offsets = offsets_of(awkward_sizes(config().tile_m));
  for (const Layout a : {Layout::row_major, Layout::col_major}) {
    for (const Layout b : {Layout::row_major, Layout::col_major}) {
      Problem problem = grouped(gemm({0, 24, 40}, input()), offsets);
      problem.grouping->b = GroupedB::per_group;
      problem.a.layout = a;
      problem.b.layout = b;
      EXPECT_TRUE(passes_gates(config(), with_padding(problem, 8, true), {.offsets = offsets}));
    }
  }
}

// Every kernel: rings, the skinny loop, and all shapes of matrix that the device can do.
TEST_P(Grouped, RowsOnEveryConfiguration) {
  for (const DataType type : inputs_of(GetParam())) {
    std::size_t turn = 0;
    for (const Config& one : small_configs(GetParam(), type)) {
      // The others have groups of K in DepthOnManyConfigurations.
      if (++turn % 2 == 0 && !peels(one) && on_cpu() && GetParam() == Path::khr) continue;
      const Offsets offsets = offsets_of({one.tile_m + 1, 0, 3, 2 * one.tile_m - 1});
      Problem problem =
          grouped(gemm({0, one.tile_n + 8, std::uint64_t{2} * one.tile_k + 8}, type), offsets);
      problem.grouping->b = GroupedB::per_group;
      problem.grouping->offsets = OffsetType::int64;
      EXPECT_TRUE(
          passes_gates(persistent(one), with_padding(problem, 8, true), {.offsets = offsets}));
    }
  }
}

TEST_P(Grouped, OneGroupAndNone) {
  for (const Offsets& offsets : {Offsets{0, 50}, Offsets{0, 0}, Offsets{7, 7}, Offsets{3, 50}}) {
    EXPECT_TRUE(passes_on_both(config(), grouped(gemm({0, 9, 10}, input()), offsets),
                               {.offsets = offsets}));
  }
  Problem none = gemm({10, 10, 10}, input());
  none.grouping = Grouping{};
  EXPECT_TRUE(passes_gates(config(), none, {.offsets = {0}}));
}

// More groups than rows of most of them, as tokens of experts have while decoding.
TEST_P(Grouped, ThousandsOfSmallGroups) {
  std::vector<std::uint64_t> sizes(3000);
  for (std::size_t g = 0; g < sizes.size(); ++g) sizes[g] = g * g % 7 % 4;
  const Offsets offsets = offsets_of(sizes);
  Problem problem = grouped(gemm({0, 8, 8}, input()), offsets);
  problem.grouping->b = GroupedB::per_group;
  EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = offsets}));
}

// The most groups, nearly all of them empty.
TEST_P(Grouped, AsManyGroupsAsThereMayBe) {
  std::vector<std::uint64_t> sizes(65535);
  sizes[0] = 3;
  sizes[40000] = 70;
  sizes[65534] = 1;
  const Offsets offsets = offsets_of(sizes);
  const Problem problem = grouped(gemm({0, 8, 8}, input()), offsets);
  Trial trial(problem, Fill::integers, {.offsets = offsets});
  ASSERT_TRUE(trial.run(persistent(config(), 16)));
  EXPECT_TRUE(trial.is_exact());
  EXPECT_EQ(trial.bad_group(), no_group);
}

TEST_P(Grouped, OneGiantGroup) {
  const Offsets offsets = offsets_of({0, 3, 1999, 0, 5});
  EXPECT_TRUE(
      passes_on_both(config(), grouped(gemm({0, 17, 9}, input()), offsets), {.offsets = offsets}));
}

// Rows before the first group and behind the last one keep what they held, and are not read.
TEST_P(Grouped, RowsOfNoGroupStayUntouched) {
  const Offsets offsets = offsets_of({4, 0, config().tile_m}, 3);
  Problem problem = grouped(gemm({0, 21, 37}, input()), offsets);
  problem.m += 2 * config().tile_m + 1;
  problem.epilogue.aux = true;
  for (const OffsetType type : {OffsetType::int32, OffsetType::int64}) {
    problem.grouping->offsets = type;
    const TrialOptions options{.offsets = offsets};
    EXPECT_TRUE(passes_on_both(config(), with_padding(problem), options));
    Trial trial(problem, Fill::integers, options);
    for (const std::uint64_t row : {std::uint64_t{2}, problem.m - 1})
      trial.set(OperandId::a, row, 0, nan);
    ASSERT_TRUE(trial.run(config()));
    EXPECT_TRUE(trial.is_exact());
    EXPECT_EQ(trial.bad_group(), no_group);
  }
}

TEST_P(Grouped, WholeEpilogueOfRows) {
  const Offsets offsets = offsets_of({5, 0, config().tile_m + 3, 1});
  constexpr std::pair<DataType, Bias> cases[] = {{DataType::f16, Bias::along_n},
                                                 {DataType::bf16, Bias::along_m},
                                                 {DataType::f32, Bias::along_n}};
  for (const auto& [type, bias] : cases) {
    const DataType output = GetParam() == Path::nv && type != input() ? DataType::f32 : type;
    Problem problem = grouped(gemm({0, 24, 19}, input(), output), offsets);
    problem.c.type = type;
    problem.epilogue = oracle::heavy_epilogue();
    problem.epilogue.bias = bias;
    problem.epilogue.bias_type = type;
    if (bias == Bias::along_n) problem.epilogue.bias_batch_stride = 26;
    const Config one = type == DataType::bf16 ? persistent(config()) : config();
    EXPECT_TRUE(passes_gates(one, with_padding(problem, 8, true), {.offsets = offsets}));
  }
}

TEST_P(Grouped, InPlace) {
  const Offsets offsets = offsets_of({5, 0, 30, 1});
  Problem problem = grouped(gemm({0, 19, 21}, input()), offsets);
  problem.c.type = DataType::f32;
  problem.epilogue.beta = -0.5f;
  EXPECT_TRUE(passes_on_both(config(), problem, {.in_place = true, .offsets = offsets}));
}

// --- groups of K
// ------------------------------------------------------------------------------------------

TEST_P(Grouped, DepthOfAnySizeInEveryLayout) {
  const Offsets offsets = offsets_of(awkward_sizes(config().tile_k), 2);
  for (const Layout a : {Layout::row_major, Layout::col_major}) {
    for (const Layout b : {Layout::row_major, Layout::col_major}) {
      for (const Layout d : {Layout::row_major, Layout::col_major}) {
        // A column-major D swaps A and B: where compiling is slow, once is enough.
        if (on_cpu() && GetParam() == Path::khr && d != Layout::row_major && a != b) continue;
        Problem problem = grouped(gemm({24, 40, 0}, input()), offsets, GroupAlong::k);
        problem.k += 5;
        problem.a.layout = a;
        problem.b.layout = b;
        problem.c.layout = problem.d.layout = problem.aux.layout = d;
        EXPECT_TRUE(passes_on_both(config(), with_padding(problem, 8, true), {.offsets = offsets}));
      }
    }
  }
}

// Rings, whose main loop begins and ends in many ways, few rows, and some that compile quickly.
TEST_P(Grouped, DepthOnManyConfigurations) {
  const std::vector<Config> configs = small_configs(GetParam(), input());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const Config& one = configs[i];
    if (on_cpu() && GetParam() == Path::khr && (peels(one) || (i % 2 == 0 && !is_ring(one)))) {
      continue;
    }
    const std::uint64_t step = k_step(one);
    const Offsets offsets = offsets_of({step + 1, 0, 3 * step, 5 * step - 1});
    const Problem problem =
        grouped(gemm({one.tile_m + 3, one.tile_n + 5, 0}, input()), offsets, GroupAlong::k);
    EXPECT_TRUE(passes_gates(persistent(one), with_padding(problem), {.offsets = offsets}));
  }
}

// An empty group's D is the epilogue of beta * C alone, also where alpha is not finite.
TEST_P(Grouped, WholeEpilogueOfDepth) {
  const Offsets offsets = offsets_of({5, 0, 70, 1, 0});
  Problem problem = grouped(gemm({11, 24, 0}, input()), offsets, GroupAlong::k);
  problem.epilogue = oracle::heavy_epilogue();
  problem.epilogue.bias_batch_stride = 30;
  EXPECT_TRUE(passes_on_both(config(), with_padding(problem), {.offsets = offsets}));

  problem.epilogue = {.alpha = std::numeric_limits<float>::infinity(), .beta = 2.0f};
  problem.c.batch_stride = 0;
  const Offsets empty{0, 0, 0};
  problem = grouped(problem, empty, GroupAlong::k);
  problem.k = 9;
  EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = empty}));
  problem.k = 0;
  EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = empty}));
}

// --- schedules
// --------------------------------------------------------------------------------------------

TEST_P(Grouped, SchedulesGiveTheSameBits) {
  const Offsets rows = offsets_of(awkward_sizes(config().tile_m));
  const Offsets depth = offsets_of(awkward_sizes(config().tile_k));
  for (const auto& [problem, offsets] :
       {std::pair{grouped(gemm({0, 50, 37}, input()), rows), rows},
        std::pair{grouped(gemm({50, 37, 0}, input()), depth, GroupAlong::k), depth}}) {
    Trial trial(problem, Fill::random, {.offsets = offsets});
    ASSERT_TRUE(trial.run(config()));
    // One for all tiles, more than there are tiles, and what vkgemm takes for best.
    for (const std::uint32_t workgroups : {1u, 2u, 7u, 60000u, 0u}) {
      EXPECT_TRUE(trial.repeats(persistent(config(), workgroups))) << workgroups;
    }
  }
}

TEST_P(Grouped, ExplainsItself) {
  Problem problem = gemm({104, 64, 64}, input());
  problem.grouping = {.groups = 5, .b = GroupedB::per_group};
  problem.a.layout = Layout::col_major;
  const auto plan = context().plan(problem, persistent(config(), 2));
  ASSERT_TRUE(succeeds(plan));
  const std::uint64_t slots = 104 / config().tile_m + 5;
  for (const std::string& part :
       {std::string("grouped along m: 5 groups, b per_group, "),
        std::to_string(slots) + " slots of " + std::to_string(config().tile_m) + " rows",
        std::string("schedule persistent"), std::string("grid: 2 workgroups"),
        std::string("element by element: groups begin anywhere in its rows")}) {
    EXPECT_NE(plan->explain().find(part), std::string::npos) << part << "\n" << plan->explain();
  }
  EXPECT_EQ(plan->workspace_bytes(), 4u);
  problem.max_workspace_bytes = 0;
  const auto without = context().plan(problem, config());
  ASSERT_TRUE(succeeds(without));
  EXPECT_EQ(without->workspace_bytes(), 0u);
}

// The library's choice when nobody says, and that of each path, for groups of very different sizes.
TEST_P(Grouped, CandidatesPassTheGates) {
  const Offsets offsets = offsets_of({3, 0, 2, 1, 4, 0, 0, 90});
  Problem problem = grouped(gemm({0, 40, 48}, input()), offsets);
  problem.grouping->b = GroupedB::per_group;
  const auto candidates = context().candidates(problem);
  ASSERT_TRUE(succeeds(candidates));
  ASSERT_FALSE(candidates->empty());
  const auto chosen = context().plan(problem);
  ASSERT_TRUE(succeeds(chosen));
  EXPECT_EQ(chosen->config(), candidates->front().config);
  const auto own = plan_on(GetParam(), problem);
  ASSERT_TRUE(succeeds(own));
  for (const Plan* plan : {&*chosen, &*own}) {
    Trial trial(problem, Fill::random, {.offsets = offsets});
    ASSERT_TRUE(trial.run(*plan)) << to_string(plan->config());
    EXPECT_TRUE(trial.is_within_bound()) << to_string(plan->config());
  }
}

// --- bad offsets
// ------------------------------------------------------------------------------------------

// The guard pages of guard_test say that nothing is touched elsewhere.
TEST_P(Grouped, BadOffsetsAreClampedAndTold) {
  for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
    for (const Config& one : {config(), persistent(config())}) {
      clamps_and_tells(one, input(), along);
    }
  }
}

TEST_P(Grouped, HugeOffsetsAreClampedAndTold) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const Offsets offsets{least, 10, (std::int64_t{1} << 32) + 12, most, most};
  Problem problem = grouped(gemm({0, 21, 19}, input()), {0, 0, 0, 0, 40});
  problem.grouping->offsets = OffsetType::int64;
  Trial trial(problem, Fill::integers, {.offsets = offsets});
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(trial.is_exact());
  EXPECT_EQ(trial.bad_group(), 0u);
}

// The lowest of many, whichever workgroups look at them.
TEST_P(Grouped, TheLowestBadGroupIsTold) {
  Offsets offsets = offsets_of(std::vector<std::uint64_t>(20000, 0));
  for (const std::size_t g : {19999u, 15001u, 777u}) offsets[g] = -1;
  Problem problem = grouped(gemm({0, 8, 8}, input()), offsets);
  problem.m = 4;
  for (const Config& one : {config(), persistent(config(), 1)}) {
    Trial trial(problem, Fill::integers, {.offsets = offsets});
    ASSERT_TRUE(trial.run(one));
    EXPECT_EQ(trial.bad_group(), 776u) << "ends at -1";
  }
}

}  // namespace
}  // namespace vkgemm::test
