// The oracle against naive loops, its own invariants, and errors planted to see that it finds them.
#include "oracle/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "problem/convert.hpp"

namespace vkgemm::oracle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinityF32 = std::numeric_limits<float>::infinity();

// Operands of a problem, with NaN in all padding and small random integers where elements stand.
struct Case {
  explicit Case(const Problem& p, unsigned seed = 1) : problem(p), random(seed) {
    const PerOperand<std::uint64_t> bytes = operand_bytes(p);
    a = make(p.a, p.m, p.k, bytes[OperandId::a]);
    b = make(p.b, p.k, p.n, bytes[OperandId::b]);
    c = make(p.c, p.m, p.n, bytes[OperandId::c]);
    bias = make({.type = p.epilogue.bias_type, .batch_stride = p.epilogue.bias_batch_stride}, 1,
                bytes[OperandId::bias] == 0        ? 0
                : p.epilogue.bias == Bias::along_n ? p.n
                                                   : p.m,
                bytes[OperandId::bias]);
    d.assign(bytes[OperandId::d], 0xcd);
    aux.assign(bytes[OperandId::aux], 0xcd);
  }

  using Bytes = std::vector<unsigned char>;

  static std::uint64_t index(const Matrix& x, std::uint64_t rows, std::uint64_t cols,
                             std::uint64_t batch, std::uint64_t i, std::uint64_t j) {
    const bool row_major = x.layout == Layout::row_major;
    const std::uint64_t ld = x.ld.value_or(row_major ? cols : rows);
    const std::uint64_t stride = x.batch_stride.value_or(ld * (row_major ? rows : cols));
    return batch * stride + (row_major ? i * ld + j : j * ld + i);
  }

  Bytes make(const Matrix& x, std::uint64_t rows, std::uint64_t cols, std::uint64_t bytes) {
    Bytes data(bytes);
    const std::uint64_t elements = bytes / size_in_bytes(x.type);
    for (std::uint64_t e = 0; e < elements; ++e) store_element(data.data(), x.type, e, kNan);
    if (bytes == 0) return data;
    std::uniform_int_distribution<int> small(-3, 3);
    for (std::uint64_t batch = 0; batch < problem.batch; ++batch) {
      for (std::uint64_t i = 0; i < rows; ++i) {
        for (std::uint64_t j = 0; j < cols; ++j) {
          store_element(data.data(), x.type, index(x, rows, cols, batch, i, j), small(random));
        }
      }
    }
    return data;
  }

  HostOperands operands() const {
    return {{OperandId::a, a.data()},       {OperandId::b, b.data()}, {OperandId::c, c.data()},
            {OperandId::bias, bias.data()}, {OperandId::d, d.data()}, {OperandId::aux, aux.data()}};
  }
  void compute() {
    compute_reference(problem, operands(),
                      {{OperandId::d, d.data()}, {OperandId::aux, aux.data()}});
  }
  VerifyReport check(const VerifyOptions& options = {}) const {
    return verify(problem, operands(), options);
  }

  Problem problem;
  std::mt19937 random;
  Bytes a, b, c, bias, d, aux;
};

// The definition of the product, nothing shared with the code under test.
double naive_pre(const Case& x, std::uint64_t batch, std::uint64_t i, std::uint64_t j) {
  const Problem& p = x.problem;
  double sum = 0.0;
  for (std::uint64_t k = 0; k < p.k; ++k) {
    sum += load_element(x.a.data(), p.a.type, Case::index(p.a, p.m, p.k, batch, i, k)) *
           load_element(x.b.data(), p.b.type, Case::index(p.b, p.k, p.n, batch, k, j));
  }
  double pre = static_cast<double>(p.epilogue.alpha) * sum;
  if (p.epilogue.beta != 0.0f) {
    pre += static_cast<double>(p.epilogue.beta) *
           load_element(x.c.data(), p.c.type, Case::index(p.c, p.m, p.n, batch, i, j));
  }
  if (p.epilogue.bias != Bias::none) {
    pre += load_element(
        x.bias.data(), p.epilogue.bias_type,
        batch * p.epilogue.bias_batch_stride + (p.epilogue.bias == Bias::along_n ? j : i));
  }
  return pre;
}

