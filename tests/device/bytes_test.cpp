// Results and operands of an epilogue in 8 bits: every code, every kind of rounding, zero points,
// and what they compose with; rows of codes that are the A of the next product.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "oracle/quantised.hpp"
#include "oracle/reference.hpp"
#include "oracle/row_quantisation.hpp"
#include "problem/data_type.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr DataType all_bytes[] = {DataType::s8, DataType::u8, DataType::e4m3, DataType::e5m2};

// The codes by their definition in the oracle of quantised matrices, which has nothing of the
// conversions.
double value_of(DataType type, std::uint32_t code) {
  if (type == DataType::s8) return oracle::code_value(CodeType::int8, false, code);
  if (type == DataType::u8) return code;
  return oracle::code_value(type == DataType::e4m3 ? CodeType::e4m3 : CodeType::e5m2, false, code);
}
double largest_of(DataType type) { return row_of(type).largest; }

// The expected result of the cast of a finite number.
double cast(DataType type, double value) {
  if (is_integer(type)) {
    return std::clamp(std::nearbyint(value), row_of(type).least, largest_of(type));
  }
  const CodeType codes = type == DataType::e4m3 ? CodeType::e4m3 : CodeType::e5m2;
  return oracle::code_value(codes, false, oracle::nearest_code(codes, false, value));
}

// All finite values in order.
std::vector<double> values_in_order(DataType type) {
  std::vector<double> values;
  for (std::uint32_t code = 0; code < 256; ++code) {
    if (std::isfinite(value_of(type, code))) values.push_back(value_of(type, code));
  }
  std::ranges::sort(values);
  return values;
}

// Each value, each tie between neighbours, the f32 numbers beside both, and those beyond all.
std::vector<double> interesting_values(DataType type) {
  std::vector<double> out = {0.0, -0.0, infinity, -infinity, nan, 1e-45, -1e-45, 3e38, -3e38};
  const auto add = [&out](double value) {
    const auto x = static_cast<float>(value);
    for (const float y : {x, std::nextafterf(x, -1e38f), std::nextafterf(x, 1e38f)}) {
      out.push_back(static_cast<double>(y));
    }
  };
  const std::vector<double> values = values_in_order(type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    add(values[i]);
    if (i > 0) add((values[i - 1] + values[i]) / 2.0);
  }
  for (const double over : {1.001, 1.0625, 1.125, 1.5, 2.0, 1e4}) {
    add(values.back() * over);
    add(values.front() * over);
  }
  while (out.size() % 32 != 0) out.push_back(1.0);
  return out;
}

class Bytes : public EachPath {
 protected:
  void SetUp() override {
    VKGEMM_SKIP_IF(why_skip(GetParam()));
    if (!caps().int8_arithmetic) GTEST_SKIP() << caps().name << " has no 8-bit storage";
    if (GetParam() == Path::nv) GTEST_SKIP() << "path nv stores no bytes";
  }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
  static bool is_legal_here(const Config& config, const Problem& problem) {
    return is_legal(config, resolve(problem).value(), target());
  }
};
VKGEMM_ON_EACH_PATH(Bytes);

// 1 · t0 with a sum of 0 and a bias of 1 is t0 with all its bits: -0 and NaN stay.
Problem passed_on(std::uint64_t m, std::uint64_t n, DataType input, DataType from, DataType to) {
  Problem problem = gemm({m, n, 1}, input, to);
  problem.epilogue.bias = Bias::along_n;
  problem.epilogue.tensors[0] = TensorShape::matrix;
  problem.epilogue.steps[0] = {.op = StepOp::multiply, .operand = StepOperand::t0};
  problem.t0.type = from;
  return problem;
}

class PassedOn : public Trial {
 public:
  explicit PassedOn(const Problem& problem) : Trial(problem, Fill::integers) {
    for (std::uint64_t i = 0; i < problem.m; ++i) set(OperandId::a, i, 0, 0.0);
    for (std::uint64_t j = 0; j < problem.n; ++j) set(OperandId::bias, 0, j, 1.0);
  }
};

