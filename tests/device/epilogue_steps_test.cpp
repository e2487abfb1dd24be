// Steps of an epilogue: every operation, function, shape and type of a tensor, and what they
// compose with.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "problem/enumerators.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using Steps = std::initializer_list<EpilogueStep>;
using Shapes = std::initializer_list<TensorShape>;

Problem with_steps(Problem problem, Steps steps, Shapes shapes = {}) {
  std::ranges::copy(steps, problem.epilogue.steps.begin());
  std::ranges::copy(shapes, problem.epilogue.tensors.begin());
  return problem;
}

EpilogueStep step(StepOp op, StepOperand operand) { return {.op = op, .operand = operand}; }
EpilogueStep step(StepOp op, float number) { return {.op = op, .number = number}; }
EpilogueStep activate(Activation activation, float number = 0.0f) {
  return {.op = StepOp::activate, .activation = activation, .number = number};
}
EpilogueStep derivative(Activation activation, StepOperand operand, float number = 0.0f) {
  return {.op = StepOp::derivative, .activation = activation, .operand = operand, .number = number};
}

constexpr StepOp binary_ops[] = {StepOp::add,    StepOp::subtract, StepOp::multiply,
                                 StepOp::divide, StepOp::maximum,  StepOp::minimum};
constexpr TensorShape all_shapes[] = {TensorShape::scalar, TensorShape::along_n,
                                      TensorShape::along_m, TensorShape::matrix};

std::vector<Activation> all_activations() {
  std::vector<Activation> all;
  for (std::size_t i = 1; i < enumerator_names<Activation>.size(); ++i) {
    all.push_back(static_cast<Activation>(i));
  }
  return all;
}
float number_of(Activation activation) { return takes_number(activation) ? 0.25f : 0.0f; }

class EpilogueSteps : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
  bool is_legal_here(const Config& config, const Problem& problem) const {
    return is_legal(config, resolve(problem).value(), target());
  }
  // Path nv stores nothing in steps.
  static bool stores() { return GetParam() != Path::nv; }
};
VKGEMM_ON_EACH_PATH(EpilogueSteps);

TEST_P(EpilogueSteps, EveryOperation) {
  for (const StepOp op : binary_ops) {
    EXPECT_TRUE(passes_gates(
        config(), with_padding(with_steps(gemm({19, 21, 37}, input()), {step(op, -1.5f)}))));
    EXPECT_TRUE(passes_gates(
        config(), with_padding(with_steps(gemm({19, 21, 37}, input(), DataType::f32),
                                          {step(op, StepOperand::t0)}, {TensorShape::matrix}))));
  }
}

TEST_P(EpilogueSteps, EveryFunctionAndItsDerivative) {
  for (const Activation activation : all_activations()) {
    const float number = number_of(activation);
    EXPECT_TRUE(
        passes_gates(config(), with_padding(with_steps(gemm({9, 21, 7}, input(), DataType::f32),
                                                       {activate(activation, number)}))))
        << to_string(activation);
    EXPECT_TRUE(passes_gates(
        config(), with_padding(with_steps(gemm({9, 21, 7}, input(), DataType::f32),
                                          {derivative(activation, StepOperand::t0, number)},
                                          {TensorShape::matrix}))))
        << to_string(activation);
  }
}

// Large arguments: no derivative makes a NaN of a number.
TEST_P(EpilogueSteps, DerivativesOfHugeNumbers) {
  for (const Activation activation : all_activations()) {
    const Problem problem = with_steps(
        gemm({1, 8, 4}, input(), DataType::f32),
        {derivative(activation, StepOperand::t0, number_of(activation))}, {TensorShape::matrix});
    Problem wide = problem;
    wide.t0.type = DataType::f32;
    Trial trial(wide, Fill::integers);
    const double limit =  // gelu_erf' is defined there
        activation == Activation::gelu_erf ? std::numeric_limits<double>::infinity() : 200.0;
    const double huge[] = {1e34, -1e34, 3.4e38, -3.4e38, limit, -limit, 1e-30, 0.0};
    for (std::size_t j = 0; j < std::size(huge); ++j) trial.set(OperandId::t0, 0, j, huge[j]);
    for (std::uint64_t k = 0; k < 4; ++k) {
      trial.set(OperandId::a, 0, k, 1.0);
      for (std::uint64_t j = 0; j < 8; ++j) trial.set(OperandId::b, k, j, 0.25);
    }
    ASSERT_TRUE(trial.run(config()));
    for (std::uint64_t j = 0; j < 8; ++j) {
      const bool has_none = activation == Activation::sqrt && huge[j] <= 0.0;
      EXPECT_TRUE(has_none || !std::isnan(trial.d(0, j))) << to_string(activation) << huge[j];
    }
    EXPECT_TRUE(trial.is_within_bound()) << to_string(activation);
  }
}

