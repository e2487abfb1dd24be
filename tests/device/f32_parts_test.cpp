// f32 multiplied in 16-bit parts: within the bounds, in everything that composes with a product,
// and as accurate beside double as Problem::f32_arithmetic says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "direct.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "lib/constants.h"
#include "oracle/heavy_epilogue.hpp"
#include "problem/inputs/input.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

Problem f32(Shape shape, F32Arithmetic arithmetic) {
  Problem problem = gemm(shape, DataType::f32, DataType::f32);
  problem.f32_arithmetic = arithmetic;
  return problem;
}

class F32Parts : public Direct, public testing::WithParamInterface<F32Arithmetic> {
 protected:
  void SetUp() override {
    Direct::SetUp();
    if (IsSkipped()) return;
    const ResolvedProblem problem = resolve(parts_of({64, 64, 64})).value();
    for (const Case& c : configs_) {
      Config config = c.config;
      config.pack_a = config.pack_b = true;
      if (c.input != find_input(GetParam())->multiplied || !is_legal(config, problem, target()))
        continue;
      parts_.push_back(config);
      if (on_cpu()) break;  // where compiling is slow, one
    }
    if (parts_.empty()) {
      GTEST_SKIP() << "no configuration for " << to_string(GetParam()) << " on " << caps().name;
    }
  }

  static Problem parts_of(Shape shape) { return f32(shape, GetParam()); }
  // Packed operands lie in the device's one order.
  static bool takes(const Config& config, Problem problem, const TrialOptions& options = {}) {
    for (const auto& [matrix, packs] :
         {std::pair{&problem.a, options.packs_a}, {&problem.b, options.packs_b}}) {
      if (packs) *matrix = {.type = matrix->type, .packing = Packing::packed};
    }
    return static_cast<bool>(context().plan(problem, config));
  }

  std::vector<Config> parts_;
};
constexpr F32Arithmetic all_in_parts[] = {F32Arithmetic::bf16x9, F32Arithmetic::bf16x6,
                                          F32Arithmetic::f16x3};
std::string arithmetic_name(const testing::TestParamInfo<F32Arithmetic>& info) {
  return std::string(to_string(info.param));
}
INSTANTIATE_TEST_SUITE_P(, F32Parts, testing::ValuesIn(all_in_parts), arithmetic_name);

// Copied in the call and packed before.
TEST_P(F32Parts, EveryLayoutAndForm) {
  std::set<bool> forms;
  for (const Config& config : parts_) {
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        for (const bool aligned : {false, true}) {
          for (const bool packed : {false, true}) {
            Problem problem = parts_of({75, 131, 70});
            problem.a.layout = a;
            problem.b.layout = b;
            const TrialOptions options{.packs_a = packed, .packs_b = packed};
            if (!takes(config, problem, options)) continue;
            EXPECT_TRUE(passes_gates(config, with_padding(problem, 4, aligned), options));
            forms.insert(packed);
          }
        }
      }
    }
  }
  EXPECT_EQ(forms, (std::set<bool>{false, true}));
}

TEST_P(F32Parts, EveryDepthAndEdge) {
  for (const Config& config : parts_) {
    const std::uint64_t tile_k = config.tile_k;
    for (const std::uint64_t k : {std::uint64_t{0}, std::uint64_t{1}, tile_k - 1, tile_k,
                                  tile_k + 1, 3 * tile_k - 7, 5 * tile_k}) {
      EXPECT_TRUE(passes_gates(config, parts_of({config.tile_m + 1u, 9, k})));
    }
    for (const std::uint64_t m : {1u, 17u, 64u, 65u}) {
      for (const std::uint64_t n : {1u, 9u, 129u}) {
        EXPECT_TRUE(passes_gates(config, parts_of({m, n, 40})));
      }
    }
  }
}

