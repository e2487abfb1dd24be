// Steps of an epilogue without a device: their text, their checks, the formula, and the oracle's
// bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "oracle/step_reference.hpp"
#include "problem/enumerators.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/formula.hpp"
#include "problem/resolve.hpp"
#include "problem/tensor_places.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {
namespace {

constexpr EpilogueStep multiply_by_t0{.op = StepOp::multiply, .operand = StepOperand::t0};

Problem product() { return test::gemm(64, 48, 32, DataType::f16); }
Problem with_t0(TensorShape shape = TensorShape::matrix) {
  Problem problem = product();
  problem.epilogue.tensors[0] = shape;
  problem.epilogue.steps[0] = multiply_by_t0;
  return problem;
}

TEST(EpilogueSteps, TextRoundTrips) {
  for (const std::string_view text :
       {"add:t0", "multiply:-0.5", "maximum:1e-30", "activate:silu", "activate:elu:0.1",
        "derivative:gelu_erf:t3", "derivative:leaky_relu:t1:0.25", "store:t2", "sum_columns:t3",
        "amax:t0"}) {
    const auto step = parse_epilogue_step(text);
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_EQ(to_string(*step), text);
  }
  const auto fails = [](std::string_view text, std::string_view part) {
    const auto step = parse_epilogue_step(text);
    ASSERT_FALSE(step) << text;
    EXPECT_NE(step.error().message.find(part), std::string::npos) << step.error().message;
  };
  fails("", "''");
  fails("none", "'none'");
  fails("times:t0", "'times'");
  fails("add", "t0 … t3 or a number");
  fails("add:t4", "'t4'");
  fails("add:t0:1", "'1'");
  fails("activate:selu", "'selu'");
  fails("activate:elu", "a number");
  fails("derivative:silu", "t0 … t3");
  fails("store:2", "'2'");
}

TEST(EpilogueSteps, ErrorsNameFieldAndValue) {
  struct Case {
    void (*change)(Problem&);
    std::string_view message;
  };
  const Case cases[] = {
      {[](Problem& p) { p.epilogue.steps[2] = multiply_by_t0; },
       "epilogue.steps[2] is multiply:t0, but epilogue.steps[1].op is none"},
      {[](Problem& p) { p.epilogue.steps[0].operand = StepOperand::t1; },
       "epilogue.tensors[0] is matrix, but no step names t0"},
      {[](Problem& p) { p.epilogue.tensors[0] = TensorShape::none; },
       "epilogue.tensors[0] is none, and a step names t0"},
      {[](Problem& p) { p.epilogue.steps[0].number = 2.0f; }, "epilogue.steps[0].number is 2"},
      {[](Problem& p) { p.epilogue.steps[0].activation = Activation::silu; },
       "epilogue.steps[0].activation is silu: multiply has none"},
      {[](Problem& p) { p.epilogue.steps[1] = {.op = StepOp::activate}; },
       "epilogue.steps[1].activation is none: activate needs one"},
      {[](Problem& p) {
         p.epilogue.steps[1] = {.op = StepOp::activate, .activation = Activation::elu};
       },
       "epilogue.steps[1].number is 0: elu needs its number"},
      {[](Problem& p) {
         p.epilogue.steps[1] = {.op = StepOp::derivative, .activation = Activation::silu};
       },
       "epilogue.steps[1].operand is number: derivative needs a tensor"},
      {[](Problem& p) { p.epilogue.steps[1] = {.op = StepOp::store, .operand = StepOperand::t0}; },
       "epilogue.tensors[0] is matrix: a step stores t0, so no other may name it"},
      {[](Problem& p) {
         p.epilogue.steps[0].op = StepOp::store;
         p.epilogue.tensors[0] = TensorShape::along_n;
       },
       "epilogue.tensors[0] is along_n: a step stores t0, so it must be a matrix or a mask"},
      {[](Problem& p) { p.t0.type = DataType::s32; }, "t0.type is s32"},
      {[](Problem& p) { p.t0.ld = 47; }, "t0.ld is 47: a row of N = 48 needs at least 48"},
      {[](Problem& p) { p.t0.packing = Packing::packed; }, "t0.packing is packed"},
      {[](Problem& p) { p.t0.alignment = 3; }, "t0.alignment is 3"},
      {[](Problem& p) {
         p.epilogue.tensors[0] = TensorShape::along_m;
         p.t0.ld = 64;
       },
       "t0.ld is 64 and epilogue.tensors[0] is along_m"},
      {[](Problem& p) { p.epilogue.steps[0] = {.op = StepOp::add, .number = NAN}; },
       "epilogue.steps[0].number is nan"},
      {[](Problem& p) { p.epilogue.activation = Activation::leaky_relu; },
       "epilogue.activation is leaky_relu: it takes a number, so it must be a step"},
      {[](Problem& p) {
         p.epilogue.beta = 1.0f;
         p.epilogue.aux = true;
         p.epilogue.bias = Bias::along_n;
         p.epilogue.tensors[1] = TensorShape::scalar;
         p.epilogue.steps[1] = {.op = StepOp::add, .operand = StepOperand::t1};
       },
       "epilogue.tensors[1] is scalar: an epilogue uses at most 4 of C, aux, bias, t0 … t3"},
      {[](Problem& p) { p.epilogue.steps[1].op = static_cast<StepOp>(77); }, "op is 77"},
      {[](Problem& p) { p.epilogue.tensors[3] = static_cast<TensorShape>(9); },
       "epilogue.tensors[3] is 9"},
      {[](Problem& p) {
         p.batch = 2;
         p.epilogue.steps[0].op = StepOp::store;
         p.t0.batch_stride = 0;
       },
       "t0.batch_stride is 0"},
      {[](Problem& p) {
         p.epilogue.steps[0].op = StepOp::amax;
         p.t0.type = DataType::f32;
       },
       "epilogue.tensors[0] is matrix: a step writes amax to t0, so it must be scalar"},
      {[](Problem& p) {
         p.epilogue.steps[0].op = StepOp::amax;
         p.epilogue.tensors[0] = TensorShape::scalar;
         p.t0.type = DataType::f16;
       },
       "t0.type is f16: a step writes amax to t0, so it must be f32"},
      {[](Problem& p) {
         p.epilogue.steps[0].op = StepOp::amax;
         p.epilogue.tensors[0] = TensorShape::scalar;
         p.t0 = {.type = DataType::f32, .batch_stride = 1};
       },
       "t0.batch_stride is 1: a step writes amax to t0, so it must be 0: one number is for the "
       "whole batch"},
      {[](Problem& p) { p.epilogue.tensors[0] = TensorShape::mask; },
       "t0.type is f16: a mask must be u8"},
      {[](Problem& p) {
         p.epilogue.tensors[0] = TensorShape::mask;
         p.t0 = {.type = DataType::u8, .layout = Layout::col_major};
       },
       "t0.layout is col_major and d.layout is row_major: a mask must have the layout of D"},
      {[](Problem& p) {
         p.epilogue.tensors[0] = TensorShape::mask;
         p.t0 = {.type = DataType::u8, .ld = 10};
       },
       "t0.ld is 10: of a mask it must be a multiple of 4"},
      {[](Problem& p) {
         p.epilogue.tensors[0] = TensorShape::mask;
         p.t0 = {.type = DataType::u8, .ld = 4};
       },
       "t0.ld is 4: a row of bits of N = 8 needs at least 8"},
      {[](Problem& p) {
         p.epilogue.tensors[0] = TensorShape::mask;
         p.t0 = {.type = DataType::u8, .alignment = 2};
       },
       "t0.alignment is 2: of a mask it must be a multiple of 4"},
      {[](Problem& p) {
         p.epilogue.tensors[0] = TensorShape::mask;
         p.t0 = {.type = DataType::u8, .layout = Layout::col_major};
         p.d.layout = Layout::col_major;
         p.gated = Gated{};
       },
       "d.layout is col_major and t0 is a mask: with a gate, a row reduction or a quantised B, D "
       "must be row_major"},
  };
  for (const Case& c : cases) {
    Problem problem = with_t0();
    c.change(problem);
    const auto resolved = resolve(problem);
    ASSERT_FALSE(resolved) << c.message;
    EXPECT_NE(resolved.error().message.find(c.message), std::string::npos)
        << resolved.error().message << "\nexpected: " << c.message;
  }
}

// Each tensor has parameters of its own, wherever C, aux and bias leave some.
TEST(EpilogueSteps, TensorsTakeWhatIsFree) {
  Problem problem = product();
  const StepOperand all[] = {StepOperand::t0, StepOperand::t1, StepOperand::t2, StepOperand::t3};
  for (std::size_t i = 0; i < most_tensors; ++i) {
    problem.epilogue.tensors[i] = TensorShape::matrix;
    problem.epilogue.steps[i] = {.op = StepOp::add, .operand = all[i]};
  }
  using Slots = std::array<std::uint32_t, most_tensors>;
  EXPECT_EQ(places_of(resolve(problem).value()),
            (Slots{PLACE_C, PLACE_AUX, PLACE_BIAS, PLACE_EXTRA}));
  problem.epilogue.beta = 1.0f;
  problem.epilogue.tensors[3] = TensorShape::none;
  problem.epilogue.steps[3] = {};
  EXPECT_EQ(places_of(resolve(problem).value()), (Slots{PLACE_AUX, PLACE_BIAS, PLACE_EXTRA, 0}));
}

TEST(EpilogueSteps, CommandLineRepeatsTheProblem) {
  Problem problem = with_t0();
  problem.epilogue.steps[1] = {.op = StepOp::activate, .activation = Activation::exp};
  problem.t0 = {.type = DataType::f32, .layout = Layout::col_major, .ld = 70};
  const std::string line = to_command_line(problem);
  for (const std::string_view part : {"--tensors matrix", "--dtype-t0 f32", "--layout-t0 col_major",
                                      "--ld-t0 70", "--steps multiply:t0,activate:exp"}) {
    EXPECT_NE(line.find(part), std::string::npos) << line;
  }
}

TEST(EpilogueSteps, Formula) {
  Problem problem = with_t0();
  problem.epilogue.alpha = 2.0f;
  problem.epilogue.bias = Bias::along_n;
  problem.epilogue.clamp_min = 0.0f;
  problem.epilogue.steps[1] = {.op = StepOp::store, .operand = StepOperand::t1};
  problem.epilogue.tensors[1] = TensorShape::matrix;
  problem.epilogue.steps[2] = {.op = StepOp::add, .number = 0.5f};
  problem.epilogue.steps[3] = {.op = StepOp::derivative,
                               .activation = Activation::elu,
                               .operand = StepOperand::t2,
                               .number = 0.25f};
  problem.epilogue.tensors[2] = TensorShape::scalar;
  EXPECT_EQ(formula(problem),
            "  t1[i, j] = (2 · a·b + bias[j]) · t0[i, j]\n"
            "  d[i, j] = clamp(((2 · a·b + bias[j]) · t0[i, j] + 0.5) · elu'(t2, 0.25), 0, inf)\n");
  problem = with_t0(TensorShape::along_n);
  problem.epilogue.bias = Bias::along_n;
  problem.epilogue.steps[0].op = StepOp::sum_columns;
  problem.t0.type = DataType::f32;
  EXPECT_EQ(formula(problem),
            "  t0[j] = sum over i of (a·b + bias[j])\n"
            "  d[i, j] = a·b + bias[j]\n");
  problem = with_t0(TensorShape::along_m);
  problem.gated = Gated{.gate = Gate::swiglu};
  EXPECT_EQ(formula(problem), "  d[i, j] = swiglu(a·b_l, a·b_r) · t0[i]\n");
}

// Derivatives against differences of the functions.
TEST(EpilogueSteps, DerivativesAreSlopes) {
  using oracle::Bounded;
  for (std::size_t i = 1; i < enumerator_names<Activation>.size(); ++i) {
    const auto activation = static_cast<Activation>(i);
    const double number = takes_number(activation) ? 0.3 : 0.0;
    for (double x = -8.25; x < 8.5; x += 0.5) {
      if (activation == Activation::sqrt && x < 0.5) continue;
      constexpr double h = 1e-5;
      const auto f = [&](double at) {
        return oracle::activate(activation, Bounded{at, 0.0}, number).value;
      };
      const double slope = (f(x + h) - f(x - h)) / (2.0 * h);
      EXPECT_NEAR(oracle::derivative(activation, x, number).value, slope,
                  1e-6 * (1.0 + std::fabs(slope)))
          << to_string(activation) << " at " << x;
    }
  }
}

// 10,000 lists, computed in f32, stay within the oracle's bounds.
TEST(EpilogueSteps, BoundsHoldForF32) {
  std::mt19937 random(5);
  const auto pick = [&](std::size_t count) { return random() % count; };
  const auto value = [&] { return static_cast<float>(random()) * 0x1p-30f - 2.0f; };
  std::size_t predicted = 0;
  for (int list = 0; list < 10000; ++list) {
    float v = value();
    oracle::Bounded expected{static_cast<double>(v), 0.0};
    bool unpredictable = false;
    const std::size_t count = 1 + pick(most_steps);
    for (std::size_t i = 0; i < count; ++i) {
      EpilogueStep step{.op = static_cast<StepOp>(1 + pick(8))};
      const float x = value();
      if (step.op == StepOp::activate || step.op == StepOp::derivative) {
        step.activation =
            static_cast<Activation>(1 + pick(enumerator_names<Activation>.size() - 1));
        if (takes_number(step.activation)) step.number = 0.3f;
      }
      const auto number = static_cast<double>(step.number);
      switch (step.op) {
        case StepOp::add:
          v += x;
          break;
        case StepOp::subtract:
          v -= x;
          break;
        case StepOp::multiply:
          v *= x;
          break;
        case StepOp::divide:
          v /= x;
          break;
        case StepOp::maximum:
          v = std::isnan(v) || v > x ? v : x;
          break;
        case StepOp::minimum:
          v = std::isnan(v) || v < x ? v : x;
          break;
        case StepOp::activate:
          v = static_cast<float>(
              oracle::activate(step.activation, {static_cast<double>(v), 0.0}, number).value);
          break;
        default:
          v *= static_cast<float>(
              oracle::derivative(step.activation, static_cast<double>(x), number).value);
      }
      const oracle::Stepped stepped = apply_step(step, expected, static_cast<double>(x));
      expected = stepped.v;
      unpredictable = unpredictable || stepped.unpredictable;
    }
    if (unpredictable) continue;
    ++predicted;
    if (std::isnan(expected.value) || std::isnan(v)) {
      ASSERT_EQ(std::isnan(expected.value), std::isnan(v)) << "list " << list;
    } else if (std::isinf(expected.value) || std::isinf(v)) {
      ASSERT_TRUE(static_cast<double>(v) == expected.value || std::isinf(expected.bound))
          << "list " << list;
    } else {
      ASSERT_LE(std::fabs(static_cast<double>(v) - expected.value), expected.bound)
          << "list " << list;
    }
  }
  EXPECT_GT(predicted, 8000u);
}

TEST(EpilogueSteps, FunctionsCostWhatTheApplicationSays) {
  const DeviceCaps caps = test::h200();
  const DeviceTables tables(caps);
  ResolvedProblem problem = test::resolved(test::gemm(3000, 3000, 512));
  const double free = tables.best_estimate(problem, caps).value().cost;
  problem.function_cost = 1.0;
  const double as_matrix = tables.best_estimate(problem, caps).value().cost;
  problem.function_cost = 20.0;
  EXPECT_GT(as_matrix, free);
  EXPECT_GT(tables.best_estimate(problem, caps).value().cost, as_matrix);
}

}  // namespace
}  // namespace vkgemm
