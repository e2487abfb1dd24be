// Sums over a batch: what is refused, what becomes a longer K, and what reads their operands.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "kernels/dispatch_plan.hpp"
#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "problem/operands.hpp"
#include "problem/resolve.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"
#include "tuning/nearest.hpp"

namespace vkgemm {
namespace {

using test::contains;

Problem sum() {
  Problem problem = test::gemm(64, 96, 32);
  problem.batch = 3;
  problem.sum_batch = true;
  problem.a.batch_stride = 4096;
  problem.b.batch_stride = 8192;
  return problem;
}

TEST(SumBatch, RefusesWhatDoesNotGoWithIt) {
  const std::pair<std::function<void(Problem&)>, std::string_view> cases[] = {
      {[](Problem& p) { p.d.batch_stride = 5; },
       "d.batch_stride is 5 and sum_batch is true: the batch has one d"},
      {[](Problem& p) { p.epilogue.bias = Bias::along_n, p.epilogue.bias_batch_stride = 96; },
       "epilogue.bias_batch_stride is 96 and sum_batch is true"},
      {[](Problem& p) { p.split_k.slices = 2; }, "split_k.slices is 2 and sum_batch is true"},
      {[](Problem& p) { p.b.packing = Packing::packed; },
       "b.packing is packed and sum_batch is true"},
      {[](Problem& p) { p.grouping = Grouping{}; }, "grouping is set and sum_batch is true"},
      {[](Problem& p) { p.quantised_b = Quantisation{}; },
       "quantised_b is set and sum_batch is true"},
      {[](Problem& p) { p.batch = std::uint64_t{1} << 32; }, "batch is 4294967296"},
      {[](Problem& p) {
         p.a.type = p.b.type = DataType::s8, p.d.type = DataType::s32;
         p.k = 50000;
         p.a.batch_stride = p.b.batch_stride = std::uint64_t{1} << 24;
       },
       "sum_batch is true, and batch · k is 150000 and a.type is s8: sums of at most 131071"},
      {[](Problem& p) {
         p.a.type = p.b.type = DataType::s8, p.d.type = DataType::s32;
         p.epilogue.alpha = 2.0f;
       },
       "d.type is s32 and epilogue.alpha is 2"},
      {[](Problem& p) {
         p.row_reduction = RowReduction{};
         p.row_reduction->op = static_cast<RowOp>(99);
       },
       "row_reduction.op is 99"},
      {[](Problem& p) { p.a.batch_stride = std::uint64_t{1} << 63; }, "a.batch_stride is"},
  };
  for (const auto& [change, message] : cases) {
    Problem problem = sum();
    change(problem);
    const auto resolved = resolve(problem);
    ASSERT_FALSE(resolved) << message;
    EXPECT_TRUE(contains(resolved.error().message, message)) << resolved.error().message;
  }
}

TEST(SumBatch, ReadsAllMatricesAndWritesOne) {
  for (const Layout layout : {Layout::row_major, Layout::col_major}) {
    Problem problem = sum();
    problem.d.layout = layout;
    const ResolvedProblem resolved = test::resolved(problem);
    EXPECT_EQ(resolved.summed, 3u);
    EXPECT_EQ(resolved.batch, 1u);
    EXPECT_EQ(test::touched_bytes(resolved, OperandId::a), (2u * 4096 + 64 * 32) * 2);
    EXPECT_EQ(test::touched_bytes(resolved, OperandId::b), (2u * 8192 + 32 * 96) * 2);
    EXPECT_EQ(test::touched_bytes(resolved, OperandId::d),
              64u * 96 * size_in_bytes(problem.d.type));
    for (const OperandRow& row : operand_rows()) {
      if (!row.exists(problem)) continue;
      EXPECT_EQ(row.shape(problem).bytes(), test::touched_bytes(resolved, row.id)) << row.name;
    }
  }
}

// A stride of 0 is what other operands have.
TEST(SumBatch, TakesStridesOfZero) {
  Problem problem = sum();
  problem.d.batch_stride = 0;
  EXPECT_TRUE(resolve(problem));
}

// All matrices lie side by side in the lines of a larger one, and so does what is between them.
TEST(SumBatch, KnowsTheBytesOfAllMatrices) {
  Problem problem = sum();
  problem.a.ld = 1024;
  problem.a.batch_stride = 100;
  const OperandList operands = operands_of(test::resolved(problem));
  const auto a = std::ranges::find(operands, OperandId::a, &Operand::id);
  ASSERT_NE(a, operands.end());
  EXPECT_EQ(a->line_bytes, (2u * 100 + 32) * 2);
  EXPECT_EQ(a->pitch, 1024u * 2);
}

TEST(SumBatch, IsEmptyIfKIs0) {
  Problem problem = sum();
  problem.k = 0;
  EXPECT_EQ(test::resolved(problem).summed, 1u);
}

TEST(SumBatch, IsNotTimedWithAProductOfThatK) {
  const TunedProblem summed = tuned_problem(test::resolved(sum()));
  Problem longer = test::gemm(64, 96, 96);
  EXPECT_EQ(summed.k, 96u);
  EXPECT_GT(shape_distance(summed, tuned_problem(test::resolved(longer))), 0.0);
}

// Each matrix has k-tiles of its own.
TEST(SumBatch, CountsKTilesOfEachMatrix) {
  const DeviceCaps caps = test::h200();
  const DeviceTables tables(caps);
  const auto time = [&](std::uint64_t k, std::uint64_t batch) {
    Problem problem = sum();
    problem.m = problem.n = 4096;
    problem.k = k;
    problem.batch = batch;
    problem.a.batch_stride = problem.b.batch_stride = std::uint64_t{1} << 20;
    return tables.best_estimate(test::resolved(problem), caps).value().cost;
  };
  EXPECT_GT(time(1, 4096), 4.0 * time(64, 64));
}

TEST(SumBatch, IsALongerKIfBothOperandsPermitIt) {
  Problem problem = sum();
  problem.a.layout = Layout::col_major;
  problem.a.batch_stride = problem.b.batch_stride = std::nullopt;
  EXPECT_EQ(test::resolved(problem).k, 96u);
  EXPECT_EQ(test::resolved(problem).summed, 1u);
  problem.b.batch_stride = 0;
  EXPECT_EQ(test::resolved(problem).summed, 3u);
  // No K has more than 31 bits.
  problem = sum();
  problem.a.layout = Layout::col_major;
  problem.a.batch_stride = problem.b.batch_stride = std::nullopt;
  problem.k = std::uint64_t{1} << 30;
  EXPECT_EQ(test::resolved(problem).k, problem.k);
  EXPECT_EQ(test::resolved(problem).summed, 3u);
}

TEST(SumBatch, IsChosenWithoutCopiesOrSlices) {
  const DeviceCaps caps = test::h200();
  const DeviceTables tables(caps);
  Problem problem = sum();
  problem.m = problem.n = problem.k = 4096;
  problem.a.batch_stride = problem.b.batch_stride = std::uint64_t{1} << 26;
  const ResolvedProblem resolved = test::resolved(problem);
  const auto best = tables.best(resolved, caps);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->config.slices, 1u);
  EXPECT_FALSE(best->config.pack_a || best->config.pack_b);
  Config split = best->config;
  split.slices = 2;
  EXPECT_TRUE(contains(why_illegal(split, resolved, caps).value_or(""), "with sum_batch"));
  Config packs = best->config;
  packs.pack_a = true;
  EXPECT_TRUE(contains(why_illegal(packs, resolved, caps).value_or(""), "with sum_batch"));
  // It is estimated as the product with that K, nearly.
  Problem longer = problem;
  longer.sum_batch = false;
  longer.batch = 1;
  longer.k = 3 * 4096;
  longer.max_workspace_bytes = 0;
  const auto as_long = tables.best(test::resolved(longer), caps);
  ASSERT_TRUE(as_long);
  EXPECT_NEAR(best->cost, as_long->cost, 0.1 * as_long->cost);
}

}  // namespace
}  // namespace vkgemm