void expect_equals_naive(Case& x) {
  x.compute();
  const Problem& p = x.problem;
  for (std::uint64_t batch = 0; batch < p.batch; ++batch) {
    for (std::uint64_t i = 0; i < p.m; ++i) {
      for (std::uint64_t j = 0; j < p.n; ++j) {
        const double pre = naive_pre(x, batch, i, j);
        const double relu = p.epilogue.activation == Activation::relu ? std::fmax(pre, 0.0) : pre;
        ASSERT_EQ(load_element(x.d.data(), p.d.type, Case::index(p.d, p.m, p.n, batch, i, j)), relu)
            << batch << " " << i << " " << j;
        if (!p.epilogue.aux) continue;
        ASSERT_EQ(load_element(x.aux.data(), p.aux.type, Case::index(p.aux, p.m, p.n, batch, i, j)),
                  pre);
      }
    }
  }
}

TEST(Reference, AllLayoutsTypesAndTails) {
  for (const Layout la : {Layout::row_major, Layout::col_major}) {
    for (const Layout lb : {Layout::row_major, Layout::col_major}) {
      for (const Layout ld : {Layout::row_major, Layout::col_major}) {
        for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
          Problem p{.m = 67, .n = 70, .k = 13};
          p.a = {.type = type, .layout = la, .ld = 71};
          p.b = {.type = type, .layout = lb, .ld = 77};
          p.c = {.type = DataType::f16, .layout = ld, .ld = 79};
          p.d = {.type = DataType::f32, .layout = ld, .ld = 73};
          p.aux = {.type = DataType::f32, .layout = ld};
          p.epilogue = {.alpha = 2.0f,
                        .beta = -3.0f,
                        .bias = Bias::along_m,
                        .activation = Activation::relu,
                        .aux = true};
          Case x(p);
          expect_equals_naive(x);
          EXPECT_TRUE(x.check().passed()) << x.check().first_failure;
        }
      }
    }
  }
}

TEST(Reference, LongKIsSplitWithoutLoss) {
  Case x(Problem{.m = 3, .n = 5, .k = 1500, .d = {.type = DataType::f32}});
  expect_equals_naive(x);
}

TEST(Reference, BatchesAndSharedOperands) {
  Problem p{.m = 4, .n = 6, .k = 5, .batch = 3};
  p.b.batch_stride = 0;
  p.a.batch_stride = 33;
  p.d = {.type = DataType::f32, .ld = 8, .batch_stride = 100};
  p.epilogue = {.bias = Bias::along_n, .bias_batch_stride = 7};
  Case x(p);
  expect_equals_naive(x);
  EXPECT_TRUE(x.check().passed());
}

TEST(Reference, PaddingOfDIsLeftAlone) {
  Case x(Problem{.m = 2, .n = 3, .k = 4, .d = {.type = DataType::f32, .ld = 5}});
  x.compute();
  for (const std::size_t element : {3u, 4u}) {
    for (std::size_t byte = 0; byte < 4; ++byte) EXPECT_EQ(x.d[element * 4 + byte], 0xcd);
  }
}

TEST(Reference, OperandBytes) {
  Problem p{.m = 2, .n = 3, .k = 4, .batch = 2};
  p.a.ld = 10;
  p.d.type = DataType::f32;
  PerOperand<std::uint64_t> bytes = operand_bytes(p);
  EXPECT_EQ(bytes[OperandId::a], (20 + 10 + 4) * 2U);
  EXPECT_EQ(bytes[OperandId::b], 2 * 4 * 3 * 2U);
  EXPECT_EQ(bytes[OperandId::d], 2 * 2 * 3 * 4U);
  EXPECT_EQ(bytes[OperandId::c] + bytes[OperandId::aux] + bytes[OperandId::bias], 0U);
  p.epilogue = {.beta = 1.0f, .bias = Bias::along_m, .bias_batch_stride = 5, .aux = true};
  bytes = operand_bytes(p);
  EXPECT_EQ(bytes[OperandId::c], 24U);
  EXPECT_EQ(bytes[OperandId::aux], 24U);
  EXPECT_EQ(bytes[OperandId::bias], (5 + 2) * 4U);
  p.k = 0;
  EXPECT_EQ(operand_bytes(p)[OperandId::a], 0U);
  EXPECT_EQ(operand_bytes(p)[OperandId::b], 0U);
  EXPECT_EQ(operand_bytes(p)[OperandId::d], 48U);
  p.n = 0;
  EXPECT_EQ(operand_bytes(p)[OperandId::d] + operand_bytes(p)[OperandId::bias], 0U);
}

