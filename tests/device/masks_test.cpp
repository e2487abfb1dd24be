// Masks and the largest magnitude in steps of epilogues.
#include <cmath>
#include <cstdint>
#include <vector>

#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

EpilogueStep step(StepOp op, StepOperand operand) { return {.op = op, .operand = operand}; }

// t1: the bits of v > 0; t2: the largest |v|.
Problem with_writes(Problem problem) {
  problem.epilogue.tensors = {TensorShape::none, TensorShape::mask, TensorShape::scalar};
  problem.epilogue.steps = {step(StepOp::store, StepOperand::t1),
                            step(StepOp::amax, StepOperand::t2),
                            EpilogueStep{.op = StepOp::add, .number = -1.0f}};
  problem.t1 = {.type = DataType::u8, .layout = problem.d.layout};
  problem.t2.type = DataType::f32;
  return problem;
}

// v · t1, where t1 is a mask.
Problem with_mask(Problem problem, EpilogueStep one = step(StepOp::multiply, StepOperand::t1)) {
  problem.epilogue.tensors = {TensorShape::none, TensorShape::mask};
  problem.epilogue.steps = {one};
  problem.t1 = {.type = DataType::u8, .layout = problem.d.layout};
  return problem;
}

class Masks : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
  static bool is_legal_here(const Config& config, const Problem& problem) {
    return is_legal(config, resolve(problem).value(), target());
  }
  static bool writes() { return GetParam() != Path::nv; }
};
VKGEMM_ON_EACH_PATH(Masks);

TEST_P(Masks, OnEveryConfiguration) {
  VKGEMM_SKIP_IF(writes() ? "" : "steps write nothing on path nv");
  for (const DataType type : inputs_of(GetParam())) {
    for (const Config& one : small_configs(GetParam(), type)) {
      const Shape shape{2u * one.tile_m + 3u, one.tile_n + 5u, 9};
      const Problem problem = with_writes(gemm(shape, type, DataType::f32));
      if (!is_legal_here(one, problem) || is_left_out(one, problem)) continue;
      EXPECT_TRUE(passes_gates(one, with_padding(problem), {.shift = 4}));
    }
  }
}

// Rows of bits that end within a word, at its end, and behind it. Zeros end the
// last word.
TEST_P(Masks, OfOddWidths) {
  for (const std::uint64_t n : {1u, 4u, 31u, 32u, 33u, 67u}) {
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      Problem problem = gemm({19, n, 9}, input());
      problem.d.layout = layout;
      EXPECT_TRUE(passes_gates(config(), with_mask(problem)));
      if (writes()) {
        EXPECT_TRUE(passes_gates(config(), with_writes(problem)));
      }
    }
  }
}

TEST_P(Masks, AreRead) {
  const EpilogueStep relu{
      .op = StepOp::derivative, .activation = Activation::relu, .operand = StepOperand::t1};
  EXPECT_TRUE(passes_gates(config(), with_mask(gemm({19, 40, 9}, input()), relu)));
  EXPECT_TRUE(passes_gates(config(), with_padding(with_mask(gemm({19, 21, 9}, input()), relu))));
  EXPECT_TRUE(passes_gates(
      config(), with_mask(gemm({19, 21, 9}, input()), step(StepOp::add, StepOperand::t1))));
}

// The mask of a forward product is what the derivative of its input would be.
TEST_P(Masks, ServeADerivative) {
  VKGEMM_SKIP_IF(writes() ? "" : "steps write nothing on path nv");
  Trial forward(with_writes(gemm({35, 45, 9}, input(), DataType::f32)), Fill::integers);
  ASSERT_TRUE(forward.run(config()));
  Trial backward(with_mask(gemm({35, 45, 9}, input(), DataType::f32)), Fill::integers);
  for (std::uint64_t i = 0; i < 35; ++i) {
    for (std::uint64_t j = 0; j < 8; ++j) {
      backward.set(OperandId::t1, i, j, forward.get(OperandId::t1, i, j));
    }
  }
  ASSERT_TRUE(backward.run(config()));
  for (std::uint64_t i = 0; i < 35; ++i) {
    for (std::uint64_t j = 0; j < 45; ++j) {
      const double v = forward.d(i, j) + 1.0;
      EXPECT_EQ(backward.d(i, j), v > 0.0 ? v : 0.0) << i << ", " << j;
    }
  }
}