TEST_P(EpilogueSteps, EveryShapeTypeAndLayoutOfATensor) {
  for (const TensorShape shape : all_shapes) {
    for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
      for (const Layout layout : {Layout::row_major, Layout::col_major}) {
        if (shape != TensorShape::matrix && layout == Layout::col_major) continue;
        for (const Layout d : {Layout::row_major, Layout::col_major}) {
          Problem problem =
              with_steps(gemm({17, 24, 9}, input()), {step(StepOp::multiply, StepOperand::t2)},
                         {TensorShape::none, TensorShape::none, shape});
          problem.t2 = {.type = type, .layout = layout};
          problem.d.layout = d;
          EXPECT_TRUE(passes_gates(config(), problem));
          EXPECT_TRUE(passes_gates(config(), with_padding(problem), {.shift = 1}));
        }
      }
    }
  }
}

// A matrix or a vector for each matrix of the batch, or one for all.
TEST_P(EpilogueSteps, OfABatch) {
  for (const bool shared : {false, true}) {
    Problem problem = with_steps(
        gemm({10, 21, 9}, input()),
        {step(StepOp::add, StepOperand::t0), step(StepOp::multiply, StepOperand::t1),
         step(StepOp::subtract, StepOperand::t2), step(StepOp::maximum, StepOperand::t3)},
        {TensorShape::matrix, TensorShape::along_n, TensorShape::along_m, TensorShape::scalar});
    problem.batch = 3;
    if (shared) {
      problem.t0.batch_stride = 0;
    } else {
      problem.t1.batch_stride = 25;
      problem.t2.batch_stride = 10;
      problem.t3.batch_stride = 1;
    }
    EXPECT_TRUE(passes_gates(config(), problem));
  }
}

// Values at three places, in three types, of which two have no layout of D's.
TEST_P(EpilogueSteps, Store) {
  VKGEMM_SKIP_IF(stores() ? "" : "steps do not store on path nv");
  Problem problem = with_steps(
      gemm({19, 24, 9}, input()),
      {step(StepOp::store, StepOperand::t0), activate(Activation::relu),
       step(StepOp::store, StepOperand::t1), step(StepOp::add, 3.0f),
       step(StepOp::store, StepOperand::t3), step(StepOp::multiply, 0.5f)},
      {TensorShape::matrix, TensorShape::matrix, TensorShape::none, TensorShape::matrix});
  problem.t0 = {.type = DataType::f32};
  problem.t1 = {.type = DataType::bf16, .layout = Layout::col_major};
  problem.t3 = {.type = DataType::f16};
  EXPECT_TRUE(passes_gates(config(), problem));
  problem.batch = 2;
  EXPECT_TRUE(passes_gates(config(), with_padding(problem), {.shift = 1}));
  problem.d.layout = Layout::col_major;
  EXPECT_TRUE(passes_gates(config(), with_padding(problem, 8, true)));
}

// All places for tensors: C, aux and bias, and one of each other kind.
TEST_P(EpilogueSteps, BesideEverythingElse) {
  Problem problem = with_steps(gemm({35, 21, 9}, input()),
                               {step(StepOp::multiply, StepOperand::t1), activate(Activation::abs)},
                               {TensorShape::none, TensorShape::matrix});
  problem.epilogue.alpha = 2.0f;
  problem.epilogue.beta = -1.0f;
  problem.epilogue.bias = Bias::along_n;
  problem.epilogue.activation = Activation::relu;
  problem.epilogue.aux = true;
  problem.epilogue.clamp_max = 20.0f;
  EXPECT_TRUE(passes_gates(config(), with_padding(problem)));
}