TEST_P(Bytes, RoundAndSaturate) {
  for (const DataType type : all_bytes) {
    const std::vector<double> values = interesting_values(type);
    for (const bool aligned : {true, false}) {
      Problem problem = passed_on(values.size() / 32, 32, input(), DataType::f32, type);
      if (!aligned) problem = with_padding(problem);
      PassedOn trial(problem);
      for (std::size_t i = 0; i < values.size(); ++i) {
        trial.set(OperandId::t0, i / 32, i % 32, values[i]);
      }
      ASSERT_TRUE(trial.run(config()));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double got = trial.d(i / 32, i % 32);
        if (std::isnan(values[i])) {
          ASSERT_TRUE(is_integer(type) ? got == 0.0 : std::isnan(got)) << to_string(type) << got;
          continue;
        }
        double expected = 0.0;
        if (std::isinf(values[i])) {
          const double least = is_integer(type) ? row_of(type).least : -largest_of(type);
          expected = values[i] > 0.0 ? largest_of(type) : least;
        } else {
          expected = cast(type, values[i]);
        }
        ASSERT_EQ(got, expected) << to_string(type) << " of " << values[i];
        if (is_floating(type)) {
          ASSERT_EQ(std::signbit(got), std::signbit(values[i])) << values[i];
        }
      }
    }
  }
}

// Each code of C and of a step's tensor, four at once and one by one.
TEST_P(Bytes, EveryCodeIsRead) {
  for (const DataType type : all_bytes) {
    for (const bool aligned : {true, false}) {
      Problem problem = passed_on(8, 32, input(), type, DataType::f32);
      problem.c.type = type;
      problem.epilogue.beta = 2.0f;
      problem.epilogue.bias = Bias::none;
      problem.epilogue.steps[0].op = StepOp::add;
      if (!aligned) problem = with_padding(problem);
      Trial trial(problem, Fill::integers);
      for (std::uint64_t i = 0; i < 8; ++i) trial.set(OperandId::a, i, 0, 0.0);
      for (std::uint32_t code = 0; code < 256; ++code) {
        trial.set_byte(OperandId::t0, code / 32, code % 32, static_cast<std::uint8_t>(code));
        trial.set_byte(OperandId::c, code / 32, code % 32, static_cast<std::uint8_t>(code));
      }
      ASSERT_TRUE(trial.run(config()));
      for (std::uint32_t code = 0; code < 256; ++code) {
        const double expected = 3.0 * value_of(type, code), got = trial.d(code / 32, code % 32);
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected)
            << to_string(type) << ' ' << code << ": " << got << ", expected " << expected;
      }
    }
  }
}

TEST_P(Bytes, EveryLayoutAndAlignment) {
  for (const DataType type : all_bytes) {
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      Problem problem = gemm({19, 24, 9}, input(), type);
      problem.d.layout = problem.aux.layout = layout;
      problem.aux.type = type;
      problem.epilogue.aux = true;
      EXPECT_TRUE(passes_gates(config(), problem)) << to_string(type);
      problem.batch = 2;
      EXPECT_TRUE(passes_gates(config(), with_padding(problem, 4, true))) << to_string(type);
      EXPECT_TRUE(passes_gates(config(), with_padding(problem), {.shift = 3})) << to_string(type);
    }
  }
}

TEST_P(Bytes, TheWholeEpilogue) {
  for (const DataType type : all_bytes) {
    Problem problem = gemm({35, 21, 9}, input(), type);
    problem.epilogue = oracle::heavy_epilogue();
    problem.epilogue.tensors[0] = TensorShape::matrix;
    problem.epilogue.steps[0] = {.op = StepOp::store, .operand = StepOperand::t0};
    problem.epilogue.steps[1] = {.op = StepOp::multiply, .number = 16.0f};
    problem.c.type = problem.aux.type = problem.t0.type = type;
    EXPECT_TRUE(passes_gates(config(), with_padding(problem))) << to_string(type);
    problem.epilogue.bias = Bias::none;
    problem.epilogue.tensors[1] = TensorShape::along_n;
    problem.epilogue.steps[2] = {.op = StepOp::add, .operand = StepOperand::t1};
    problem.t1.type = type;
    EXPECT_TRUE(passes_gates(config(), problem)) << to_string(type);
  }
}

TEST_P(Bytes, InPlaceOfC) {
  Problem problem = gemm({19, 24, 9}, input(), DataType::s8);
  problem.c = problem.d;
  problem.epilogue.beta = -1.0f;
  EXPECT_TRUE(passes_gates(config(), problem, {.in_place = true}));
}

