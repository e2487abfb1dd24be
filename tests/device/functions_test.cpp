// Functions of an application in steps of epilogues: on every path, against steps that are built in
// and against C++.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "approximate_gelu.epilogue.h"
#include "clamped_swiglu.epilogue.h"
#include "counter.epilogue.h"
#include "dropout.epilogue.h"
#include "everything.epilogue.h"
#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "place.epilogue.h"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr EpilogueStep call{.op = StepOp::function};
EpilogueStep argument(StepOperand operand) { return {.op = StepOp::argument, .operand = operand}; }
EpilogueStep argument(float number) { return {.op = StepOp::argument, .number = number}; }

class Functions : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
  static bool is_legal_here(const Config& config, const Problem& problem) {
    return is_legal(config, resolve(problem).value(), target());
  }
  Problem product(Shape shape) const { return gemm(shape, input(), DataType::f32); }
};
VKGEMM_ON_EACH_PATH(Functions);

std::uint32_t added(const char* name, std::span<const std::uint32_t> words) {
  const auto number = context().add_function({.name = name, .spirv = words});
  EXPECT_TRUE(succeeds(number));
  return number ? *number : 0;
}

// The problem with one function, which gets these arguments.
Problem with(Problem problem, std::uint32_t function, std::vector<EpilogueStep> arguments) {
  problem.epilogue.function = function;
  arguments.push_back(call);
  std::ranges::copy(arguments, problem.epilogue.steps.begin());
  return problem;
}

TEST_P(Functions, EqualTheStepThatIsBuiltIn) {
  const std::uint32_t gelu = added("approximate_gelu", vkgemm_approximate_gelu);
  for (const Config& one : small_configs(GetParam(), input())) {
    const Problem plain = product({2u * one.tile_m + 3u, one.tile_n + 5u, 9});
    const Problem problem = with(plain, gelu, {});
    if (!is_legal_here(one, problem) || is_left_out(one, problem)) continue;
    Problem built_in = plain;
    built_in.epilogue.activation = Activation::gelu_tanh;
    Trial trial(problem, Fill::random), reference(built_in, Fill::random);
    ASSERT_TRUE(trial.run(one));
    ASSERT_TRUE(reference.run(one));
    for (std::uint64_t i = 0; i < plain.m; ++i) {
      for (std::uint64_t j = 0; j < plain.n; ++j) {
        ASSERT_NEAR(trial.d(i, j), reference.d(i, j), 1e-5 * (1.0 + std::fabs(reference.d(i, j))))
            << i << ", " << j;
      }
    }
  }
}

// A column-major D is computed as its transpose, a product by slices of K elsewhere, groups in
// parts: the place is that of the caller's D.
TEST_P(Functions, GetThePlaceOfTheElement) {
  const std::uint32_t place = added("place", vkgemm_place);
  const auto is_at_its_place = [&](const Config& one, Problem problem,
                                   const TrialOptions& options = {}) {
    problem = with(problem, place, {});
    if (!is_legal_here(one, problem)) return;
    Trial trial(problem, Fill::random, options);
    ASSERT_TRUE(trial.run(one));
    for (std::uint64_t i = 0; i < problem.m; ++i) {
      for (std::uint64_t j = 0; j < problem.n; ++j) {
        ASSERT_EQ(trial.d(i, j), static_cast<double>(i * 1024 + j)) << i << ", " << j;
      }
    }
  };
  const Shape shape{config().tile_m + 3u, 37, 256};
  is_at_its_place(config(), product(shape));
  Problem transposed = product(shape);
  transposed.d.layout = Layout::col_major;
  is_at_its_place(config(), transposed);
  for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver}) {
    is_at_its_place(sliced(config(), 3, mode), product(shape));
  }
  const Offsets offsets = offsets_of({5, 0, config().tile_m + 1u});
  is_at_its_place(config(), grouped(product({0, 37, 9}), offsets), {.offsets = offsets});
}

double everything_of(double value, std::uint64_t i, std::uint64_t j, std::vector<double> x) {
  constexpr double table[] = {0.5, 1.0, 2.0};
  double sum = 0.0;
  for (const double one : x) sum += std::max(one, 0.0);
  value = i % 3 == 0 ? value + 1.0 : i % 3 == 1 ? value * 2.0 - 0.5 : value - 0.5;
  return value * table[j % 3] + static_cast<double>(i) + sum;
}

TEST_P(Functions, TakeArgumentsOfEachKind) {
  Problem problem = product({19, 24, 9});
  problem.epilogue.tensors = {TensorShape::matrix, TensorShape::along_n, TensorShape::along_m};
  problem.t0.type = problem.t1.type = problem.t2.type = DataType::f32;
  problem = with(problem, added("everything", vkgemm_everything),
                 {argument(StepOperand::t0), argument(2.0f), argument(StepOperand::t1),
                  argument(StepOperand::t2)});
  Problem plain = product({19, 24, 9});
  Trial trial(problem, Fill::random), product_alone(plain, Fill::random);
  ASSERT_TRUE(trial.run(config()));
  ASSERT_TRUE(product_alone.run(config()));
  for (std::uint64_t i = 0; i < 19; ++i) {
    for (std::uint64_t j = 0; j < 24; ++j) {
      const double expected =
          everything_of(product_alone.d(i, j), i, j,
                        {trial.get(OperandId::t0, i, j), 2.0, trial.get(OperandId::t1, 0, j),
                         trial.get(OperandId::t2, i, 0)});
      ASSERT_NEAR(trial.d(i, j), expected, 1e-4) << i << ", " << j;
    }
  }
}

