// Sums over a batch (Problem::sum_batch): as one product with a longer K, and matrix by matrix.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness.hpp"
#include "kernels/legality.hpp"
#include "kernels/parts/pack.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr std::uint64_t summed = 3;

class SumBatch : public EachPathCounted {
 protected:
  // Matrices lie apart, so that K is not longer.
  Problem sum(Shape shape, DataType type, std::uint64_t count = summed) const {
    Problem problem = gemm(shape, type, type == DataType::s8 ? DataType::s32 : DataType::f32);
    problem.batch = count;
    problem.sum_batch = true;
    problem.a.batch_stride = shape.m * shape.k + 64;
    problem.b.batch_stride = shape.k * shape.n + 64;
    return problem;
  }
  Problem sum(Shape shape) const { return sum(shape, inputs_of(GetParam()).front()); }
  Config config() const { return small_configs(GetParam(), inputs_of(GetParam()).front()).front(); }
  testing::AssertionResult passes(const Problem& problem, const Config& config) {
    const auto resolved = resolve(problem);
    if (!resolved) return testing::AssertionFailure() << resolved.error().message;
    if (!is_legal(config, *resolved, target())) return testing::AssertionSuccess();
    ++computed_;
    return passes_gates(config, problem);
  }

  // The first one with this strategy.
  static std::optional<Config> legal_config(const Problem& problem, RowStrategy rows) {
    for (const std::string_view text :
         {"khr:tile=16x32x16,fragment=8x8x8,subgroups=1x2,subgroup_size=8,subtiles=2,peel=0",
          "khr:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32",
          "fma:tile=16x32x8,fragment=4x8,peel=0", "nv:tile=32x32x32,invocations=128"}) {
      Config config = parse_config(text).value();
      if (config.path() != GetParam()) continue;
      config.rows = rows;
      if (rows == RowStrategy::panel) {
        config.swizzle = 1;
        config.spin_limit = patient_spin_limit();
      }
      if (is_legal(config, resolve(problem).value(), target())) return config;
    }
    return std::nullopt;
  }
};
VKGEMM_ON_EACH_PATH(SumBatch);

TEST_P(SumBatch, EveryLoopTypeAndLayout) {
  for (const DataType type : inputs_of(GetParam())) {
    for (const Config& form : small_configs(GetParam(), type)) {
      for (const Layout a : {Layout::row_major, Layout::col_major}) {
        for (const Layout b : {Layout::row_major, Layout::col_major}) {
          Problem problem = sum({13, 24, 40}, type);
          problem.a.layout = a;
          problem.b.layout = b;
          if (type != DataType::s8) problem.d.layout = a;
          EXPECT_TRUE(passes(problem, form)) << to_string(form);
          problem.a.batch_stride = 0;  // one A
          problem.k = 37;              // nothing is aligned
          EXPECT_TRUE(passes(problem, form)) << to_string(form);
        }
      }
    }
  }
}

// Loads convert the elements of each matrix.
TEST_P(SumBatch, ConvertsOperands) {
  if (GetParam() == Path::nv) GTEST_SKIP() << "path nv converts in copies, which sums don't have";
  for (const Config& form : small_configs(GetParam(), DataType::f16)) {
    for (const std::uint64_t k : {40, 37}) {
      Problem problem = sum({13, 24, k}, DataType::f32);
      problem.multiply_as = DataType::f16;
      EXPECT_TRUE(passes(problem, form)) << to_string(form);
      problem.b.type = DataType::f16;
      EXPECT_TRUE(passes(problem, form)) << to_string(form);
    }
  }
}

