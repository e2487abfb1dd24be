// Sums of columns by a step: on each main loop, for batches, groups, gates, row reductions, and for
// rows of any number.
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

// Sums of 2 · v to t1, after a step that reads t0; D goes on.
Problem with_sums(Problem problem) {
  problem.epilogue.tensors = {TensorShape::along_n, TensorShape::along_n};
  problem.epilogue.steps = {EpilogueStep{.op = StepOp::add, .operand = StepOperand::t0},
                            EpilogueStep{.op = StepOp::multiply, .number = 2.0f},
                            EpilogueStep{.op = StepOp::sum_columns, .operand = StepOperand::t1},
                            EpilogueStep{.op = StepOp::subtract, .number = 1.0f}};
  problem.t1.type = DataType::f32;
  return problem;
}

class ColumnSums : public EachPath {
 protected:
  void SetUp() override {
    VKGEMM_SKIP_IF(why_skip(GetParam()));
    VKGEMM_SKIP_IF(GetParam() == Path::nv ? "steps do not sum columns on path nv" : "");
  }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
  static bool is_legal_here(const Config& config, const Problem& problem) {
    return is_legal(config, resolve(problem).value(), target());
  }
};
VKGEMM_ON_EACH_PATH(ColumnSums);

TEST_P(ColumnSums, OnEveryConfiguration) {
  for (const DataType type : inputs_of(GetParam())) {
    for (const Config& one : small_configs(GetParam(), type)) {
      const Problem problem =
          with_sums(gemm({2u * one.tile_m + 3u, one.tile_n + 5u, 9}, type, DataType::f32));
      if (!is_legal_here(one, problem) || is_left_out(one, problem)) continue;
      EXPECT_TRUE(passes_gates(one, with_padding(problem), {.shift = 1}));
    }
  }
}

// Invocations that have values of several columns, or of many rows; tiles of few rows.
TEST_P(ColumnSums, OnTilesOfOddWidths) {
  constexpr std::string_view texts[] = {
      "khr:tile=32x48x16,fragment=8x8x8,subgroups=1x2,subgroup_size=8,subtiles=2,swizzle=1,peel=0",
      "khr:tile=16x80x16,fragment=8x8x8,subgroups=2x1,subgroup_size=8,subtiles=1,swizzle=1,peel=0",
      "khr:tile=32x96x32,fragment=16x16x16,subgroups=1x2,subgroup_size=32,subtiles=2,swizzle=1",
      "khr:tile=32x160x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32,swizzle=1",
      "khr_direct:tile=32x48x16,fragment=8x8x8,subgroups=2x2,subgroup_size=8,pack=ab,swizzle=1",
      "fma:tile=64x16x8,fragment=4x4,swizzle=1,peel=0",
      "fma:tile=16x48x8,fragment=8x8,swizzle=1,peel=0",
      "skinny:tile=3x16x8,swizzle=1",
      "skinny:tile=1x64x32,swizzle=2",
  };
  int tried = 0;
  for (const std::string_view text : texts) {
    const Config one = parse_config(text).value();
    const Problem problem = with_sums(gemm({35, 101, 9}, input(), DataType::f32));
    if (one.path() != GetParam() || !is_legal_here(one, problem)) continue;
    EXPECT_TRUE(passes_gates(one, problem));
    ++tried;
  }
  EXPECT_GE(tried, on_cpu() ? 3 : 1);
}

// More tiles than the second kernel takes at a time, and columns in more than one of its
// workgroups.
TEST_P(ColumnSums, OfManyRows) {
  EXPECT_TRUE(
      passes_gates(config(), with_sums(gemm({300u * config().tile_m - 1u, 37, 1}, input()))));
  EXPECT_TRUE(passes_gates(config(), with_sums(gemm({1, 1, 3}, input()))));
  EXPECT_TRUE(passes_gates(config(), with_sums(gemm({5, 3, 0}, input()))));
}

TEST_P(ColumnSums, OfABatch) {
  Problem problem = with_sums(gemm({19, 21, 9}, input()));
  problem.batch = 3;
  EXPECT_TRUE(passes_gates(config(), problem));
  problem.t0.batch_stride = 21;
  problem.t1.batch_stride = 29;
  EXPECT_TRUE(passes_gates(config(), with_padding(problem), {.shift = 1}));
}

// An empty group's sums are zeros.
TEST_P(ColumnSums, OfGroups) {
  const Offsets offsets = offsets_of(awkward_sizes(config().tile_m));
  Problem problem = grouped(with_sums(gemm({0, 21, 9}, input())), offsets);
  EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = offsets}));
  problem.t1.batch_stride = 40;
  problem.grouping->b = GroupedB::shared;
  EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = offsets}));
}

TEST_P(ColumnSums, OfGroupsOfK) {
  const Offsets offsets = offsets_of({9, 0, 33, 5});
  const Problem problem = grouped(with_sums(gemm({19, 21, 0}, input())), offsets, GroupAlong::k);
  EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = offsets}));
}

TEST_P(ColumnSums, BehindAGate) {
  Problem problem = with_sums(gemm({19, 24, 37}, input()));
  problem.gated = Gated{.gate = Gate::reglu};
  problem.d.layout = Layout::col_major;
  int tried = 0;
  for (const Config& one : small_configs(GetParam(), input())) {
    if (!is_legal_here(one, problem) || is_left_out(one, problem)) continue;
    EXPECT_TRUE(passes_gates(one, problem));
    ++tried;
  }
  EXPECT_GE(tried, 1);
}

TEST_P(ColumnSums, BesideEverythingElse) {
  Problem problem = gemm({35, 21, 9}, input());
  problem.epilogue.alpha = 2.0f;
  problem.epilogue.beta = -1.0f;
  problem.epilogue.bias = Bias::along_n;
  problem.epilogue.activation = Activation::relu;
  problem.epilogue.aux = true;
  problem.epilogue.clamp_max = 20.0f;
  problem.epilogue.tensors[0] = TensorShape::along_n;
  problem.epilogue.steps[0] = {.op = StepOp::sum_columns, .operand = StepOperand::t0};
  problem.t0.type = DataType::f32;
  EXPECT_TRUE(passes_gates(config(), with_padding(problem)));
}

// A NaN stays in its column.
TEST_P(ColumnSums, NanStaysInItsColumn) {
  Trial trial(with_sums(gemm({9, 21, 12}, input(), DataType::f32)), Fill::random,
              {.poison = std::byte{0}});
  trial.set(OperandId::b, 3, 5, nan);
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(trial.is_within_bound());
  for (std::uint64_t j = 0; j < 21; ++j) {
    EXPECT_EQ(std::isnan(trial.get(OperandId::t1, 0, j)), j == 5) << j;
  }
}

}  // namespace
}  // namespace vkgemm::test
