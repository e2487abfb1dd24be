// Special values: NaN and Inf go where IEEE sends them, padding contributes nothing, large
// arguments saturate, and what does not fit the output type is infinite.
#include <cmath>

#include "harness.hpp"
#include "problem/convert.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

// D before the run where NaN is a result.
constexpr std::byte finite_poison{0x3a};

class Values : public EachPath {
 protected:
  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
};
VKGEMM_ON_EACH_PATH(Values);

// Values in row i of A must show in row i of D, and nowhere else.
TEST_P(Values, NanAndInfStayInTheirRowAndColumn) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const Problem problem = with_padding(
      gemm({config().tile_m + 5u, config().tile_n + 3u, config().tile_k + 1u}, input()));
  Trial trial(problem, Fill::integers, {.shift = 1, .poison = finite_poison});
  trial.set(OperandId::a, 2, config().tile_k, nan);  // in the tail of K
  trial.set(OperandId::a, problem.m - 1, 0, infinity);
  trial.set(OperandId::b, 1, problem.n - 1, -infinity);
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(trial.is_within_bound());
  for (std::uint64_t j = 0; j < problem.n; ++j) EXPECT_TRUE(std::isnan(trial.d(2, j))) << j;
  for (std::uint64_t i = 0; i < problem.m; ++i) {
    if (i == 2) continue;
    EXPECT_FALSE(std::isfinite(trial.d(i, problem.n - 1))) << i;
    for (std::uint64_t j = 0; j + 1 < problem.n && i + 1 < problem.m; ++j) {
      ASSERT_TRUE(std::isfinite(trial.d(i, j))) << i << ", " << j;
    }
  }
}

TEST_P(Values, ZeroTimesInfIsNan) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const Problem problem = with_padding(gemm({3, 3, 5}, input()));
  Trial trial(problem, Fill::integers, {.shift = 1, .poison = finite_poison});
  for (std::uint64_t k = 0; k < 5; ++k) trial.set(OperandId::a, 0, k, 0.0);
  for (std::uint64_t j = 0; j < 3; ++j) trial.set(OperandId::b, 4, j, j == 1 ? infinity : 0.0);
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(std::isnan(trial.d(0, 1)));
  EXPECT_EQ(trial.d(0, 0), 0.0);
  EXPECT_EQ(trial.d(0, 2), 0.0);
}

// beta = 0 reads no C: a NaN in it, or no C at all, makes no difference. (Trials leave C unbound.)
TEST_P(Values, BetaZeroReadsNoC) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  Problem problem = with_padding(gemm({19, 21, 23}, input()));
  problem.epilogue.beta = 0.0f;
  EXPECT_TRUE(passes_gates(config(), problem));
}

// D in place of C, in each of its types; with beta = 1 and a NaN in C that must survive.
TEST_P(Values, InPlace) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  for (const DataType type : {DataType::f32, input()}) {
    Problem problem =
        with_padding(gemm({2 * config().tile_m + 1u, config().tile_n + 5u, 33}, input(), type));
    problem.c = problem.d;
    problem.epilogue.beta = -1.0f;
    EXPECT_TRUE(passes_gates(config(), problem, {.shift = 1, .in_place = true}));
    Trial trial(problem, Fill::integers, {.shift = 1, .in_place = true});
    trial.set(OperandId::c, 1, 1, nan);
    ASSERT_TRUE(trial.run(config()));
    EXPECT_TRUE(trial.is_within_bound());
    EXPECT_TRUE(std::isnan(trial.d(1, 1)));
  }
}

// Results beyond the largest number of D's type are infinite, those just below are not; a NaN
// that only has bits which the cast drops stays a NaN.
TEST_P(Values, Overflow) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  Problem problem = with_padding(gemm({6, 5, 1}, input(), input()));
  problem.epilogue.alpha = 256.0f;
  problem.epilogue.beta = 1.0f;
  problem.c.type = DataType::f32;
  problem.c.alignment = 4;
  Trial trial(problem, Fill::integers, {.poison = finite_poison});
  for (std::uint64_t i = 0; i < 6; ++i) {
    for (std::uint64_t j = 0; j < 5; ++j) trial.set(OperandId::c, i, j, 0.0);
    trial.set(OperandId::a, i, 0, i == 5 ? -255.0 : i == 0 ? 255.0 : 254.0);
  }
  for (std::uint64_t j = 0; j < 5; ++j) trial.set(OperandId::b, 0, j, 1.0);
  trial.set(OperandId::c, 0, 1, 224.0);   // 65504, the largest f16
  trial.set(OperandId::c, 0, 2, 239.0);   // rounds to it
  trial.set(OperandId::c, 0, 3, 240.0);   // half way to 65536: infinite in f16
  trial.set(OperandId::c, 1, 0, 3.4e38);  // infinite in bf16, too
  trial.set(OperandId::c, 1, 1, -3.4028234e38);
  trial.set(OperandId::c, 1, 2, nan);
  trial.set(OperandId::c, 1, 3, infinity);
  ASSERT_TRUE(trial.run(config()));
  EXPECT_TRUE(trial.is_within_bound());
  EXPECT_TRUE(std::isnan(trial.d(1, 2)));
  EXPECT_EQ(trial.d(1, 3), infinity);
  if (input() != DataType::f16) return;
  EXPECT_EQ(trial.d(0, 1), 65504.0);
  EXPECT_EQ(trial.d(0, 2), 65504.0);
  EXPECT_EQ(trial.d(0, 3), infinity);
  EXPECT_EQ(trial.d(1, 1), -infinity);
}

