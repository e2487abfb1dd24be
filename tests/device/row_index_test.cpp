// Groups whose rows, matrices or bounds are found on the device: rows of A that are gathered, rows
// of D that are scattered or added up, matrices of B by index, sizes in place of offsets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "direct.hpp"
#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr std::uint32_t no_group = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t most_index = std::numeric_limits<std::uint32_t>::max();

class GroupNumbers : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
};
VKGEMM_ON_EACH_PATH(GroupNumbers);

class RowIndex : public GroupNumbers {
 protected:
  void SetUp() override {
    if (GetParam() == Path::nv) GTEST_SKIP() << "path nv finds no rows";
    GroupNumbers::SetUp();
  }
};
VKGEMM_ON_EACH_PATH(RowIndex);

const Offsets offsets = {0, 5, 5, 40, 41};

Problem by_index(DataType input, const Grouping& fields, DataType output = DataType::f32) {
  Problem problem = grouped(gemm({0, 21, 37}, input, output), offsets);
  const std::uint32_t groups = problem.grouping->groups;
  problem.grouping = fields;
  problem.grouping->groups = groups;
  return problem;
}

const Grouping gather = {.b = GroupedB::per_group, .a_rows = 19, .a_terms = 3};
const Grouping scatter = {.b = GroupedB::per_group, .d_rows = 50};
const Grouping sum = {.d_rows = 11, .d_terms = 4};
const Grouping weighted = {
    .b = GroupedB::per_group, .d_rows = 9, .d_terms = 5, .row_weights = true};
const Grouping both = {.a_rows = 7, .a_terms = 7, .d_rows = 7, .d_terms = 7, .row_weights = true};
const Grouping permuted = {.a_rows = 41, .d_rows = 41};

const Grouping all_kinds[] = {gather, scatter, sum, weighted, both, permuted};

TEST_P(RowIndex, EveryKind) {
  for (const Grouping& kind : all_kinds) {
    const Problem problem = by_index(input(), kind);
    EXPECT_TRUE(passes_on_both(config(), with_padding(problem), {.shift = 1, .offsets = offsets}));
    EXPECT_TRUE(passes_gates(config(), with_padding(problem, 8, true), {.offsets = offsets}));
  }
}

TEST_P(RowIndex, EveryConfigurationGathersAndAdds) {
  for (const DataType type : inputs_of(GetParam())) {
    for (const Config& one : small_configs(GetParam(), type)) {
      if (!descriptor(one).finds_rows) continue;
      EXPECT_TRUE(passes_gates(one, with_padding(by_index(type, both)), {.offsets = offsets}));
    }
  }
}

TEST_P(RowIndex, EveryTypeOfD) {
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::s8, DataType::e4m3}) {
    for (const Grouping& kind : {scatter, weighted}) {
      Problem problem = by_index(input(), kind, type);
      if (type == DataType::s8) problem.epilogue.zero_point = 3;
      EXPECT_TRUE(passes_gates(config(), with_padding(problem), {.offsets = offsets}));
    }
  }
}

// All other operands have the rows of the product, but for the scales of A's rows.
TEST_P(RowIndex, WholeEpilogue) {
  for (const Grouping& kind : all_kinds) {
    Problem problem = by_index(input(), kind);
    problem.epilogue = oracle::heavy_epilogue();
    problem.epilogue.row_scales = Scales::shared;
    problem.epilogue.column_scales = Scales::per_matrix;
    problem.epilogue.bias_batch_stride = 23;
    EXPECT_TRUE(passes_gates(config(), with_padding(problem), {.offsets = offsets}));
  }
}

TEST_P(RowIndex, Gates) {
  for (const Grouping& kind : {gather, weighted}) {
    Problem problem = by_index(input(), kind);
    problem.gated = {.gate = Gate::reglu};
    problem = with_padding(problem);
    const std::vector<Config> configs = small_configs(GetParam(), input());
    const auto legal = std::ranges::find_if(configs, [&](const Config& config) {
      return is_legal(config, resolve(problem).value(), target());
    });
    ASSERT_NE(legal, configs.end());
    EXPECT_TRUE(passes_gates(*legal, problem, {.offsets = offsets}));
  }
}