// Two calls with arguments of their own.
TEST_P(Functions, AreCalledTwice) {
  Problem problem = product({9, 21, 9});
  problem.epilogue.function = added("clamped_swiglu", vkgemm_clamped_swiglu);
  problem.epilogue.steps = {argument(3.0f), call, argument(20.0f), call};
  Trial trial(problem, Fill::random), alone(product({9, 21, 9}), Fill::random);
  ASSERT_TRUE(trial.run(config()));
  ASSERT_TRUE(alone.run(config()));
  const auto gate = [](double v, double x) {
    x = std::min(x, 7.0);
    return x / (1.0 + std::exp(-1.702 * x)) * (std::clamp(v, -7.0, 7.0) + 1.0);
  };
  for (std::uint64_t i = 0; i < 9; ++i) {
    for (std::uint64_t j = 0; j < 21; ++j) {
      const double expected = gate(gate(alone.d(i, j), 3.0), 20.0);
      ASSERT_NEAR(trial.d(i, j), expected, 1e-3) << i << ", " << j;
    }
  }
}

TEST_P(Functions, BehindGatesAndBeforeRows) {
  const std::uint32_t place = added("place", vkgemm_place);
  int tried = 0;
  for (const bool gated : {true, false}) {
    Problem problem = with(product({9, 24, 37}), place, {});
    if (gated) {
      problem.gated = Gated{.gate = Gate::reglu};
    } else {
      problem.row_reduction = RowReduction{.op = RowOp::sum};
    }
    for (Config one : small_configs(GetParam(), input())) {
      if (!gated) one.rows = RowStrategy::two_pass;
      if (!is_legal_here(one, problem) || is_left_out(one, problem)) continue;
      Trial trial(problem, Fill::random);
      ASSERT_TRUE(trial.run(one));
      EXPECT_EQ(trial.d(7, 21), 7.0 * 1024 + 21);
      ++tried;
    }
  }
  EXPECT_GE(tried, 1);
}

// A share of the elements stays, the same one whatever the configuration.
TEST_P(Functions, DropOut) {
  Problem problem = product({64, 64, 8});
  const Context& context = test::context();
#include "../examples/readme/function.inc"
  problem.t0.type = DataType::f32;
  Trial trial(problem, Fill::random), alone(product({64, 64, 8}), Fill::random);
  ASSERT_TRUE(trial.run(config()));
  ASSERT_TRUE(alone.run(config()));
  int kept = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    for (std::uint64_t j = 0; j < 64; ++j) {
      if (trial.d(i, j) == 0.0) continue;
      EXPECT_NEAR(trial.d(i, j), alone.d(i, j) / 0.75, 1e-5);
      ++kept;
    }
  }
  EXPECT_NEAR(kept, 0.75 * 64 * 64, 150);
}

TEST(FunctionsOfContexts, CountInEstimates) {
  if (on_cpu()) GTEST_SKIP() << "estimates for a CPU count products and stores";
  Problem problem = gemm({256, 256, 64}, DataType::f32, DataType::f32);
  problem.epilogue.steps[0] = call;
  std::vector<double> estimates;
  for (const double cost : {0.0, 1000.0}) {
    const auto number = context().add_function({.name = "f", .spirv = vkgemm_place, .cost = cost});
    ASSERT_TRUE(number);
    problem.epilogue.function = *number;
    const auto plan = context().plan(problem);
    ASSERT_TRUE(plan) << plan.error().message;
    ASSERT_TRUE(plan->estimated_ms());
    estimates.push_back(*plan->estimated_ms());
  }
  EXPECT_GT(estimates[1], 2.0 * estimates[0]);
}

TEST(FunctionsOfContexts, AreRefusedByName) {
  const auto fails = [](const EpilogueFunction& function, const std::string& message) {
    const auto number = context().add_function(function);
    ASSERT_FALSE(number);
    EXPECT_NE(number.error().message.find(message), std::string::npos) << number.error().message;
  };
  fails({.name = "", .spirv = vkgemm_place}, "function.name is empty");
  fails({.name = "none"}, "function none: SPIR-V, word 0: there is no header");
  fails({.name = "gift", .spirv = vkgemm_place, .cost = -1.0}, "function gift: cost is -1: ");
  std::vector<std::uint32_t> words(std::begin(vkgemm_place), std::end(vkgemm_place));
  words.resize(words.size() - 3);
  fails({.name = "cut", .spirv = words}, "function cut: ");
  fails({.name = "counter", .spirv = vkgemm_counter},
        "function counter: it has a global variable without a constant value");
  Problem problem = gemm({8, 8, 8}, DataType::f32, DataType::f32);
  problem.epilogue.steps[0] = call;
  problem.epilogue.function = 1u << 20;
  const auto plan = context().plan(problem);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("epilogue.function is 1048576: the context has "),
            std::string::npos)
      << plan.error().message;
}

}  // namespace
}  // namespace vkgemm::test
