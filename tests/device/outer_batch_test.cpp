// Two dimensions of a batch: strides of either, 0 for an operand that is shared, one dimension
// where both merge, and what they compose with.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "kernels/legality.hpp"
#include "kernels/parts/pack.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr std::uint64_t inner = 2, outer = 3;

class OuterBatch : public EachPathCounted {
 protected:
  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
  Problem product(Shape shape, std::uint64_t batch = inner,
                  std::uint64_t outer_batch = outer) const {
    Problem problem = gemm(shape, input(), DataType::f32);
    problem.batch = batch;
    problem.outer_batch = outer_batch;
    return problem;
  }
  // All gates, if the configuration computes it.
  testing::AssertionResult passes(const Problem& problem, Config form) {
    const auto resolved = resolve(problem);
    if (!resolved) return testing::AssertionFailure() << resolved.error().message;
    form = as_given(form, *resolved, caps());
    if (!is_legal(form, *resolved, target())) return testing::AssertionSuccess();
    ++computed_;
    return passes_gates(form, problem);
  }
};
VKGEMM_ON_EACH_PATH(OuterBatch);

// How often the problem is computed, and in batches of how many.
std::pair<std::uint64_t, std::uint64_t> parts(const Problem& problem) {
  const ResolvedProblem resolved = resolve(problem).value();
  return {resolved.repeats, resolved.batch};
}

TEST_P(OuterBatch, SharesOperandsAlongEitherDimension) {
  for (const std::uint64_t a_inner : {0, 1}) {
    for (const std::uint64_t a_outer : {0, 1}) {
      for (const std::uint64_t b_inner : {0, 1}) {
        for (const std::uint64_t b_outer : {0, 1}) {
          Problem problem = product({5, 24, 40});
          // Matrices are apart, also from those of the other dimension.
          problem.a.batch_stride = a_inner * 240;
          problem.a.outer_batch_stride = a_outer * 1000;
          problem.b.batch_stride = b_inner * 1040;
          problem.b.outer_batch_stride = b_outer * 4000;
          EXPECT_TRUE(passes(problem, config()));
          problem.d.batch_stride = 360;  // the outer dimension is the near one
          problem.d.outer_batch_stride = 120;
          EXPECT_TRUE(passes(problem, config()));
        }
      }
    }
  }
}

TEST_P(OuterBatch, IsOneBatchIfStridesPermit) {
  const Problem contiguous = product({5, 24, 40});
  EXPECT_EQ(parts(contiguous), std::pair(std::uint64_t{1}, inner * outer));
  EXPECT_TRUE(passes(contiguous, config()));
  Problem one = contiguous;
  one.b.batch_stride = 0;  // by default each outer matrix has one B
  EXPECT_EQ(parts(one), std::pair(inner, outer));
  EXPECT_TRUE(passes(one, config()));
  one.b.outer_batch_stride = 0;
  EXPECT_EQ(parts(one), std::pair(std::uint64_t{1}, inner * outer));
  Problem outer_only = product({5, 24, 40}, 1, outer);
  outer_only.a.outer_batch_stride = 300;
  outer_only.row_reduction = RowReduction{.op = RowOp::max};
  outer_only.d.outer_batch_stride = 500;
  EXPECT_EQ(parts(outer_only), std::pair(std::uint64_t{1}, outer));
  // Row values are contiguous over both: only the inner dimension is theirs.
  Problem rows = product({5, 24, 40});
  rows.b.batch_stride = 0;
  rows.row_reduction = RowReduction{.op = RowOp::max};
  EXPECT_EQ(parts(rows), std::pair(outer, inner));
}