// More matrices than groups, or fewer: vectors along N are the matrices'.
void expect_matrices_of_b(const Config& config, DataType input, const Grouping& fields) {
  for (const std::uint32_t matrices : {1u, 3u, 9u}) {
    Problem problem = by_index(input, fields);
    problem.grouping->b = GroupedB::per_group;
    problem.grouping->b_matrices = matrices;
    problem.epilogue.bias = Bias::along_n;
    problem.epilogue.bias_batch_stride = 24;
    problem.epilogue.column_scales = Scales::per_matrix;
    EXPECT_TRUE(passes_on_both(config, with_padding(problem), {.offsets = offsets}));
  }
}

TEST_P(GroupNumbers, MatricesOfB) { expect_matrices_of_b(config(), input(), {}); }
TEST_P(RowIndex, MatricesOfB) { expect_matrices_of_b(config(), input(), both); }

TEST_P(GroupNumbers, SizesInPlaceOfOffsets) {
  for (const GroupBounds bounds : {GroupBounds::sizes, GroupBounds::starts_and_sizes}) {
    for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
      for (const OffsetType type : {OffsetType::int32, OffsetType::int64}) {
        Problem problem = grouped(gemm({17, 21, 37}, input()), offsets, along);
        problem.grouping->bounds = bounds;
        problem.grouping->offsets = type;
        EXPECT_TRUE(passes_on_both(config(), with_padding(problem), {.offsets = offsets}));
      }
    }
  }
}

// More groups than the kernel that adds their sizes takes at a time.
TEST_P(GroupNumbers, ManySizes) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t g = 0; g < 700; ++g) sizes.push_back(g % 5 == 0 ? g % 3 : 0);
  const Offsets many = offsets_of(sizes);
  Problem problem = grouped(gemm({0, 9, 5}, input()), many);
  problem.grouping->bounds = GroupBounds::sizes;
  Trial trial(problem, Fill::integers, {.offsets = many});
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(trial.is_exact());
  EXPECT_EQ(trial.bad_group(), no_group);
}

TEST_P(GroupNumbers, GapsBetweenGroups) {
  for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
    Problem problem = grouped(gemm({17, 21, 37}, input()), offsets, along);
    problem.grouping->bounds = GroupBounds::starts_and_sizes;
    Trial trial(with_padding(problem), Fill::integers, {.offsets = offsets});
    trial.set_integer(OperandId::group_sizes, 0, 2);
    trial.set_integer(OperandId::offsets, 2, 9);
    trial.set_integer(OperandId::group_sizes, 2, 21);
    ASSERT_TRUE(trial.run(config()));
    EXPECT_TRUE(trial.is_exact());
    EXPECT_EQ(trial.bad_group(), no_group);
  }
}

TEST_P(GroupNumbers, BadSizesAreReported) {
  OffsetType type = OffsetType::int32;
  const auto reported = [&](GroupBounds bounds, OperandId id, std::uint64_t place,
                            std::int64_t value) {
    Problem problem = grouped(gemm({17, 21, 37}, input()), offsets);
    problem.grouping->bounds = bounds;
    problem.grouping->offsets = type;
    Trial trial(with_padding(problem), Fill::integers, {.offsets = offsets});
    trial.set_integer(id, place, value);
    EXPECT_TRUE(trial.run(config()));
    EXPECT_TRUE(trial.is_exact());
    return trial.bad_group();
  };
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(reported(GroupBounds::sizes, OperandId::group_sizes, 2, -7), 2u);
  EXPECT_EQ(reported(GroupBounds::sizes, OperandId::group_sizes, 1, most), 1u);
  EXPECT_EQ(reported(GroupBounds::starts_and_sizes, OperandId::group_sizes, 1, -1), 1u);
  EXPECT_EQ(reported(GroupBounds::starts_and_sizes, OperandId::group_sizes, 3, most), 3u);
  EXPECT_EQ(reported(GroupBounds::starts_and_sizes, OperandId::offsets, 3, most), 3u);
  EXPECT_EQ(reported(GroupBounds::starts_and_sizes, OperandId::offsets, 0, -3), 0u);

  type = OffsetType::int64;
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t size : {(std::int64_t{1} << 32) + 3, huge}) {
    EXPECT_EQ(reported(GroupBounds::sizes, OperandId::group_sizes, 1, size), 1u);
    EXPECT_EQ(reported(GroupBounds::starts_and_sizes, OperandId::group_sizes, 3, size), 3u);
    EXPECT_EQ(reported(GroupBounds::starts_and_sizes, OperandId::offsets, 3, size), 3u);
    EXPECT_EQ(reported(GroupBounds::starts_and_sizes, OperandId::offsets, 0, -size), 0u);
  }
}