// With batches, slices of K, the epilogue, gates, groups and row reductions, as plain f32 has them.
TEST_P(F32Parts, Compose) {
  const bool scaled = find_input(GetParam())->scales_lines;
  std::set<std::string> ran;
  for (const Config& config : parts_) {
    const auto passes = [&](const std::string& what, const Config& c, const Problem& problem,
                            const TrialOptions& options = {}) {
      if (!takes(c, problem, options)) return;
      EXPECT_TRUE(passes_gates(c, problem, options)) << what;
      ran.insert(what);
    };
    Problem batched = parts_of({35, 70, 50});
    batched.batch = 3;
    passes("batch", config, batched);
    passes("batch packed", config, batched, {.packs_a = true, .packs_b = true});
    batched.b.batch_stride = 0;
    passes("b shared", config, batched);
    batched.b.batch_stride.reset();
    batched.a.batch_stride = 0;
    passes("a shared", config, batched);
    for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver}) {
      passes(std::string(to_string(mode)), sliced(config, 3, mode), parts_of({33, 65, 200}));
    }
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      Problem problem = with_padding(parts_of({35, 70, 50}));
      problem.epilogue = oracle::heavy_epilogue();
      problem.epilogue.activation = Activation::relu;  // which is exact
      for (Matrix* matrix : {&problem.c, &problem.d, &problem.aux}) matrix->layout = layout;
      passes("epilogue " + std::string(to_string(layout)), config, problem);
    }
    if (!scaled) {
      Problem factors = parts_of({35, 70, 50});
      factors.epilogue.row_scales = factors.epilogue.column_scales = Scales::shared;
      passes("scales", config, factors);
    }
    for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
      const std::string name(to_string(b));
      Problem gated = parts_of({33, 40, 96});
      gated.epilogue.bias = Bias::along_n;
      gated.gated = Gated{.gate = Gate::reglu, .b = b};
      passes(name, config, gated);
      passes(name + " packed", config, gated, {.packs_b = true});
      passes(name + " in slices", sliced(config, 2), gated);
    }
    Problem grouped = parts_of({70, 40, 96});
    grouped.grouping = Grouping{.groups = 3, .b = GroupedB::per_group};
    passes("m", config, grouped, {.offsets = {3, 3, 40, 70}});
    passes("m packed", config, grouped, {.offsets = {3, 3, 40, 70}, .packs_b = true});
    grouped.grouping = Grouping{.groups = 3, .along = GroupAlong::k};
    passes("k", config, grouped, {.offsets = {3, 3, 40, 70}});
    for (const RowStrategy strategy : {RowStrategy::panel, RowStrategy::two_pass}) {
      for (const RowOp op : {RowOp::layer_norm, RowOp::logsumexp}) {
        Problem rows = parts_of({35, 40, 96});
        rows.row_reduction = RowReduction{.op = op};
        Config with_rows = config;
        with_rows.rows = strategy;
        passes(std::string(to_string(op)) + ' ' + std::string(to_string(strategy)), with_rows,
               rows);
      }
    }
  }
  std::set<std::string> wanted{"batch",
                               "batch packed",
                               "b shared",
                               "a shared",
                               "two_dispatches",
                               "last_arriver",
                               "epilogue row_major",
                               "epilogue col_major",
                               "halves",
                               "halves packed",
                               "halves in slices",
                               "separate",
                               "separate packed",
                               "separate in slices",
                               "interleaved",
                               "interleaved packed",
                               "interleaved in slices",
                               "m",
                               "m packed",
                               "layer_norm two_pass",
                               "logsumexp two_pass"};
  const auto shares_rows = [](const Config& config) { return config.tile_n >= ROW_LEAST_TILE_N; };
  if (std::ranges::any_of(parts_, shares_rows)) {
    wanted.insert({"layer_norm panel", "logsumexp panel"});
  }
  if (!scaled) wanted.insert({"k", "scales"});
  EXPECT_EQ(ran, wanted);
}

// A workspace too small for all of A's copy, or for all values between two passes: in parts of the
// rows, of which each has its own scales.
TEST_P(F32Parts, PartsOfTheRows) {
  const Config& config = parts_.front();
  Problem problem = parts_of({400, 40, 64});
  problem.max_workspace_bytes = 80000;
  ASSERT_TRUE(takes(config, problem));
  EXPECT_NE(context().plan(problem, config)->explain().find(" parts of "), std::string::npos)
      << context().plan(problem, config)->explain();
  EXPECT_TRUE(passes_gates(config, problem));
  Config two_pass = config;
  two_pass.rows = RowStrategy::two_pass;
  Problem rows = parts_of({400, 40, 64});
  rows.row_reduction = RowReduction{.op = RowOp::layer_norm};
  rows.d.type = DataType::f16;  // values stand in the workspace
  rows.max_workspace_bytes = 20000;
  const TrialOptions packed{.packs_a = true, .packs_b = true};
  ASSERT_TRUE(takes(two_pass, rows, packed));
  EXPECT_TRUE(passes_gates(two_pass, rows, packed));
}