TEST_P(Masks, OfABatch) {
  for (const bool shared : {false, true}) {
    Problem problem = with_mask(gemm({10, 37, 9}, input()));
    problem.batch = 3;
    if (shared) problem.t1.batch_stride = 0;
    EXPECT_TRUE(passes_gates(config(), problem));
    if (!writes()) continue;
    problem = with_writes(gemm({10, 37, 9}, input()));
    problem.batch = 3;
    EXPECT_TRUE(passes_gates(config(), with_padding(problem), {.shift = 4}));
  }
}

TEST_P(Masks, OfGroups) {
  VKGEMM_SKIP_IF(writes() ? "" : "steps write nothing on path nv");
  const Offsets offsets = offsets_of(awkward_sizes(config().tile_m));
  const Problem problem = grouped(with_writes(gemm({0, 37, 9}, input())), offsets);
  EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = offsets}));
  EXPECT_TRUE(passes_on_both(config(), grouped(with_mask(gemm({0, 37, 9}, input())), offsets),
                             {.offsets = offsets}));
}

TEST_P(Masks, OfGroupsOfK) {
  VKGEMM_SKIP_IF(writes() ? "" : "steps write nothing on path nv");
  const Offsets offsets = offsets_of({9, 0, 33, 5});
  const Problem problem = grouped(with_writes(gemm({19, 37, 0}, input())), offsets, GroupAlong::k);
  EXPECT_TRUE(passes_on_both(config(), problem, {.offsets = offsets}));
}

TEST_P(Masks, BehindEachWayToAddSlices) {
  const Problem problem = with_padding(with_writes(gemm({19, 37, 256}, input())));
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

TEST_P(Masks, BehindAGate) {
  Problem problem = with_writes(gemm({19, 24, 37}, input()));
  problem.gated = Gated{.gate = Gate::reglu};
  int tried = 0;
  for (const Config& one : small_configs(GetParam(), input())) {
    if (!is_legal_here(one, problem) || is_left_out(one, problem)) continue;
    EXPECT_TRUE(passes_gates(one, problem));
    ++tried;
  }
  EXPECT_GE(tried, writes() ? 1 : 0);
}

// A NaN anywhere is amax, and its bit is 0. Infinities and signs count by magnitude.
TEST_P(Masks, NumbersThatAreNone) {
  VKGEMM_SKIP_IF(writes() ? "" : "steps write nothing on path nv");
  for (const double value : {nan, infinity, -infinity, -1e4}) {
    Trial trial(with_writes(gemm({9, 21, 12}, input(), DataType::f32)), Fill::random,
                {.poison = std::byte{0}});
    for (std::uint64_t k = 0; k < 12; ++k) trial.set(OperandId::a, 2, k, k == 3 ? value : 0.0);
    for (std::uint64_t j = 0; j < 21; ++j) trial.set(OperandId::b, 3, j, 1.0);
    ASSERT_TRUE(trial.run(config()));
    EXPECT_TRUE(trial.is_within_bound());
    const double amax = trial.get(OperandId::t2, 0, 0);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(amax));
    } else if (std::isinf(value)) {
      EXPECT_EQ(amax, infinity);
    } else {
      EXPECT_NEAR(amax, std::fabs(value), 16.0);
    }
    EXPECT_EQ(trial.get(OperandId::t1, 2, 0), value > 0.0 ? 255.0 : 0.0);
  }
}

// The number that was there before does not count.
TEST_P(Masks, AmaxOfZerosIsZero) {
  VKGEMM_SKIP_IF(writes() ? "" : "steps write nothing on path nv");
  Trial trial(with_writes(gemm({40, 70, 8}, input(), DataType::f32)), Fill::random);
  for (std::uint64_t i = 0; i < 40; ++i) {
    for (std::uint64_t k = 0; k < 8; ++k) trial.set(OperandId::a, i, k, 0.0);
  }
  ASSERT_TRUE(trial.run(config()));
  EXPECT_EQ(trial.get(OperandId::t2, 0, 0), 0.0);
  EXPECT_EQ(trial.get(OperandId::t1, 39, 0), 0.0);
}

}  // namespace
}  // namespace vkgemm::test