// A NaN of the product and one of an operand stay. A value that was stored before is a number.
TEST_P(EpilogueSteps, NanPropagates) {
  VKGEMM_SKIP_IF(stores() ? "" : "steps do not store on path nv");
  for (const StepOp op : {StepOp::maximum, StepOp::minimum, StepOp::multiply}) {
    const Problem problem =
        with_steps(gemm({5, 9, 12}, input(), DataType::f32),
                   {step(StepOp::store, StepOperand::t1), step(op, StepOperand::t0)},
                   {TensorShape::matrix, TensorShape::matrix});
    Trial trial(problem, Fill::random, {.poison = std::byte{0}});
    trial.set(OperandId::a, 1, 3, nan);
    trial.set(OperandId::t0, 2, 4, nan);
    trial.set(OperandId::t0, 3, 5, infinity);
    ASSERT_TRUE(trial.run(config()));
    EXPECT_TRUE(trial.is_within_bound()) << to_string(op);
    EXPECT_TRUE(std::isnan(trial.d(1, 0)));
    EXPECT_TRUE(std::isnan(trial.d(2, 4)));
    EXPECT_FALSE(std::isnan(trial.get(OperandId::t1, 2, 4)));
  }
}

TEST_P(EpilogueSteps, BehindEachWayToAddSlices) {
  const Problem problem =
      with_padding(with_steps(gemm({19, 21, 256}, input()),
                              {derivative(Activation::relu, StepOperand::t0),
                               step(StepOp::store, StepOperand::t1), step(StepOp::add, 1.0f)},
                              {TensorShape::matrix, TensorShape::matrix}));
  int tried = 0;
  for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver,
                                   ReductionMode::device_barrier}) {
    const Config one = sliced(config(), 3, mode);
    if (!is_legal_here(one, problem)) continue;
    EXPECT_TRUE(passes_gates(one, problem));
    ++tried;
  }
  EXPECT_EQ(tried, GetParam() == Path::nv ? 1 : 3);
}

TEST_P(EpilogueSteps, OfGroups) {
  VKGEMM_SKIP_IF(stores() ? "" : "steps do not store on path nv");
  const Offsets offsets = offsets_of({config().tile_m + 1u, 0, 3, 2u * config().tile_m});
  const Problem plain = with_steps(
      gemm({0, 21, 9}, input()),
      {step(StepOp::add, StepOperand::t0), step(StepOp::multiply, StepOperand::t1),
       step(StepOp::store, StepOperand::t2), step(StepOp::subtract, StepOperand::t3)},
      {TensorShape::along_n, TensorShape::scalar, TensorShape::matrix, TensorShape::along_m});
  for (const bool shared : {false, true}) {
    Problem problem = grouped(plain, offsets);
    if (!shared) problem.t0.batch_stride = 21;
    if (!shared) problem.t1.batch_stride = 1;
    EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = offsets}));
  }
}

TEST_P(EpilogueSteps, OfGroupsOfK) {
  const Offsets offsets = offsets_of({9, 0, 33, 5});
  Problem problem =
      with_steps(gemm({19, 21, 0}, input()),
                 {step(StepOp::add, StepOperand::t0), step(StepOp::multiply, StepOperand::t1)},
                 {TensorShape::matrix, TensorShape::along_m});
  problem = grouped(problem, offsets, GroupAlong::k);
  problem.t1.batch_stride = 19;
  EXPECT_TRUE(passes_on_both(config(), with_padding(problem), {.offsets = offsets}));
}

// A residual behind the gate, and what is stored before it.
TEST_P(EpilogueSteps, BehindAGate) {
  Problem problem =
      with_steps(gemm({19, 24, 37}, input()),
                 {step(StepOp::store, StepOperand::t1), step(StepOp::add, StepOperand::t0)},
                 {TensorShape::matrix, TensorShape::matrix});
  problem.gated = Gated{.gate = Gate::reglu};
  problem.epilogue.bias = Bias::along_n;
  problem.epilogue.aux = true;
  for (const Config& one : small_configs(GetParam(), input())) {
    if (!is_legal_here(one, problem)) continue;
    EXPECT_TRUE(passes_gates(one, with_padding(problem)));
    return;
  }
  GTEST_SKIP() << "no configuration of this path takes a gate";
}