// Rows of A whose numbers are of unlike sizes, in each part of the rows.
TEST_P(F32Parts, LinesOfUnlikeSize) {
  const Config& config = parts_.front();
  Problem problem = parts_of({400, 40, 64});
  problem.max_workspace_bytes = 80000;
  Trial trial(problem, Fill::random);
  for (std::uint64_t row = 0; row < 400; ++row) {
    const double size = std::ldexp(1.0, static_cast<int>(row % 61) - 30);
    for (std::uint64_t k = 0; k < 64; ++k) {
      trial.set(OperandId::a, row, k,
                size * (1.0 + std::ldexp(static_cast<double>((row * 64 + k) % 97), -9)));
    }
  }
  ASSERT_TRUE(trial.run(config));
  EXPECT_TRUE(trial.is_within_bound());
}

// Where ieee has them: an infinity times parts that are 0 or of another sign stays one.
TEST_P(F32Parts, NanAndInfinities) {
  for (const Config& config : parts_) {
    Trial trial(parts_of({40, 40, 50}), Fill::random);
    trial.set(OperandId::a, 3, 5, infinity);
    trial.set(OperandId::b, 5, 0, 1.0);
    trial.set(OperandId::b, 5, 1, -1.00390625000001);
    trial.set(OperandId::b, 5, 2, 0.0);
    trial.set(OperandId::b, 5, 3, infinity);
    trial.set(OperandId::b, 7, 4, -infinity);
    trial.set(OperandId::b, 8, 5, nan);
    trial.set(OperandId::a, 9, 7, -0.3333333);
    ASSERT_TRUE(trial.run(config));
    EXPECT_EQ(trial.d(3, 0), infinity);
    EXPECT_EQ(trial.d(3, 1), -infinity);
    EXPECT_TRUE(std::isnan(trial.d(3, 2)));
    EXPECT_EQ(trial.d(3, 3), infinity);
    EXPECT_EQ(trial.d(9, 4), infinity);
    EXPECT_TRUE(std::isnan(trial.d(20, 5)));
    EXPECT_TRUE(trial.is_within_bound());
  }
}

// Numbers whose first part would round to infinity, or whose scales overflow one by one.
TEST_P(F32Parts, LargeAndSmallNumbers) {
  const double largest = std::numeric_limits<float>::max();
  for (const Config& config : parts_) {
    Trial trial(parts_of({8, 8, 4}), Fill::random);
    for (std::uint64_t k = 0; k < 4; ++k) {
      trial.set(OperandId::a, 0, k, k == 0 ? largest : 0.0);
      trial.set(OperandId::a, 1, k, 0x1.234568p-90);
      trial.set(OperandId::b, k, 0, 0x1.89abcep-100);
      trial.set(OperandId::b, k, 1, 0x1.fedcbap+90);
    }
    ASSERT_TRUE(trial.run(config));
    EXPECT_NEAR(trial.d(0, 0) / (largest * 0x1.89abcep-100), 1.0, 0x1p-20);
    EXPECT_NEAR(trial.d(1, 1) / (4 * 0x1.234568p-90 * 0x1.fedcbap+90), 1.0, 0x1p-20);
  }
}

// --- errors beside double

struct Errors {
  double rms = 0.0;
  double largest = 0.0;
};

using Floats = std::vector<float>;
struct Inputs {
  Shape shape;
  Floats a, b;
};

// An element of the product: its sum, and that of the magnitudes of what is added.
struct Sum {
  long double value = 0.0;
  long double magnitudes = 0.0;
};

std::vector<Sum> sums_of(const Inputs& inputs) {
  const auto [m, n, k] = inputs.shape;
  std::vector<Sum> sums(m * n);
  for (std::uint64_t i = 0; i < m; ++i) {
    for (std::uint64_t l = 0; l < k; ++l) {
      for (std::uint64_t j = 0; j < n; ++j) {
        const long double product =
            static_cast<long double>(inputs.a[i * k + l]) * inputs.b[l * n + j];
        sums[i * n + j].value += product;
        sums[i * n + j].magnitudes += std::abs(product);
      }
    }
  }
  return sums;
}