TEST_P(SumBatch, ComposesWithOtherParts) {
  const Problem base = sum({13, 24, 40});
  std::vector<Problem> problems;
  const auto add = [&](const auto& change) { change(problems.emplace_back(base)); };
  add([](Problem& p) {
    p.epilogue = {.alpha = 0.5f, .beta = 2.0f, .bias = Bias::along_n, .aux = true};
    p.epilogue.activation = Activation::relu;
  });
  add([](Problem& p) { p.epilogue.row_scales = p.epilogue.column_scales = Scales::per_matrix; });
  add([](Problem& p) { p.gated = Gated{.gate = Gate::reglu}; });
  add([](Problem& p) { p.gated = Gated{.gate = Gate::reglu, .b = GatedB::separate}; });
  add([](Problem& p) {
    p.epilogue.tensors = {TensorShape::matrix, TensorShape::along_n};
    p.t1.type = DataType::f32;
    p.epilogue.steps[0] = {.op = StepOp::multiply, .operand = StepOperand::t0};
    p.epilogue.steps[1] = {.op = StepOp::sum_columns, .operand = StepOperand::t1};
  });
  for (const RowOp op : {RowOp::softmax, RowOp::logsumexp, RowOp::layer_norm})
    add([op](Problem& p) { p.row_reduction = RowReduction{.op = op}; });
  for (Problem problem : problems) {
    if (problem.gated) problem.b.batch_stride.reset();
    for (const std::uint64_t outer : {1, 2}) {
      problem.outer_batch = outer;
      std::vector<RowStrategy> strategies = {RowStrategy::none};
      if (problem.row_reduction) strategies = {RowStrategy::two_pass, RowStrategy::panel};
      for (const RowStrategy rows : strategies) {
        if (rows == RowStrategy::panel && GetParam() == Path::nv) continue;  // it has none
        const std::optional<Config> form = legal_config(problem, rows);
        // Path nv does not store in steps.
        if (GetParam() == Path::nv && rows == RowStrategy::none && !form) continue;
        ASSERT_TRUE(form);
        EXPECT_TRUE(passes(problem, *form)) << to_string(*form);
      }
    }
  }
}

TEST_P(SumBatch, IsOneProductIfMatricesFollowEachOtherAlongK) {
  Problem problem = sum({13, 24, 40});
  problem.a.layout = Layout::col_major;
  problem.a.batch_stride.reset();
  problem.b.batch_stride.reset();
  EXPECT_EQ(resolve(problem).value().k, 40 * summed);
  EXPECT_TRUE(passes(problem, config()));
  problem.a.layout = Layout::row_major;  // side by side in the rows of a larger matrix
  problem.a.ld = 40 * summed;
  problem.a.batch_stride = 40;
  EXPECT_EQ(resolve(problem).value().k, 40 * summed);
  EXPECT_TRUE(passes(problem, config()));
  problem.outer_batch = 2;
  EXPECT_EQ(resolve(problem).value().k, 40 * summed);
  EXPECT_TRUE(passes(problem, config()));
  problem.a.ld = 40 * summed - 8;  // lines overlap
  EXPECT_EQ(resolve(problem).value().summed, summed);
  problem.batch = 0;  // D = epilogue(0)
  EXPECT_EQ(resolve(problem).value().k, 0u);
  EXPECT_TRUE(passes(problem, config()));
}

// The sum is exact, so a result that lacks a matrix, or adds one twice, is seen.
TEST_P(SumBatch, AddsManyMatrices) {
  Problem problem = sum({8, 24, 8}, inputs_of(GetParam()).front(), on_cpu() ? 40 : 700);
  EXPECT_TRUE(passes(problem, config()));
  problem.k = 1;
  EXPECT_TRUE(passes(problem, config()));
}

TEST_P(SumBatch, IsDeterministicAndChosen) {
  const Problem problem = sum({40, 48, 64});
  Trial trial(problem, Fill::random);
  const Result<Plan> plan = plan_on(GetParam(), problem);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_NE(plan->explain().find("the batch is added up: matrix by matrix"), std::string::npos);
  ASSERT_TRUE(trial.run(*plan));
  EXPECT_TRUE(trial.is_within_bound());
  EXPECT_TRUE(trial.repeats(*plan));
  ++computed_;
}

}  // namespace
}  // namespace vkgemm::test