// Indices are clamped to A's rows and B's matrices, rows beyond D are not stored, and the group is
// reported.
TEST_P(RowIndex, BadIndicesAreReported) {
  for (const Grouping& kind : all_kinds) {
    for (const std::uint64_t index : {std::uint64_t{57}, most_index}) {
      // The whole product has an epilogue, also where a row is not stored to D.
      Problem problem = by_index(input(), kind);
      problem.epilogue.aux = true;
      problem.epilogue.steps[0] = {.op = StepOp::amax, .operand = StepOperand::t0};
      problem.epilogue.tensors[0] = TensorShape::scalar;
      problem.t0.type = DataType::f32;
      Trial trial(with_padding(problem), Fill::integers, {.offsets = offsets});
      trial.set_integer(OperandId::row_index, 7, static_cast<std::int64_t>(index));
      trial.set_integer(OperandId::row_index, 40, static_cast<std::int64_t>(index));
      ASSERT_TRUE(trial.run(config()));
      EXPECT_TRUE(trial.is_exact());
      EXPECT_EQ(trial.bad_group(), 2u);
    }
  }
  Problem problem = by_index(input(), {.b = GroupedB::per_group, .b_matrices = 3});
  Trial trial(with_padding(problem), Fill::integers, {.offsets = offsets});
  trial.set_integer(OperandId::b_index, 3, 3);
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(trial.is_exact());
  EXPECT_EQ(trial.bad_group(), 3u);
}

// The first of several rows that have one term counts, and a term that no row has is left out.
TEST_P(RowIndex, TermsOfSeveralRowsAndOfNone) {
  Trial trial(with_padding(by_index(input(), weighted)), Fill::integers, {.offsets = offsets});
  for (const std::uint64_t row : {3u, 17u, 30u}) trial.set_integer(OperandId::row_index, row, 12);
  for (std::uint64_t row = 31; row < 40; ++row) trial.set_integer(OperandId::row_index, row, 44);
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(trial.is_exact());
  EXPECT_EQ(trial.bad_group(), no_group);
}

TEST_P(RowIndex, NanIsOfItsRowsAlone) {
  const Problem problem = by_index(input(), weighted);
  Trial trial(problem, Fill::random, {.poison = std::byte{0}, .offsets = offsets});
  trial.set(OperandId::a, 6, 0, nan);
  trial.set_integer(OperandId::row_index, 6, 2 * 5 + 1);
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(std::isnan(trial.d(2, 0)));
  for (const std::uint64_t row : {0u, 1u, 3u, 8u}) EXPECT_FALSE(std::isnan(trial.d(row, 0)));
}

// The loop that takes fragments: A packed by index.
class DirectRowIndex : public Direct {};

TEST_F(DirectRowIndex, EveryKind) {
  for (const Case& c : configs_) {
    for (const Grouping& kind : all_kinds) {
      Problem problem = by_index(c.input, kind, c.input);
      problem.n = 24;
      problem.k = std::uint64_t{2} * c.config.tile_k;
      EXPECT_TRUE(passes_on_both(c.config, with_padding(problem, 8, true), {.offsets = offsets}));
    }
  }
}

}  // namespace
}  // namespace vkgemm::test