Errors errors_of(const Inputs& inputs, const std::vector<Sum>& sums, const Problem& problem,
                 const Config& config) {
  const auto [m, n, k] = inputs.shape;
  Trial trial(problem, Fill::integers);
  for (std::uint64_t i = 0; i < m * k; ++i)
    trial.set(OperandId::a, i / k, i % k, double{inputs.a[i]});
  for (std::uint64_t i = 0; i < k * n; ++i)
    trial.set(OperandId::b, i / n, i % n, double{inputs.b[i]});
  EXPECT_TRUE(trial.run(config));
  Errors out;
  for (std::uint64_t i = 0; i < m * n; ++i) {
    if (!(sums[i].magnitudes > 0.0L)) continue;
    const long double difference = static_cast<long double>(trial.d(i / n, i % n)) - sums[i].value;
    const auto error = static_cast<double>(std::abs(difference) / sums[i].magnitudes);
    out.rms += error * error;
    out.largest = std::max(out.largest, error);
  }
  out.rms = std::sqrt(out.rms / static_cast<double>(m * n));
  return out;
}

// Powers of two from 2^-most to 2^most, and a random mantissa and sign.
float log_uniform(std::mt19937& random, double most) {
  std::uniform_real_distribution<double> exponent(-most, most);
  const double value = std::exp2(exponent(random));
  return static_cast<float>(random() % 2 == 0 ? value : -value);
}

// "within": f16x3's range, beyond which elements of a row lose bits.
Inputs make_inputs(const std::string& name, Shape shape, bool within) {
  const auto [m, n, k] = shape;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::normal_distribution<float> normal;
  Inputs out{shape, Floats(m * k), Floats(k * n)};
  for (std::uint64_t i = 0; i < m * k; ++i) {
    const std::uint64_t row = i / k, l = i % k;
    float& x = out.a[i];
    if (name == "uniform" || name == "cancelling") x = uniform(random);
    if (name == "normal") x = normal(random);
    if (name == "log-uniform 30") x = log_uniform(random, within ? 12 : 30);
    if (name == "log-uniform 100") x = log_uniform(random, within ? 12 : 100);
    if (name == "mixed rows") {
      x = uniform(random) * static_cast<float>(std::exp2(static_cast<double>(row % 41) - 20.0));
    }
    if (name == "hilbert") x = 1.0f / static_cast<float>(row + l + 1);
    if (name == "cancelling" && l % 2 == 1) x = out.a[i - 1];
  }
  for (std::uint64_t i = 0; i < k * n; ++i) {
    const std::uint64_t l = i / n, column = i % n;
    float& x = out.b[i];
    if (name == "uniform" || name == "cancelling" || name == "mixed rows") x = uniform(random);
    if (name == "normal") x = normal(random);
    if (name.starts_with("log-uniform")) x = log_uniform(random, 12);
    if (name == "hilbert") x = 1.0f / static_cast<float>(l + column + 1);
    // Neighbours cancel but for a little.
    if (name == "cancelling" && l % 2 == 1) x = -out.b[i - n] * (1.0f + 0x1p-12f * x);
  }
  return out;
}

// How much larger than ieee's errors may be. The largest is of one element. Two f16 leave up to
// 2^-23 of a number, which one or two products show.
struct Allowed {
  double rms = 0.0;
  double largest = infinity;
};
Allowed allowed_of(F32Arithmetic arithmetic, std::uint64_t k) {
  if (arithmetic == F32Arithmetic::f16x3) return {k <= 2 ? 7.5 : 4.0};
  if (arithmetic == F32Arithmetic::bf16x6) return {2.0};
  return {1.01, k < 16 ? 1.75 : 1.0};
}

