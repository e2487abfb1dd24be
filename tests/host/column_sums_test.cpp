// Sums of columns without a device: what is refused, and what is dispatched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "kernels/workspace.hpp"
#include "oracle/groups.hpp"
#include "oracle/reference.hpp"
#include "problem/convert.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/resolve.hpp"
#include "problem/row_index.hpp"
#include "problem/tensor_places.hpp"
#include "test_devices.hpp"
#include "tuning/rank.hpp"

namespace vkgemm {
namespace {

using test::config;
using test::contains;
using test::resolved;

constexpr std::string_view khr_text =
    "khr:tile=128x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,swizzle=8";

Problem with_sums(std::uint64_t m, std::uint64_t n, std::uint64_t k) {
  Problem problem = test::gemm(m, n, k, DataType::f16);
  problem.epilogue.tensors[1] = TensorShape::along_n;
  problem.epilogue.steps[0] = {.op = StepOp::sum_columns, .operand = StepOperand::t1};
  problem.t1.type = DataType::f32;
  return problem;
}

std::uint64_t offset_of(std::uint64_t Addresses::*address, const WorkspaceLayout& layout) {
  const auto* const found = std::ranges::find(layout, address, &WorkspacePart::address);
  return found != layout.end() ? found->offset : UINT64_MAX;
}

TEST(ColumnSums, ProblemsThatAreRefused) {
  struct Case {
    void (*change)(Problem&);
    std::string_view message;
  };
  const Case cases[] = {
      {[](Problem& p) { p.epilogue.tensors[1] = TensorShape::matrix; },
       "epilogue.tensors[1] is matrix: a step sums columns to t1, so it must be along_n"},
      {[](Problem& p) { p.t1.type = DataType::bf16; },
       "t1.type is bf16: a step sums columns to t1, so it must be f32"},
      {[](Problem& p) { p.epilogue.steps[1] = {.op = StepOp::add, .operand = StepOperand::t1}; },
       "epilogue.tensors[1] is along_n: a step sums columns to t1, so no other may name it"},
      {[](Problem& p) {
         p.epilogue.tensors[2] = TensorShape::along_n;
         p.epilogue.steps[1] = {.op = StepOp::sum_columns, .operand = StepOperand::t2};
       },
       "epilogue.steps[1] is sum_columns:t2: epilogue.steps[0] is sum_columns, and only one step "
       "may be"},
      {[](Problem& p) { p.epilogue.steps[0].operand = StepOperand::number; },
       "epilogue.steps[0].operand is number: sum_columns needs a tensor"},
      {[](Problem& p) {
         p.batch = 2;
         p.t1.batch_stride = 47;
       },
       "t1.batch_stride is 47: the matrices of the batch would overlap, at least 48 is needed"},
      {[](Problem& p) { p.d.layout = Layout::col_major; },
       "d.layout is col_major and a step sums columns to t1: D must be row_major"},
  };
  for (const Case& c : cases) {
    Problem problem = with_sums(64, 48, 32);
    c.change(problem);
    const auto result = resolve(problem);
    ASSERT_FALSE(result) << c.message;
    EXPECT_TRUE(contains(result.error().message, std::string(c.message)))
        << result.error().message << "\nexpected: " << c.message;
  }
}

TEST(ColumnSums, ConfigurationsThatAreRefused) {
  const DeviceCaps caps = test::h200();
  const ResolvedProblem problem = resolved(with_sums(256, 256, 256));
  const auto why = [&](const Config& c) { return why_illegal(c, problem, caps).value_or(""); };
  EXPECT_EQ(why(config(khr_text)), "");
  Config sliced = config(khr_text);
  sliced.slices = 2;
  EXPECT_EQ(why(sliced), "slices is 2: a step sums columns, and no slice has their values");
  EXPECT_EQ(why(config("nv:tile=128x128x64,invocations=128,swizzle=8")),
            "a step sums columns to t1: not built on path nv");
  EXPECT_EQ(why(config("khr:tile=16x176x32,fragment=16x16x16,subgroups=1x1,subgroup_size=32,"
                       "subtiles=1,swizzle=8")),
            "a step sums columns: tile_n is 176, so that each of 32 invocations has values of 11 "
            "columns, at most 8");
  for (const ScoredRow& row : rank(built_in_table("generic"), problem, caps)) {
    EXPECT_EQ(row.config.slices, 1u);
    EXPECT_NE(row.config.path(), Path::nv);
  }
}

// The product finds the workspace in the place of the tensor.
TEST(ColumnSums, TwoDispatches) {
  Problem problem = with_sums(300, 70, 64);
  problem.batch = 3;
  problem.t1.batch_stride = 80;
  problem.epilogue.tensors[0] = TensorShape::scalar;
  problem.epilogue.steps[1] = {.op = StepOp::add, .operand = StepOperand::t0};
  const ResolvedProblem p = resolved(problem);
  EXPECT_EQ(places_of(p), (std::array<std::uint32_t, most_tensors>{PLACE_C, PLACE_EXTRA, 0, 0}));
  const DispatchPlan plan = lower(config(khr_text), p, test::h200());
  ASSERT_EQ(plan.after.size(), 1u);
  const Step& sum = plan.after.front();
  EXPECT_EQ(sum.key.module, "sum_columns");
  const std::uint64_t pitch = std::uint64_t{3} * 72 * 4;
  EXPECT_EQ(plan.product.gemm().extra_batch, pitch);
  const auto& params = sum.block<gpu::SumColumnsParams>();
  EXPECT_EQ(params.extra_batch, pitch);
  EXPECT_EQ(params.extra_row, 72u * 4);
  EXPECT_EQ(plan.product.gemm().ld_extra, 72u);
  EXPECT_EQ(params.column_sums_batch, 320u);
  EXPECT_EQ(params.rows, 3u);
  EXPECT_EQ(params.n, 70u);
  EXPECT_EQ(sum.dispatches, (std::vector<Dispatch>{{.tiles = 3, .batches = 3}}));
  EXPECT_EQ(offset_of(&Addresses::extra, plan.workspace), 0u);
  EXPECT_EQ(plan.workspace.bytes, rounded_up(3 * pitch, std::uint64_t{256}));
  EXPECT_EQ(test::touched_bytes(p, OperandId::t1), (2 * 80 + 70) * 4u);

  const ResolvedProblem without = resolved(test::gemm(300, 70, 64, DataType::f16));
  const DispatchPlan plain = lower(config(khr_text), without, test::h200());
  EXPECT_TRUE(plain.after.empty());
  EXPECT_EQ(plain.workspace.bytes, 0u);
  EXPECT_EQ(plain.product.key.constants[SPEC_HAS_COLUMN_SUMS], 0u);
}

// Groups of rows share a matrix of slots. The word for bad offsets stays where the workspace
// begins.
TEST(ColumnSums, OfGroups) {
  Problem problem = with_sums(1000, 64, 64);
  problem.grouping = Grouping{.groups = 5};
  const ResolvedProblem p = resolved(problem);
  const DispatchPlan plan = lower(config(khr_text), p, test::h200());
  EXPECT_EQ(offset_of(&Addresses::bad_group, plan.workspace), 0u);
  EXPECT_EQ(offset_of(&Addresses::extra, plan.workspace), 256u);
  EXPECT_EQ(plan.workspace.bytes, 256u + rounded_up((1000 / 128 + 5) * 256, 256));
  EXPECT_EQ(plan.product.gemm().extra_batch, 0u);
  ASSERT_EQ(plan.after.size(), 1u);
  const Step& sum = plan.after.front();
  EXPECT_EQ(sum.key.constants[SPEC_TILE_M], 128u);
  EXPECT_EQ(sum.key.constants[SPEC_GROUPED], std::uint32_t{GROUPED_ALONG_M});
  EXPECT_EQ(sum.block<gpu::SumColumnsParams>().column_sums_batch, 256u);
  EXPECT_EQ(sum.dispatches, (std::vector<Dispatch>{{.tiles = 2, .batches = 5}}));
}

// The reference of an empty group is zeros, which are verified, too.
TEST(ColumnSums, ReferenceOfGroups) {
  Problem problem = with_sums(4, 5, 1);
  problem.grouping = Grouping{.groups = 3};
  const PerOperand<std::uint64_t> bytes = operand_bytes(problem);
  std::vector<std::byte> a(bytes[OperandId::a]), b(bytes[OperandId::b]), d(bytes[OperandId::d]);
  for (std::uint64_t i = 0; i < 4; ++i) store_element(a.data(), problem.a.type, i, 1.0);
  for (std::uint64_t i = 0; i < 5; ++i) store_element(b.data(), problem.b.type, i, 2.0);
  const std::vector<std::byte> offsets = encode_integers(std::vector<std::int64_t>{0, 3, 3, 4},
                                                         size_in_bytes(problem.grouping->offsets));
  std::vector<float> sums(15, -1.0f);
  const oracle::HostOperands operands{
      {OperandId::a, a.data()}, {OperandId::b, b.data()}, {OperandId::offsets, offsets.data()}};
  oracle::compute_reference(problem, operands,
                            {{OperandId::d, d.data()}, {OperandId::t1, sums.data()}});
  EXPECT_EQ(sums, (std::vector<float>{6, 6, 6, 6, 6, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2}));
  const auto failures = [&] {
    return oracle::verify(problem,
                          operands.with({{OperandId::d, d.data()}, {OperandId::t1, sums.data()}}))
        .failures;
  };
  EXPECT_EQ(failures(), 0u);
  for (const std::size_t wrong : {4u, 7u, 10u}) {
    const float right = sums[wrong];
    sums[wrong] = 1.0f;
    EXPECT_EQ(failures(), 1u) << wrong;
    sums[wrong] = right;
  }
  const auto parts = oracle::verified_parts(problem, operands, {.mode = oracle::Verify::sampled});
  ASSERT_EQ(parts[OperandId::t1].size(), 3u);
  for (std::size_t g = 0; g < 3; ++g) {
    EXPECT_EQ(parts[OperandId::t1][g].begin, g * 20);
    EXPECT_EQ(parts[OperandId::t1][g].bytes, 20u);
  }
  problem.m = 0;
  EXPECT_TRUE(oracle::verified_parts(problem, operands, {})[OperandId::t1].empty());
}

// Chunks would have sums of their own.
TEST(ColumnSums, RowsAreComputedAtOnce) {
  Problem problem = with_sums(100000, 1000, 64);
  problem.row_reduction = RowReduction{.op = RowOp::softmax};
  problem.max_workspace_bytes = std::uint64_t{1} << 30;
  Config two_pass = config(khr_text);
  two_pass.rows = RowStrategy::two_pass;
  const ResolvedProblem p = resolved(problem);
  const DispatchPlan plan = lower(two_pass, p, test::h200());
  EXPECT_FALSE(plan.chunks);
  ASSERT_EQ(plan.after.size(), 2u);
  EXPECT_EQ(plan.after[0].key.module, "sum_columns");
  EXPECT_EQ(plan.after[1].key.module, "reduce_rows");
}

}  // namespace
}  // namespace vkgemm