// Lists of up to eight steps with up to four tensors, none of which makes large numbers of small
// ones.
class RandomSteps {
 public:
  explicit RandomSteps(std::uint32_t seed) : random_(seed) {}

  Problem next(Problem problem) {
    const std::size_t count = 1 + pick(most_steps);
    std::size_t tensors = 0;
    bool sums = false, finds_amax = false;
    for (std::size_t i = 0; i < count; ++i) {
      EpilogueStep& step = problem.epilogue.steps[i];
      const bool adds_tensor = tensors < most_tensors && pick(2) == 0;
      switch (pick(adds_tensor ? 8 : 7)) {
        case 5:
        case 6:
          step = activate(activation());
          step.number = number_of(step.activation);
          continue;
        case 7:
          step = pick(2) == 0 ? derivative(activation(), StepOperand::t0)
                              : test::step(StepOp::store, StepOperand::t0);
          step.number = number_of(step.activation);
          if (step.op == StepOp::store && !sums && pick(3) == 0) {
            sums = true;
            step.op = StepOp::sum_columns;
          } else if (step.op == StepOp::store && !finds_amax && pick(3) == 0) {
            finds_amax = true;
            step.op = StepOp::amax;
          }
          break;
        default:
          step.op = std::begin(binary_ops)[pick(std::size(binary_ops))];
          if (step.op == StepOp::divide || !adds_tensor) {
            step.number = 0.5f + static_cast<float>(pick(8)) / 4.0f;
            continue;
          }
      }
      const bool has_bits = step.op != StepOp::divide && pick(4) == 0;
      const auto shape = step.op == StepOp::sum_columns ? TensorShape::along_n
                         : step.op == StepOp::amax      ? TensorShape::scalar
                         : has_bits                     ? TensorShape::mask
                         : step.op == StepOp::store     ? TensorShape::matrix
                                                        : all_shapes[pick(4)];
      problem.epilogue.tensors[tensors] = shape;
      Matrix& matrix = problem.*tensor_matrices[tensors];
      matrix.type = usual_type(with_operand(problem.epilogue, i, tensors), tensors,
                               static_cast<DataType>(pick(3)));
      if (shape == TensorShape::matrix) matrix.layout = static_cast<Layout>(pick(2));
      ++tensors;
    }
    return problem;
  }

 private:
  // The epilogue, whose step i has this tensor.
  static const Epilogue& with_operand(Epilogue& epilogue, std::size_t i, std::size_t tensor) {
    epilogue.steps[i].operand = static_cast<StepOperand>(1 + tensor);
    return epilogue;
  }
  std::size_t pick(std::size_t count) { return random_() % count; }
  Activation activation() {
    constexpr Activation bounded[] = {
        Activation::relu,    Activation::gelu_erf,   Activation::gelu_tanh, Activation::silu,
        Activation::sigmoid, Activation::tanh,       Activation::softplus,  Activation::hard_swish,
        Activation::abs,     Activation::leaky_relu, Activation::elu};
    return bounded[pick(std::size(bounded))];
  }

  std::mt19937 random_;
};

TEST_P(EpilogueSteps, RandomLists) {
  RandomSteps lists(GetParam() == Path::fma ? 1 : 2);
  const int count = on_cpu() ? (is_nightly() ? 300 : 20) : 100;
  for (int i = 0; i < count; ++i) {
    const Problem problem = lists.next(gemm({17, 22, 9}, input(), DataType::f32));
    if (!is_legal_here(config(), problem)) continue;
    Trial trial(problem, Fill::random, {.seed = static_cast<std::uint64_t>(i) + 1});
    ASSERT_TRUE(trial.run(config())) << describe(config(), problem);
    ASSERT_TRUE(trial.is_within_bound()) << describe(config(), problem);
  }
}

}  // namespace
}  // namespace vkgemm::test