class F32Errors : public F32Parts {
 protected:
  void compare(const std::vector<std::uint64_t>& depths) {
    for (const char* name : {"uniform", "normal", "log-uniform 30", "log-uniform 100", "mixed rows",
                             "cancelling", "hilbert"}) {
      for (const std::uint64_t k : depths) {
        const std::uint64_t size = k > 100000 ? 16 : 48;
        const bool within = GetParam() == F32Arithmetic::f16x3;
        const Inputs inputs = make_inputs(name, {size, size, k}, within);
        Problem problem = f32(inputs.shape, F32Arithmetic::ieee);
        problem.max_workspace_bytes = std::uint64_t{4} << 30;
        problem.split_k.slices = 1;
        // A tile of the loop that large products take: one sum, in the order of K.
        const Config ieee = small_configs(Path::fma, DataType::f32).front();
        ASSERT_EQ(ieee.main_loop(), MainLoop::fma);
        const std::vector<Sum> sums = sums_of(inputs);
        const Errors wanted = errors_of(inputs, sums, problem, ieee);
        problem.f32_arithmetic = GetParam();
        const Errors errors = errors_of(inputs, sums, problem, parts_.front());
        const Allowed allowed = allowed_of(GetParam(), k);
        const std::string what =
            std::string(to_string(GetParam())) + ", " + name + ", K " + std::to_string(k);
        std::printf("%-40s rms %.3g of ieee's %.3g, largest %.3g of %.3g\n", what.c_str(),
                    errors.rms, wanted.rms, errors.largest, wanted.largest);
        EXPECT_LE(errors.rms, allowed.rms * wanted.rms) << what;
        EXPECT_LE(errors.largest, allowed.largest * wanted.largest) << what;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, F32Errors, testing::ValuesIn(all_in_parts), arithmetic_name);

TEST_P(F32Errors, BesideThoseOfIeee) { compare({1, 2, 5, 16, 100, 257, 1000}); }

TEST_P(F32Errors, NightlyBesideThoseOfIeee) { compare({4096, 65536, 1u << 20}); }

// Integers of three parts, where |a|·|b| add up to less than 2^23.
TEST_P(F32Parts, IntegersAreExact) {
  if (GetParam() != F32Arithmetic::bf16x9) GTEST_SKIP() << "of bf16x9 alone";
  for (const Config& config : parts_) {
    Trial trial(parts_of({33, 40, 96}), Fill::integers);
    for (std::uint64_t row = 0; row < 33; ++row) {
      for (std::uint64_t k = 0; k < 96; ++k)
        trial.set(OperandId::a, row, k, k < 4 ? 2093055.0 - 7.0 * static_cast<double>(row) : 0.0);
    }
    for (std::uint64_t n = 0; n < 40; ++n) {
      for (std::uint64_t k = 0; k < 96; ++k)
        trial.set(OperandId::b, k, n, (n + k) % 2 == 0 ? 1.0 : -1.0);
    }
    trial.set(OperandId::b, 1, 0, 1.0);
    ASSERT_TRUE(trial.run(config));
    EXPECT_TRUE(trial.is_exact());
  }
}

// --- what is asked and what is said

TEST_P(F32Parts, CandidatesHaveTheArithmeticAskedFor) {
  const auto candidates = context().candidates(parts_of({64, 64, 64}));
  ASSERT_TRUE(candidates);
  ASSERT_FALSE(candidates->empty());
  for (const Candidate& candidate : *candidates) {
    EXPECT_EQ(candidate.config.main_loop(), MainLoop::khr_direct);
    EXPECT_TRUE(candidate.config.pack_a && candidate.config.pack_b);
  }
  const auto plan = context().plan(parts_of({64, 64, 64}));
  ASSERT_TRUE(plan);
  EXPECT_NE(plan->explain().find("f32 arithmetic: " + std::string(to_string(GetParam()))),
            std::string::npos)
      << plan->explain();
}

TEST_P(F32Parts, OthersAreRefusedByName) {
  for (const Config& config : parts_) {
    Problem problem = parts_of({64, 64, 64});
    Config rows = config;
    rows.pack_a = false;
    std::get<KhrDirectLoop>(rows.loop).swap_a = false;
    EXPECT_TRUE(fails_with(context().plan(problem, rows), Status::unsupported,
                           {to_string(GetParam()), "pack has to be ab"}));
    problem.f32_arithmetic = F32Arithmetic::ieee;
    EXPECT_TRUE(fails_with(context().plan(problem, config), Status::unsupported, {"f32"}));
  }
}

// Where there are no such matrices, ieee computes, and explain() says so.
TEST(F32Arithmetics, WithoutMatricesItIsIeee) {
  for (const Input* input : inputs()) {
    if (input->parts == 1) continue;
    const auto other = another_runner({}, false);  // hasn't passed the self-test
    const auto plan = other->context().plan(f32({64, 64, 64}, input->arithmetic));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_NE(plan->explain().find("ieee in place of " + std::string(input->arithmetic_name)),
              std::string::npos)
        << plan->explain();
    const auto layout =
        other->context().packed_layout(f32({64, 64, 64}, input->arithmetic), PackedOperand::b);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->bytes, 0u);
  }
}

}  // namespace
}  // namespace vkgemm::test