// --- activations
// --------------------------------------------------------------------------------------

class Activations : public Values {
 protected:
  // D = activation(x) for each x, with aux = x.
  void expect(Activation activation, std::initializer_list<std::pair<double, double>> values,
              bool clamped = false) {
    VKGEMM_SKIP_IF(why_skip(GetParam()));
    Problem problem = with_padding(gemm({values.size(), 1, 1}, input()));
    problem.epilogue = {.activation = activation, .aux = true};
    if (clamped) {
      problem.epilogue.clamp_min = -1.0f;
      problem.epilogue.clamp_max = 2.0f;
    }
    Trial trial(problem, Fill::integers, {.poison = finite_poison});
    trial.set(OperandId::b, 0, 0, 1.0);
    std::uint64_t row = 0;
    for (const auto& [x, y] : values) trial.set(OperandId::a, row++, 0, x);
    ASSERT_TRUE(trial.run(config()));
    row = 0;
    for (const auto& [x, y] : values) {
      const double got = trial.d(row, 0);
      if (std::isnan(y)) {
        EXPECT_TRUE(std::isnan(got)) << to_string(activation) << '(' << x << ") is " << got;
      } else if (std::isinf(y) || y == 0.0 || std::fabs(y) == 1.0) {
        EXPECT_EQ(got, y) << to_string(activation) << '(' << x << ')';
      } else {
        // Relative: what is close to zero must not be rounded away.
        EXPECT_NEAR(got, y, std::fabs(y) * 1e-5) << to_string(activation) << '(' << x << ')';
      }
      const double aux = trial.aux(row++, 0);
      EXPECT_TRUE(aux == x || (std::isnan(aux) && std::isnan(x)))
          << "aux of " << x << " is " << aux;
    }
  }
};
VKGEMM_ON_EACH_PATH(Activations);

// 0x1p-10 and its neighbours are exact in all three types.
TEST_P(Activations, Relu) {
  expect(Activation::relu, {{nan, nan},
                            {infinity, infinity},
                            {-infinity, 0.0},
                            {-0x1p-10, 0.0},
                            {0x1p-10, 0x1p-10},
                            {-100.0, 0.0},
                            {100.0, 100.0}});
}
TEST_P(Activations, Tanh) {
  expect(Activation::tanh, {{nan, nan},
                            {infinity, 1.0},
                            {-infinity, -1.0},
                            {100.0, 1.0},
                            {-100.0, -1.0},
                            {0x1p-10, std::tanh(0x1p-10)},
                            {-0x1p-10, std::tanh(-0x1p-10)},
                            {0.0, 0.0},
                            {0.5, std::tanh(0.5)},
                            {-3.0, std::tanh(-3.0)},
                            {60000.0, 1.0}});
}
TEST_P(Activations, Sigmoid) {
  expect(Activation::sigmoid, {{nan, nan},
                               {infinity, 1.0},
                               {-infinity, 0.0},
                               {100.0, 1.0},
                               {-80.0, 1.0 / (1.0 + std::exp(80.0))},
                               {0.0, 0.5},
                               {-3.0, 1.0 / (1.0 + std::exp(3.0))},
                               {60000.0, 1.0},
                               {-60000.0, 0.0}});
}
TEST_P(Activations, Silu) {
  expect(Activation::silu, {{nan, nan},
                            {infinity, infinity},
                            {100.0, 100.0},
                            {0.0, 0.0},
                            {-3.0, -3.0 / (1.0 + std::exp(3.0))},
                            {0x1p-10, 0x1p-10 / (1.0 + std::exp(-0x1p-10))},
                            {-60000.0, 0.0}});
}
TEST_P(Activations, GeluErf) {
  const auto gelu = [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); };
  expect(Activation::gelu_erf, {{nan, nan},
                                {infinity, infinity},
                                {100.0, 100.0},
                                {0.0, 0.0},
                                {-50.0, 0.0},
                                {-60000.0, 0.0},
                                {-1.0, gelu(-1.0)},
                                {-4.0, gelu(-4.0)},
                                {0x1p-10, gelu(0x1p-10)},
                                {2.5, gelu(2.5)}});
}
TEST_P(Activations, GeluTanh) {
  const auto gelu = [](double x) {
    const double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    return x / (1.0 + std::exp(-2.0 * u));
  };
  expect(Activation::gelu_tanh, {{nan, nan},
                                 {infinity, infinity},
                                 {100.0, 100.0},
                                 {0.0, 0.0},
                                 {-50.0, 0.0},
                                 {-60000.0, 0.0},
                                 {-1.0, gelu(-1.0)},
                                 {0x1p-10, gelu(0x1p-10)},
                                 {2.5, gelu(2.5)}});
}
// Clamping keeps NaN, and cuts infinities.
TEST_P(Activations, Clamp) {
  expect(Activation::none,
         {{nan, nan}, {infinity, 2.0}, {-infinity, -1.0}, {0.5, 0.5}, {100.0, 2.0}, {-100.0, -1.0}},
         true);
}

}  // namespace
}  // namespace vkgemm::test