TEST(Reference, EmptyProblems) {
  for (const Problem& p : {Problem{.m = 0, .n = 2, .k = 2}, Problem{.m = 2, .n = 0, .k = 2},
                           Problem{.m = 2, .n = 2, .k = 2, .batch = 0}}) {
    compute_reference(p, {}, {});
    const VerifyReport report = verify(p, {});
    EXPECT_TRUE(report.passed());
    EXPECT_EQ(report.checked, 0U);
  }
}

// Whatever alpha is: there is nothing that it could multiply.
TEST(Reference, KZeroIsBetaTimesC) {
  Problem p{.m = 2, .n = 2, .k = 0, .d = {.type = DataType::f32}};
  p.epilogue = {.alpha = kInfinityF32, .beta = 2.0f};
  Case x(p);
  x.compute();
  for (std::uint64_t e = 0; e < 4; ++e) {
    EXPECT_EQ(load_element(x.d.data(), DataType::f32, e),
              2.0 * load_element(x.c.data(), p.c.type, e));
  }
  EXPECT_TRUE(x.check().passed());
}

TEST(Reference, BetaZeroDoesNotReadC) {
  Case x(Problem{.m = 2, .n = 2, .k = 2});
  compute_reference(x.problem, x.operands().with({{OperandId::c, nullptr}}),
                    {{OperandId::d, x.d.data()}});
  EXPECT_TRUE(x.check().passed());
}

double apply(Activation activation, float value, std::optional<float> lowest = {},
             std::optional<float> highest = {}) {
  Problem p{.m = 1, .n = 1, .k = 1};
  p.a.type = p.b.type = p.d.type = DataType::f32;
  p.epilogue.activation = activation;
  p.epilogue.clamp_min = lowest;
  p.epilogue.clamp_max = highest;
  const float one = 1.0f;
  float d = 0.0f;
  compute_reference(p, {{OperandId::a, &value}, {OperandId::b, &one}}, {{OperandId::d, &d}});
  return static_cast<double>(d);
}

TEST(Reference, Activations) {
  EXPECT_EQ(apply(Activation::none, -2.5f), -2.5);
  EXPECT_EQ(apply(Activation::relu, -2.5f), 0.0);
  EXPECT_EQ(apply(Activation::relu, 2.5f), 2.5);
  EXPECT_NEAR(apply(Activation::gelu_erf, 1.0f), 0.8413447460685429, 1e-7);
  EXPECT_NEAR(apply(Activation::gelu_tanh, 1.0f), 0.8411919906082768, 1e-7);
  EXPECT_NEAR(apply(Activation::silu, 1.0f), 0.7310585786300049, 1e-7);
  EXPECT_NEAR(apply(Activation::sigmoid, -1.0f), 0.2689414213699951, 1e-7);
  EXPECT_NEAR(apply(Activation::tanh, 0.5f), 0.46211715726000973, 1e-7);
  EXPECT_EQ(apply(Activation::none, 9.0f, -1.0f, 6.0f), 6.0);
  EXPECT_EQ(apply(Activation::none, -9.0f, -1.0f, 6.0f), -1.0);
  for (const Activation a :
       {Activation::none, Activation::relu, Activation::gelu_erf, Activation::gelu_tanh,
        Activation::silu, Activation::sigmoid, Activation::tanh}) {
    EXPECT_TRUE(std::isnan(apply(a, kNan, -1.0f, 1.0f))) << to_string(a);
  }
}

class VerifyFinds : public testing::Test {
 protected:
  VerifyFinds() : x(make()) { x.compute(); }
  static Problem make() {
    Problem p{.m = 130, .n = 66, .k = 40, .d = {.type = DataType::f32}};
    p.aux.type = DataType::f32;
    p.epilogue = {.activation = Activation::gelu_erf, .aux = true};
    return p;
  }
  void put(std::uint64_t i, std::uint64_t j, double value) {
    store_element(x.d.data(), DataType::f32, i * 66 + j, value);
  }
  double get(std::uint64_t i, std::uint64_t j) {
    return load_element(x.d.data(), DataType::f32, i * 66 + j);
  }
  Case x;
};

TEST_F(VerifyFinds, NothingInTheReferenceItself) {
  const VerifyReport report = x.check();
  EXPECT_TRUE(report.passed()) << report.first_failure;
  EXPECT_EQ(report.checked, 2 * 130 * 66U);
  EXPECT_LT(report.max_rel_to_bound, 0.5);
  EXPECT_LT(report.relative_error, 1e-6);
}