// Ties are even before the zero point is added, and sums saturate behind it.
TEST_P(Bytes, ZeroPoints) {
  for (const DataType type : {DataType::s8, DataType::u8}) {
    for (const std::int32_t zero : {-128, -3, 1, 127, 128, 255}) {
      if (zero < row_of(type).least || zero > largest_of(type)) continue;
      Problem problem = passed_on(35, 32, input(), DataType::f32, type);
      problem.epilogue.zero_point = zero;
      PassedOn trial(problem);
      const auto value = [](std::uint64_t i) { return (static_cast<double>(i) - 560.0) / 2.0; };
      for (std::uint64_t i = 0; i < 1120; ++i) trial.set(OperandId::t0, i / 32, i % 32, value(i));
      trial.set(OperandId::t0, 0, 0, nan);
      trial.set(OperandId::t0, 0, 1, infinity);
      trial.set(OperandId::t0, 0, 2, -infinity);
      ASSERT_TRUE(trial.run(config()));
      EXPECT_EQ(trial.d(0, 0), zero);
      EXPECT_EQ(trial.d(0, 1), largest_of(type));
      EXPECT_EQ(trial.d(0, 2), row_of(type).least);
      for (std::uint64_t i = 3; i < 1120; ++i) {
        const double sum = std::nearbyint(value(i)) + zero;
        ASSERT_EQ(trial.d(i / 32, i % 32), std::clamp(sum, row_of(type).least, largest_of(type)))
            << value(i);
      }
      EXPECT_TRUE(trial.is_within_bound());
    }
  }
}

TEST_P(Bytes, EachWayToAddSlices) {
  int tried = 0;
  for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver,
                                   ReductionMode::device_barrier}) {
    const Config one = sliced(config(), 3, mode);
    Problem problem = gemm({19, 21, 256}, input(), tried % 2 == 0 ? DataType::u8 : DataType::e4m3);
    problem.epilogue.zero_point = tried % 2 == 0 ? 100 : 0;
    if (!is_legal_here(one, problem)) continue;
    EXPECT_TRUE(passes_gates(one, with_padding(problem)));
    ++tried;
  }
  EXPECT_EQ(tried, 3);
}

TEST_P(Bytes, Groups) {
  const Offsets offsets = offsets_of({config().tile_m + 1u, 0, 3, 2u * config().tile_m});
  for (const DataType type : {DataType::s8, DataType::e5m2}) {
    Problem problem = gemm({0, 21, 9}, input(), type);
    EXPECT_TRUE(passes_on_both(config(), grouped(problem, offsets), {.offsets = offsets}));
    const Offsets of_k = offsets_of({9, 0, 33, 5});
    problem = grouped(gemm({19, 21, 0}, input(), type), of_k, GroupAlong::k);
    EXPECT_TRUE(passes_on_both(config(), with_padding(problem), {.offsets = of_k}));
  }
}

TEST_P(Bytes, Gates) {
  int tried = 0;
  for (const DataType type : {DataType::u8, DataType::e4m3}) {
    Problem problem = gemm({19, 24, 37}, input(), type);
    problem.gated = Gated{.gate = Gate::reglu};
    problem.aux.type = type;
    problem.epilogue.aux = true;
    for (const Config& one : small_configs(GetParam(), input())) {
      if (!is_legal_here(one, problem)) continue;
      EXPECT_TRUE(passes_gates(one, problem));
      EXPECT_TRUE(passes_gates(one, with_padding(problem)));
      ++tried;
      break;
    }
  }
  if (tried == 0) GTEST_SKIP() << "no configuration of this path takes a gate";
}

// Sums of integers need no 16-bit matrix before they are 8 bits again.
TEST_P(Bytes, OfIntegers) {
  VKGEMM_SKIP_IF(why_skip(GetParam(), DataType::s8));
  const Config integers = small_configs(GetParam(), DataType::s8).front();
  for (const DataType type : all_bytes) {
    Problem problem = gemm({35, 40, 96}, DataType::s8, type);
    problem.epilogue.row_scales = problem.epilogue.column_scales = Scales::shared;
    problem.epilogue.alpha = 0x1p-6f;
    EXPECT_TRUE(passes_gates(integers, problem)) << to_string(type);
    EXPECT_TRUE(passes_gates(integers, with_padding(problem))) << to_string(type);
  }
}

