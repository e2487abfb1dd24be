// The last cast, bit for bit: with K = 1 the product is exact in f32, so that D and aux must be the
// product in double precision, rounded once to nearest even. Ties, subnormals, overflow.
#include <cmath>
#include <cstdint>
#include <vector>

#include "harness.hpp"
#include "problem/convert.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

double rounded(double value, DataType type) {
  std::byte memory[4];
  store_element(memory, type, 0, value);
  return load_element(memory, type, 0);
}

// Exactly between two neighbours.
bool is_tie(double value, DataType type) {
  const double nearest = rounded(value, type);
  const double mirrored = 2.0 * value - nearest;
  return std::isfinite(nearest) && nearest != value && rounded(mirrored, type) == mirrored;
}

// Below the smallest normal number of `type`.
bool is_subnormal(double value, DataType type) {
  return value != 0.0 && std::fabs(value) < (type == DataType::f16 ? 0x1p-14 : 0x1p-126);
}

// Subnormals are the driver's (problem.hpp); those of f16 are known to stay on a CPU.
bool may_be_zero(double value, DataType type) {
  return is_subnormal(value, type) && (type != DataType::f16 || !on_cpu());
}

// Integers of few bits, scaled to the smallest, middle and largest numbers of D's type, and to
// subnormal ones of B's. 23 · 89 = 2047 and 63 · 65 = 4095 are f16's largest number and the tie
// above it, 7 · 73 = 511 the tie above bf16's.
struct Factors {
  Factors(DataType input, DataType output) {
    const bool f16 = input == DataType::f16 || output == DataType::f16;
    std::vector<double> a_integers = {1, 23, 63, 73, 129, 173, 255};
    std::vector<double> b_integers = {1, 7, 65, 89, 101, 143, 255};
    if (input != DataType::bf16) {
      for (const double close_to_ties : {257, 1025, 2047}) {
        a_integers.push_back(close_to_ties);
        b_integers.push_back(close_to_ties);
      }
    }
    for (const int exponent : {f16 ? -12 : -67, -7, f16 ? 2 : 60}) {
      for (const double integer : a_integers) {
        a.push_back(std::ldexp(integer, exponent));
        a.push_back(std::ldexp(-integer, exponent));
      }
    }
    const int subnormal = input == DataType::f16 ? -20 : -132;
    for (const int exponent : {subnormal, f16 ? -13 : -67, -7, f16 ? 2 : 59, f16 ? 3 : 60}) {
      for (const double integer : b_integers) b.push_back(std::ldexp(integer, exponent));
    }
  }
  std::vector<double> a, b;
};

struct Counts {
  int ties = 0, subnormals = 0, overflows = 0;
};

class Rounding : public EachPath {
 protected:
  static Counts expect_nearest_even(const Config& config, const Problem& problem,
                                    const Factors& factors) {
    Counts counts;
    Trial trial(problem, Fill::integers, {.poison = std::byte{0x3a}});
    for (std::uint64_t i = 0; i < problem.m; ++i) trial.set(OperandId::a, i, 0, factors.a[i]);
    for (std::uint64_t j = 0; j < problem.n; ++j) trial.set(OperandId::b, 0, j, factors.b[j]);
    const testing::AssertionResult ran = trial.run(config);
    EXPECT_TRUE(ran);
    if (!ran) return counts;
    for (std::uint64_t i = 0; i < problem.m; ++i) {
      for (std::uint64_t j = 0; j < problem.n; ++j) {
        const double d = trial.d(i, j), aux = problem.epilogue.aux ? trial.aux(i, j) : d;
        check_element(problem, factors.a[i], factors.b[j], d, aux, counts);
      }
    }
    return counts;
  }

 private:
  static void check_element(const Problem& problem, double a, double b, double d, double aux,
                            Counts& counts) {
    const double product = a * b;
    const DataType output = problem.d.type;
    const double single = rounded(product, DataType::f32);
    const double expected = rounded(product, output);
    EXPECT_TRUE(rounded(a, problem.a.type) == a && rounded(b, problem.a.type) == b &&
                (single == product || std::isinf(single) || expected == 0.0))
        << "no exact product: " << a << " * " << b;
    if (is_tie(product, output)) ++counts.ties;
    if (is_subnormal(product, output)) ++counts.subnormals;
    if (std::isinf(expected)) ++counts.overflows;
    const bool flushable = may_be_zero(a, problem.a.type) || may_be_zero(b, problem.b.type) ||
                           may_be_zero(product, DataType::f32) || may_be_zero(product, output);
    for (const double got : {d, aux}) {
      EXPECT_TRUE((flushable && got == 0.0) ||
                  (got == expected && std::signbit(got) == std::signbit(expected)))
          << a << " * " << b << " = " << product << " is " << got << ", expected " << expected;
    }
  }
};
VKGEMM_ON_EACH_PATH(Rounding);

TEST_P(Rounding, IsToNearestEven) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  for (const DataType input : inputs_of(GetParam())) {
    const Config config = small_configs(GetParam(), input).front();
    for (const DataType output : {DataType::f16, DataType::bf16}) {
      if (GetParam() == Path::nv && output != input) continue;  // not built
      const Factors factors(input, output);
      Problem packed = gemm({factors.a.size(), factors.b.size(), 1}, input, output);
      packed.epilogue.aux = true;
      // Stored four elements at a time, and one by one.
      for (const Problem& problem : {packed, with_padding(packed)}) {
        SCOPED_TRACE(describe(config, problem));
        const Counts counts = expect_nearest_even(config, problem, factors);
        EXPECT_GT(counts.ties, 50);
        if (input == DataType::f16 && output == DataType::bf16) continue;  // never at bf16's ends
        EXPECT_GT(counts.subnormals, 50);
        EXPECT_GT(counts.overflows, 50);
      }
    }
  }
}

// Slices of 16 bits round by themselves (shaders/lib/loops/khr_narrow.glsl).
TEST_P(Rounding, OfNarrowSlicesIsToNearestEven) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  bool tried = false;
  for (const DataType input : inputs_of(GetParam())) {
    for (const Config& config : small_configs(GetParam(), input)) {
      if (config.main_loop() != MainLoop::khr_direct) continue;
      tried = true;
      for (const DataType output : {DataType::f16, DataType::bf16}) {
        Factors factors(input, output);
        while (factors.b.size() % 8 != 0) factors.b.push_back(1.0);  // lines of 16 bytes
        const Problem problem = gemm({factors.a.size(), factors.b.size(), 1}, input, output);
        SCOPED_TRACE(describe(config, problem));
        EXPECT_GT(expect_nearest_even(config, problem, factors).ties, 50);
      }
    }
  }
  if (!tried) GTEST_SKIP() << "khr_direct computes nothing here on path " << to_string(GetParam());
}

}  // namespace
}  // namespace vkgemm::test
