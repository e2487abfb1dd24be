// Groups with rows by index, matrices by index or sizes: refusals, dispatches, and the indices of
// tests and benchmarks.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/dispatch_plan.hpp"
#include "kernels/lowering.hpp"
#include "problem/operands.hpp"
#include "problem/resolve.hpp"
#include "problem/row_index.hpp"
#include "test_devices.hpp"
#include "tuning/nearest.hpp"
#include "tuning/tuned_problem.hpp"
#include "vkgemm/config.hpp"

namespace vkgemm {
namespace {

using test::contains;

Problem experts() {
  Problem problem = test::gemm(96, 64, 32);
  problem.grouping = Grouping{.groups = 4, .b = GroupedB::per_group};
  return problem;
}

TEST(RowIndex, RefusesWhatDoesNotGoWithIt) {
  const std::pair<std::function<void(Problem&, Grouping&)>, std::string_view> cases[] = {
      {[](Problem&, Grouping& g) { g.a_rows = std::uint64_t{1} << 31; },
       "grouping.a_rows is 2147483648: at most 2147483647"},
      {[](Problem&, Grouping& g) { g.a_terms = 0; }, "grouping.a_terms is 0"},
      {[](Problem&, Grouping& g) { g.a_terms = 2; },
       "grouping.a_terms is 2 and grouping.a_rows is 0"},
      {[](Problem&, Grouping& g) { g.d_rows = 1u << 20, g.d_terms = 1u << 12; },
       "grouping.d_rows is 1048576 and grouping.d_terms is 4096: at most 4294967295 indices"},
      {[](Problem&, Grouping& g) { g.d_terms = 3; },
       "grouping.d_terms is 3 and grouping.d_rows is 0"},
      {[](Problem&, Grouping& g) { g.row_weights = true; },
       "grouping.row_weights is true and grouping.d_rows is 0"},
      {[](Problem&, Grouping& g) { g.b = GroupedB::shared, g.b_matrices = 2; },
       "grouping.b_matrices is 2 and grouping.b is shared"},
      {[](Problem& p, Grouping& g) { g.a_rows = 8, p.a.layout = Layout::col_major; },
       "a.layout is col_major and grouping.a_rows is 8"},
      {[](Problem&, Grouping& g) { g.along = GroupAlong::k, g.b = GroupedB::shared, g.d_rows = 5; },
       "grouping.d_rows is 5 and grouping.along is k"},
      {[](Problem& p, Grouping& g) {
         g.d_rows = 9, g.d_terms = 2;
         p.a.type = p.b.type = DataType::s8, p.d.type = DataType::s32;
       },
       "d.type is s32 and rows are added up"},
      {[](Problem& p, Grouping& g) {
         g.a_rows = 9;
         p.epilogue.steps[0] = {.op = StepOp::sum_columns, .operand = StepOperand::t0};
         p.epilogue.tensors[0] = TensorShape::along_n;
         p.t0.type = DataType::f32;
       },
       "a step sums columns to t0 and grouping has rows or matrices by index"},
      {[](Problem&, Grouping& g) { g.bounds = static_cast<GroupBounds>(9); },
       "grouping.bounds is 9: no such enumerator"},
  };
  for (const auto& [change, message] : cases) {
    Problem problem = experts();
    change(problem, *problem.grouping);
    const auto resolved = resolve(problem);
    ASSERT_FALSE(resolved.has_value()) << message;
    EXPECT_TRUE(contains(resolved.error().message, message)) << resolved.error().message;
  }
}

TEST(RowIndex, OperandsHaveTheRowsThatTheyAreReadBy) {
  Problem problem = experts();
  problem.epilogue.beta = 1.0f;
  problem.epilogue.bias = Bias::along_n;
  problem.epilogue.bias_batch_stride = 64;
  problem.grouping->a_rows = 10;
  problem.grouping->d_rows = 7;
  problem.grouping->d_terms = 5;
  problem.grouping->row_weights = true;
  problem.grouping->b_matrices = 6;
  problem.grouping->bounds = GroupBounds::sizes;
  const auto bytes = operand_bytes(problem);
  EXPECT_EQ(bytes[OperandId::a], 10u * 32 * 2);
  EXPECT_EQ(bytes[OperandId::b], 6u * 32 * 64 * 2);
  EXPECT_EQ(bytes[OperandId::c], 96u * 64 * 2);
  EXPECT_EQ(bytes[OperandId::d], 7u * 64 * 2);
  EXPECT_EQ(bytes[OperandId::bias], 6u * 64 * 4);
  EXPECT_EQ(bytes[OperandId::offsets], 0u);
  EXPECT_EQ(bytes[OperandId::group_sizes], 4u * 4);
  EXPECT_EQ(bytes[OperandId::row_index], 96u * 4);
  EXPECT_EQ(bytes[OperandId::row_weights], 7u * 5 * 4);
  EXPECT_EQ(bytes[OperandId::b_index], 4u * 4);
}

DispatchPlan lowered(const Problem& problem) {
  const Config config =
      parse_config("khr:tile=32x64x32,fragment=16x16x16,subgroups=1x2,subgroup_size=32,subtiles=2")
          .value();
  return lower(config, resolve(problem).value(), test::h200());
}

TEST(RowIndex, DispatchesOfRowsThatAreAddedUp) {
  Problem problem = experts();
  EXPECT_TRUE(lowered(problem).before.empty());
  problem.grouping->a_rows = 10;
  EXPECT_TRUE(lowered(problem).before.empty());
  problem.grouping->bounds = GroupBounds::starts_and_sizes;
  problem.grouping->d_rows = 12;
  problem.grouping->d_terms = 8;
  const DispatchPlan plan = lowered(problem);
  ASSERT_EQ(plan.before.size(), 2u);
  EXPECT_EQ(plan.before[0].key.module, "group_table");
  EXPECT_TRUE(plan.before[0].alone);
  EXPECT_EQ(plan.before[1].key.module, "reset");
  EXPECT_TRUE(plan.product.writes_values);
  EXPECT_EQ(plan.product.key.constants[SPEC_D_TYPE], std::uint32_t{TYPE_F32});
  ASSERT_EQ(plan.after.size(), 1u);
  EXPECT_EQ(plan.after[0].key.module, "sum_rows");
  EXPECT_EQ(plan.after[0].dispatches.front().tiles, 12u);
}

// A limit of the workspace leaves out no part that kernels write to. A choice refuses such a limit.
TEST(RowIndex, WorkspaceOfTablesAndSumsIsNeverLeftOut) {
  for (const std::uint64_t most : {0u, 3u}) {
    Problem problem = experts();
    problem.max_workspace_bytes = most;
    EXPECT_EQ(lowered(problem).workspace.bytes, 0u);
    problem.grouping->bounds = GroupBounds::sizes;
    EXPECT_GE(lowered(problem).workspace.bytes, 256u + 5 * 4);
    problem.grouping->bounds = GroupBounds::offsets;
    problem.grouping->d_rows = 12;
    problem.grouping->d_terms = 8;
    EXPECT_GE(lowered(problem).workspace.bytes, 256u + 96 * 64 * 4 + 96 * 4);
  }
}

// A table's shape of plain groups was not timed with rows by index, and the other way round.
TEST(RowIndex, TablesTellItFromPlainGroups) {
  const TunedProblem plain = tuned_problem(resolve(experts()).value());
  Problem problem = experts();
  problem.grouping->a_rows = 10;
  const TunedProblem indexed = tuned_problem(resolve(problem).value());
  EXPECT_EQ(shape_distance(plain, plain), 0.0);
  EXPECT_GT(shape_distance(plain, indexed), 0.0);
  EXPECT_LT(shape_distance(plain, indexed), 0.1);
}

TEST(RowIndex, IndicesForTestsAreDifferent) {
  for (const std::uint64_t rows : {1u, 2u, 9u, 64u, 96u, 100u}) {
    Problem problem = experts();
    problem.grouping->d_rows = rows;
    problem.grouping->d_terms = 3;
    problem.m = 3 * rows;
    const auto bytes = integers_of(OperandId::row_index, problem, {});
    std::vector<std::uint32_t> indices(bytes.size() / 4);
    std::memcpy(indices.data(), bytes.data(), bytes.size());
    ASSERT_EQ(indices.size(), problem.m);
    const std::set<std::uint32_t> different(indices.begin(), indices.end());
    EXPECT_EQ(different.size(), indices.size());
    EXPECT_LT(*different.rbegin(), 3 * rows);
  }
}

}  // namespace
}  // namespace vkgemm