TEST_F(VerifyFinds, TheFirstWrongElementWhateverTheThread) {
  put(129, 65, get(129, 65) + 1.0);
  put(64, 63, get(64, 63) + 1.0);
  put(64, 64, get(64, 64) + 1.0);
  for (const std::uint32_t threads : {1U, 4U}) {
    const VerifyReport report = x.check({.threads = threads});
    EXPECT_EQ(report.failures, 3U);
    EXPECT_GT(report.max_rel_to_bound, 1.0);
    EXPECT_NEAR(report.max_abs_error, 1.0, 1e-3);
    EXPECT_EQ(report.first_failure.substr(0, 18), "d[batch 0, 64, 63]");
  }
}

TEST_F(VerifyFinds, NanInfinityAndAux) {
  put(3, 3, std::numeric_limits<double>::quiet_NaN());
  put(4, 4, std::numeric_limits<double>::infinity());
  EXPECT_EQ(x.check().failures, 2U);
  put(3, 3, 0.0);
  store_element(x.aux.data(), DataType::f32, 0, 1e6);
  EXPECT_NE(x.check().first_failure.find("aux[batch 0, 0, 0]"), std::string::npos);
}

TEST_F(VerifyFinds, ErrorsInSampledRows) {
  const VerifyOptions sampled{.mode = Verify::sampled, .sampled_rows = 8};
  EXPECT_EQ(x.check(sampled).checked, 2 * 8 * 66U);
  EXPECT_TRUE(x.check(sampled).passed());
  put(0, 65, 1e6);
  put(129, 0, 1e6);
  EXPECT_EQ(x.check(sampled).failures, 2U);
  EXPECT_EQ(x.check({.mode = Verify::off}).checked, 0U);
}

TEST(VerifyAccepts, RoundingOfEachType) {
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
    Case x(Problem{.m = 33, .n = 40, .k = 64, .d = {.type = type}});
    x.problem.epilogue.alpha = 0.3f;
    x.compute();
    EXPECT_TRUE(x.check().passed()) << to_string(type) << x.check().first_failure;
  }
}

// One value of A decides what one value of D must be.
struct Single {
  VerifyReport check(float a, double d, DataType type, Activation activation = Activation::none) {
    Problem p{.m = 1, .n = 1, .k = 1, .a = {.type = DataType::f32}, .b = {.type = DataType::f32}};
    p.d.type = type;
    p.epilogue.activation = activation;
    const float one = 1.0f;
    float storage = 0.0f;
    store_element(&storage, type, 0, d);
    return verify(p, {{OperandId::a, &a}, {OperandId::b, &one}, {OperandId::d, &storage}});
  }
};

TEST(VerifySpecials, NanAndInfinityMustAgree) {
  Single one;
  EXPECT_TRUE(one.check(kNan, kNan, DataType::f32).passed());
  EXPECT_FALSE(one.check(kNan, 0.0, DataType::f32).passed());
  EXPECT_FALSE(one.check(kNan, kInfinityF32, DataType::f32).passed());
  EXPECT_TRUE(one.check(kInfinityF32, kInfinityF32, DataType::f16).passed());
  EXPECT_FALSE(one.check(kInfinityF32, -kInfinityF32, DataType::f16).passed());
  EXPECT_FALSE(one.check(kInfinityF32, 65504.0, DataType::f16).passed());
  EXPECT_FALSE(one.check(1.0f, kNan, DataType::f16).passed());
}

TEST(VerifySpecials, CastsOverflowToInfinity) {
  Single one;
  EXPECT_TRUE(one.check(70000.0f, kInfinityF32, DataType::f16).passed());
  EXPECT_FALSE(one.check(70000.0f, -kInfinityF32, DataType::f16).passed());
  EXPECT_FALSE(one.check(70000.0f, 1.0, DataType::f16).passed());
  EXPECT_FALSE(one.check(60000.0f, kInfinityF32, DataType::f16).passed());
  EXPECT_TRUE(one.check(65519.0f, 65504.0, DataType::f16).passed());
}

TEST(VerifySpecials, GeluOfMinusInfinityIsNanOrZero) {
  Single one;
  EXPECT_TRUE(one.check(-kInfinityF32, kNan, DataType::f32, Activation::gelu_erf).passed());
  EXPECT_TRUE(one.check(-kInfinityF32, 0.0, DataType::f32, Activation::silu).passed());
  EXPECT_FALSE(one.check(-kInfinityF32, 1.0, DataType::f32, Activation::gelu_tanh).passed());
  EXPECT_FALSE(one.check(-kInfinityF32, kNan, DataType::f32, Activation::tanh).passed());
}

}  // namespace
}  // namespace vkgemm::oracle
