// The largest magnitude without a device: the dispatches around the product, and its reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "kernels/parts/split_k.hpp"
#include "problem/tensor_places.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::config;
using test::resolved;

Problem with_amax() {
  Problem problem = test::gemm(256, 256, 256, DataType::f16);
  problem.epilogue.tensors[1] = TensorShape::scalar;
  problem.epilogue.steps[0] = {.op = StepOp::amax, .operand = StepOperand::t1};
  problem.t1.type = DataType::f32;
  return problem;
}

std::size_t resets(const DispatchPlan& plan) {
  return static_cast<std::size_t>(std::ranges::count_if(
      plan.before, [](const Step& step) { return step.key.module == "reset"; }));
}

// One dispatch sets it to 0, that of shared words if there is one.
TEST(Amax, IsResetOnce) {
  for (const std::string_view text :
       {"khr:tile=128x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,swizzle=8",
        "khr:tile=128x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,swizzle=8,"
        "slices=3",
        "khr:tile=128x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,swizzle=8,"
        "slices=3,reduction_mode=last_arriver",
        "nv:tile=128x128x64,invocations=128,swizzle=8,slices=3"}) {
    const Config one = config(text);
    const ResolvedProblem p = resolved(with_amax());
    const DispatchPlan plan = lower(one, p, test::h200());
    EXPECT_EQ(resets(plan), 1u) << text;
    EXPECT_EQ(why_illegal(one, p, test::h200()).value_or(""), "") << text;
    const DispatchPlan plain =
        lower(one, resolved(test::gemm(256, 256, 256, DataType::f16)), test::h200());
    EXPECT_EQ(resets(plain), adds_in_product(one) && one.slices > 1 ? 1u : 0u) << text;
  }
}

// Panels reset their words in each part, but not amax.
TEST(Amax, OfPanelsIsNotResetOnce) {
  Problem problem = with_amax();
  problem.n = 4096;
  problem.row_reduction = RowReduction{.op = RowOp::softmax};
  Config panel = config(
      "khr:tile=128x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,swizzle=8");
  panel.rows = RowStrategy::panel;
  const DispatchPlan plan = lower(panel, resolved(problem), test::h200());
  ASSERT_EQ(resets(plan), 1u);
  EXPECT_FALSE(std::ranges::any_of(plan.before, &Step::once));
}

// Copies of A in parts: the number is of all of them, and so are sums of columns.
TEST(Amax, ChunksShareIt) {
  Problem problem = test::gemm(8192, 8192, 8192, DataType::f16);
  problem.epilogue.tensors = {TensorShape::along_n, TensorShape::scalar};
  problem.epilogue.steps[0] = {.op = StepOp::sum_columns, .operand = StepOperand::t0};
  problem.epilogue.steps[1] = {.op = StepOp::amax, .operand = StepOperand::t1};
  problem.t0.type = problem.t1.type = DataType::f32;
  const Config one = config(
      "khr_direct:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,"
      "swap_a=1,interleave_k=1,swizzle=16,pack=ab");
  const DispatchPlan plan = lower(one, resolved(problem), test::h200());
  ASSERT_TRUE(plan.chunks);
  EXPECT_LT(plan.chunks->rows, 8192u);
  EXPECT_EQ(plan.chunks->row_pitch.extra, 8192u * 4 / 128);
  EXPECT_LE(plan.workspace.bytes, problem.max_workspace_bytes);
  ASSERT_EQ(plan.after.size(), 1u);
  EXPECT_TRUE(plan.after[0].once);
  EXPECT_EQ(plan.after[0].block<gpu::SumColumnsParams>().rows, 8192u / 128);
  EXPECT_EQ(plan.before.back().key.module, "reset");
  EXPECT_TRUE(plan.before.back().once);
  EXPECT_EQ(std::ranges::count(plan.before, true, &Step::once), 1);
}

}  // namespace
}  // namespace vkgemm