TEST_P(OuterBatch, ComposesWithOtherParts) {
  Problem base = product({5, 24, 40});
  base.b.batch_stride = 0;
  std::vector<Problem> problems;
  const auto add = [&](const auto& change) { change(problems.emplace_back(base)); };
  add([](Problem& p) {
    p.epilogue.beta = 1.0f;
    p.epilogue.aux = true;
    p.epilogue.bias = Bias::along_n;
    p.epilogue.bias_batch_stride = 24;
    p.c.batch_stride = 0;
  });
  add([](Problem& p) {
    p.epilogue.bias = Bias::along_m;
    p.epilogue.bias_outer_batch_stride = 8;
  });
  add([](Problem& p) { p.epilogue.row_scales = p.epilogue.column_scales = Scales::per_matrix; });
  add([](Problem& p) { p.d.layout = Layout::col_major; });
  add([](Problem& p) { p.gated = Gated{.gate = Gate::reglu}; });
  add([](Problem& p) {
    p.epilogue.tensors = {TensorShape::matrix, TensorShape::along_n};
    p.epilogue.steps[0] = {.op = StepOp::multiply, .operand = StepOperand::t0};
    p.epilogue.steps[1] = {.op = StepOp::add, .operand = StepOperand::t1};
    p.t0.batch_stride = 0;
    p.t1.batch_stride = 24;
  });
  for (const Problem& problem : problems) {
    EXPECT_TRUE(passes(problem, config()));
    Problem padded = with_padding(problem);
    padded.b.batch_stride = 0;  // still shared
    EXPECT_TRUE(passes(padded, config()));
  }
  for (const RowOp op : {RowOp::max, RowOp::rms_norm}) {
    Problem rows = base;
    rows.row_reduction = RowReduction{.op = op, .gamma = op == RowOp::rms_norm};
    Config two_pass = config();
    two_pass.rows = RowStrategy::two_pass;
    EXPECT_TRUE(passes(rows, two_pass));
  }
  EXPECT_TRUE(passes(base, sliced(config(), 2)));
}

// The workspace is taken by one repetition after the other, and keeps the copy of a shared operand.
TEST_P(OuterBatch, CopiesASharedOperandOnce) {
  Problem problem = product({5, 24, 40}, 3, 2);
  problem.b.batch_stride = problem.b.outer_batch_stride = 0;
  problem.a.outer_batch_stride = 1000;
  Config form = config();
  form.pack_b = true;
  const ResolvedProblem resolved = resolve(problem).value();
  ASSERT_EQ(resolved.repeats, 2u);
  form = as_given(form, resolved, caps());
  if (!is_legal(form, resolved, target())) GTEST_SKIP() << "no copies on this path";
  form.pack_a = false;
  if (!is_legal(form, resolved, target())) GTEST_SKIP() << "the loop copies A, too";
  const Plan plan = context().plan(problem, form).value();
  EXPECT_EQ(plan.dispatch_count(), 3u);
  EXPECT_TRUE(passes(problem, form));
}

TEST_P(OuterBatch, SumsColumnsAndFindsTheLargestMagnitude) {
  if (GetParam() == Path::nv) GTEST_SKIP() << "path nv stores nothing in steps";
  Problem problem = product({37, 24, 40});
  problem.b.batch_stride = 0;
  problem.epilogue.tensors = {TensorShape::along_n, TensorShape::scalar};
  problem.epilogue.steps[0] = {.op = StepOp::sum_columns, .operand = StepOperand::t0};
  problem.epilogue.steps[1] = {.op = StepOp::amax, .operand = StepOperand::t1};
  problem.t0.type = problem.t1.type = DataType::f32;
  EXPECT_TRUE(passes(problem, config()));
  problem.batch = 1;
  EXPECT_TRUE(passes(problem, config()));
}

TEST_P(OuterBatch, InPieces) {
  Problem problem = product({37, 24, 40});
  problem.a.batch_stride = 0;
  Trial whole(problem, Fill::random), pieces(problem, Fill::random, {.in_pieces = true});
  ASSERT_TRUE(whole.run(config()));
  ASSERT_TRUE(pieces.run(config()));
  EXPECT_TRUE(pieces.has_bits_of(whole));
  EXPECT_TRUE(whole.is_within_bound());
  ++computed_;
}

// B packed as one batch of all matrices, which products share along either dimension.
TEST_P(OuterBatch, TakesPackedOperands) {
  const auto refused = context().plan_pack(product({24, 72, 96}), PackedOperand::b);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "outer_batch is 3: pack its matrices as one batch, of batch * outer_batch");
  if (GetParam() != Path::khr) GTEST_SKIP() << "the order of packed operands is that of path khr";
  for (const auto& [batch, outer_batch] : {std::pair(inner, outer), std::pair(outer, inner)}) {
    Problem problem = product({24, 72, 96}, batch, outer_batch);
    problem.a.batch_stride = 0;
    if (context().packed_layout(inner_part(problem), PackedOperand::b)->bytes == 0)
      GTEST_SKIP() << "nothing is packed on this device";
    const TrialOptions options{.packs_b = true};
    const Result<Plan> plan = plan_on(GetParam(), planned(problem, options));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->problem().outer_batch, outer_batch);
    Trial trial(problem, Fill::random, options);
    ASSERT_TRUE(trial.run(*plan));
    EXPECT_TRUE(trial.is_within_bound());
    ++computed_;
  }
}

}  // namespace
}  // namespace vkgemm::test