// Codes and scales of a product are those that quantise_rows makes of its f32 D.
TEST_P(Bytes, RowsAreQuantisedAsBySteps) {
  for (const Shape shape : {Shape{9, 32, 24}, Shape{19, 61, 24}}) {
    Problem plain = gemm(shape, input(), DataType::f32);
    plain.epilogue.bias = Bias::along_n;
    Trial before(plain, Fill::random);
    Config one = config();
    ASSERT_TRUE(before.run(one));
    std::vector<float> source(shape.m * shape.n);
    for (std::uint64_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<float>(before.d(i / shape.n, i % shape.n));
    }
    std::vector<std::int8_t> codes(source.size());
    std::vector<float> scales(shape.m);
    oracle::quantise_rows({.rows = shape.m, .columns = shape.n, .source = {.type = DataType::f32}},
                          source.data(), codes.data(), scales.data());
    Problem fused = plain;
    fused.d.type = DataType::s8;
    fused.row_reduction = RowReduction{.op = RowOp::quantise};
    int tried = 0;
    for (const RowStrategy strategy : {RowStrategy::two_pass, RowStrategy::resident,
                                       RowStrategy::recompute, RowStrategy::panel}) {
      one.rows = strategy;
      if (strategy == RowStrategy::panel) one.spin_limit = patient_spin_limit();
      if (!is_legal_here(one, fused)) continue;
      if (on_cpu() && strategy == RowStrategy::panel && shape.n > std::uint64_t{2} * one.tile_n) {
        continue;
      }
      Trial trial(fused, Fill::random);
      ASSERT_TRUE(trial.run(one)) << describe(one, fused);
      for (std::uint64_t i = 0; i < source.size(); ++i) {
        ASSERT_EQ(trial.d(i / shape.n, i % shape.n), codes[i]) << describe(one, fused);
      }
      for (std::uint64_t i = 0; i < shape.m; ++i) {
        ASSERT_EQ(trial.row_value(i), scales[i]) << describe(one, fused);
      }
      ++tried;
    }
    EXPECT_GT(tried, 0);
  }
}

// Two layers of s8 products: D and row_values of the first one are A and row_scales of the second.
TEST_P(Bytes, CodesAreTheNextProduct) {
  VKGEMM_SKIP_IF(why_skip(GetParam(), DataType::s8));
  constexpr std::uint64_t m = 19, hidden = 64, n = 21, k = 48;
  Problem first = gemm({m, hidden, k}, DataType::s8, DataType::s8);
  first.batch = 2;
  first.b.batch_stride = 0;
  first.epilogue.row_scales = Scales::per_matrix;
  first.epilogue.column_scales = Scales::shared;
  first.epilogue.activation = Activation::relu;
  first.row_reduction = RowReduction{.op = RowOp::quantise};
  Problem second = gemm({m, n, hidden}, DataType::s8, DataType::f32);
  second.batch = 2;
  second.b.batch_stride = 0;
  second.epilogue.row_scales = Scales::per_matrix;
  second.epilogue.column_scales = Scales::shared;

  Trial layer(first, Fill::random);
  const auto plan = context().plan(first);
  ASSERT_TRUE(succeeds(plan));
  ASSERT_TRUE(layer.run(*plan));
  ASSERT_TRUE(layer.is_within_bound());
  Trial next(second, Fill::random);
  double largest_code = 0.0;
  for (std::uint64_t b = 0; b < 2; ++b) {
    for (std::uint64_t i = 0; i < m; ++i) {
      next.set(OperandId::row_scales, i, 0, layer.row_value(i, b), b);
      for (std::uint64_t j = 0; j < hidden; ++j) {
        next.set(OperandId::a, i, j, layer.d(i, j, b), b);
        largest_code = std::max(largest_code, layer.d(i, j, b));
      }
    }
  }
  EXPECT_EQ(largest_code, 127.0);
  const auto plan_of_next = context().plan(second);
  ASSERT_TRUE(succeeds(plan_of_next));
  ASSERT_TRUE(next.run(*plan_of_next));
  EXPECT_TRUE(next.is_within_bound());
  // The second product is that of the values, but for half a scale of each element of A.
  for (std::uint64_t i = 0; i < m; ++i) {
    for (std::uint64_t j = 0; j < n; ++j) {
      double sum = 0.0, bound = 1e-6;
      for (std::uint64_t h = 0; h < hidden; ++h) {
        double v = 0.0;
        for (std::uint64_t x = 0; x < k; ++x) {
          v += layer.get(OperandId::a, i, x) * layer.get(OperandId::b, x, h);
        }
        v *= layer.get(OperandId::row_scales, i, 0) * layer.get(OperandId::column_scales, 0, h);
        const double b = next.get(OperandId::b, h, j) * next.get(OperandId::column_scales, 0, j);
        sum += std::max(v, 0.0) * b;
        bound += 0.5001 * layer.row_value(i) * std::fabs(b);
      }
      ASSERT_NEAR(next.d(i, j), sum, bound + 1e-5 * std::fabs(sum)) << i << ' ' << j;
    }
  }
}

}  // namespace
}  // namespace vkgemm::test
