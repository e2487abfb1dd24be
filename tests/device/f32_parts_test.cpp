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
#include "problem/f32_arithmetic.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Problem f32(Shape shape, F32Arithmetic arithmetic) {
  Problem problem = gemm(shape, DataType::f32, DataType::f32);
  problem.f32_arithmetic = arithmetic;
  return problem;
}

class F32Parts : public Direct {
 protected:
  void SetUp() override {
    Direct::SetUp();
    for (const F32ArithmeticRow& row : f32_arithmetics) {
      if (row.parts == 1) continue;
      for (const Case& c : configs_) {
        Config config = c.config;
        config.pack_a = config.pack_b = true;
        const ResolvedProblem problem = resolve(f32({64, 64, 64}, row.arithmetic)).value();
        if (c.input != row.type || !is_legal(config, problem, target())) continue;
        if (on_cpu() && has(row.arithmetic)) break;  // where compiling is slow, one of each
        parts_.push_back({config, row.arithmetic});
      }
    }
    if (IsSkipped()) return;
    ASSERT_FALSE(parts_.empty());
  }

  bool has(F32Arithmetic arithmetic) const {
    return std::ranges::any_of(parts_, [&](const Parts& p) { return p.arithmetic == arithmetic; });
  }
  // Packed operands lie in the device's one order.
  static bool takes(const Config& config, Problem problem, const TrialOptions& options = {}) {
    for (const auto& [matrix, packs] :
         {std::pair{&problem.a, options.packs_a}, {&problem.b, options.packs_b}}) {
      if (packs) *matrix = {.type = matrix->type, .packing = Packing::packed};
    }
    return static_cast<bool>(context().plan(problem, config));
  }

  struct Parts {
    Config config;
    F32Arithmetic arithmetic;
  };
  std::vector<Parts> parts_;
};

// Copied in the call and packed before.
TEST_F(F32Parts, EveryLayoutAndForm) {
  std::set<std::pair<F32Arithmetic, bool>> forms;
  for (const Parts& c : parts_) {
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        for (const bool aligned : {false, true}) {
          for (const bool packed : {false, true}) {
            Problem problem = f32({75, 131, 70}, c.arithmetic);
            problem.a.layout = a;
            problem.b.layout = b;
            const TrialOptions options{.packs_a = packed, .packs_b = packed};
            if (!takes(c.config, problem, options)) continue;
            EXPECT_TRUE(passes_gates(c.config, with_padding(problem, 4, aligned), options))
                << to_string(c.arithmetic);
            forms.insert({c.arithmetic, packed});
          }
        }
      }
    }
  }
  for (const Parts& c : parts_) {
    EXPECT_TRUE(forms.contains({c.arithmetic, false})) << to_string(c.arithmetic);
    EXPECT_TRUE(forms.contains({c.arithmetic, true})) << to_string(c.arithmetic);
  }
}

TEST_F(F32Parts, EveryDepthAndEdge) {
  for (const Parts& c : parts_) {
    const std::uint64_t tile_k = c.config.tile_k;
    for (const std::uint64_t k : {std::uint64_t{0}, std::uint64_t{1}, tile_k - 1, tile_k,
                                  tile_k + 1, 3 * tile_k - 7, 5 * tile_k}) {
      EXPECT_TRUE(passes_gates(c.config, f32({c.config.tile_m + 1u, 9, k}, c.arithmetic)));
    }
    for (const std::uint64_t m : {1u, 17u, 64u, 65u}) {
      for (const std::uint64_t n : {1u, 9u, 129u}) {
        EXPECT_TRUE(passes_gates(c.config, f32({m, n, 40}, c.arithmetic)));
      }
    }
  }
}

// With batches, slices of K, the epilogue, gates, groups and row reductions, as plain f32 has them.
TEST_F(F32Parts, Compose) {
  for (const Parts& c : parts_) {
    std::set<std::string> ran;
    const auto passes = [&](const std::string& what, const Config& config, const Problem& problem,
                            const TrialOptions& options = {}) {
      if (!takes(config, problem, options)) return;
      EXPECT_TRUE(passes_gates(config, problem, options)) << what;
      ran.insert(what);
    };
    Problem batched = f32({35, 70, 50}, c.arithmetic);
    batched.batch = 3;
    passes("batch", c.config, batched);
    passes("batch", c.config, batched, {.packs_a = true, .packs_b = true});
    batched.b.batch_stride = 0;
    passes("batch", c.config, batched, {.packs_b = true});
    for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver}) {
      passes("slices", sliced(c.config, 3, mode), f32({33, 65, 200}, c.arithmetic));
    }
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      Problem problem = with_padding(f32({35, 70, 50}, c.arithmetic));
      problem.c.type = problem.aux.type = DataType::f32;
      problem.epilogue.alpha = 0.25f;
      problem.epilogue.beta = 2.0f;
      problem.epilogue.bias = Bias::along_n;
      problem.epilogue.activation = Activation::relu;
      problem.epilogue.aux = true;
      for (Matrix* matrix : {&problem.c, &problem.d, &problem.aux}) matrix->layout = layout;
      passes("epilogue", c.config, problem);
    }
    for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
      for (const bool packed : {false, true}) {
        Problem gated = f32({33, 40, 96}, c.arithmetic);
        gated.epilogue.bias = Bias::along_n;
        gated.gated = Gated{.gate = Gate::reglu, .b = b};
        passes(std::string(to_string(b)), c.config, gated, {.packs_b = packed});
        passes(std::string(to_string(b)), sliced(c.config, 2), gated, {.packs_b = packed});
      }
    }
    for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
      Problem grouped = f32({70, 40, 96}, c.arithmetic);
      const bool of_rows = along == GroupAlong::m;
      grouped.grouping = Grouping{
          .groups = 3, .along = along, .b = of_rows ? GroupedB::per_group : GroupedB::shared};
      passes(std::string(to_string(along)), c.config, grouped, {.offsets = {3, 3, 40, 70}});
      passes(std::string(to_string(along)), c.config, grouped,
             {.offsets = {3, 3, 40, 70}, .packs_b = of_rows});
    }
    for (const RowStrategy strategy : {RowStrategy::resident, RowStrategy::panel,
                                       RowStrategy::recompute, RowStrategy::two_pass}) {
      for (const RowOp op : {RowOp::layer_norm, RowOp::logsumexp}) {
        Problem rows = f32({35, 40, 96}, c.arithmetic);
        rows.row_reduction = RowReduction{.op = op};
        if (strategy == RowStrategy::two_pass) rows.d.type = DataType::f16;  // values in parts
        Config config = c.config;
        config.rows = strategy;
        passes("rows", config, rows);
      }
    }
    EXPECT_EQ(ran, (std::set<std::string>{"batch", "slices", "epilogue", "halves", "separate",
                                          "interleaved", "m", "k", "rows"}))
        << to_string(c.arithmetic);
  }
}

// Where ieee has them: an infinity times parts that are 0 or of another sign stays one.
TEST_F(F32Parts, NanAndInfinities) {
  for (const Parts& c : parts_) {
    Trial trial(f32({40, 40, 50}, c.arithmetic), Fill::random);
    trial.set('a', 3, 5, infinity);
    trial.set('b', 5, 0, 1.0);
    trial.set('b', 5, 1, -1.00390625000001);
    trial.set('b', 5, 2, 0.0);
    trial.set('b', 5, 3, infinity);
    trial.set('b', 7, 4, -infinity);
    trial.set('b', 8, 5, std::numeric_limits<double>::quiet_NaN());
    trial.set('a', 9, 7, -0.3333333);
    ASSERT_TRUE(trial.run(c.config)) << to_string(c.arithmetic);
    EXPECT_EQ(trial.d(3, 0), infinity);
    EXPECT_EQ(trial.d(3, 1), -infinity);
    EXPECT_TRUE(std::isnan(trial.d(3, 2)));
    EXPECT_EQ(trial.d(3, 3), infinity);
    EXPECT_EQ(trial.d(9, 4), infinity);
    EXPECT_TRUE(std::isnan(trial.d(20, 5)));
    EXPECT_TRUE(trial.is_within_bound()) << to_string(c.arithmetic);
  }
}

// Numbers whose first part would round to infinity, or whose scales overflow one by one.
TEST_F(F32Parts, LargeAndSmallNumbers) {
  const double largest = std::numeric_limits<float>::max();
  for (const Parts& c : parts_) {
    Trial trial(f32({8, 8, 4}, c.arithmetic), Fill::random);
    for (std::uint64_t k = 0; k < 4; ++k) {
      trial.set('a', 0, k, k == 0 ? largest : 0.0);
      trial.set('a', 1, k, 0x1.234568p-90);
      trial.set('b', k, 0, 0x1.89abcep-100);
      trial.set('b', k, 1, 0x1.fedcbap+90);
    }
    ASSERT_TRUE(trial.run(c.config));
    EXPECT_NEAR(trial.d(0, 0) / (largest * 0x1.89abcep-100), 1.0, 0x1p-20);
    EXPECT_NEAR(trial.d(1, 1) / (4 * 0x1.234568p-90 * 0x1.fedcbap+90), 1.0, 0x1p-20);
  }
}

// --- errors beside double

struct Errors {
  double rms = 0.0;
  double largest = 0.0;
};

using Values = std::vector<float>;
struct Inputs {
  Shape shape;
  Values a, b;
};

// Of each element of the product: its sum, and that of the magnitudes of what is added.
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
  for (std::uint64_t i = 0; i < m * k; ++i) trial.set('a', i / k, i % k, double{inputs.a[i]});
  for (std::uint64_t i = 0; i < k * n; ++i) trial.set('b', i / n, i % n, double{inputs.b[i]});
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
Inputs inputs_of(const std::string& name, Shape shape, bool within) {
  const auto [m, n, k] = shape;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::normal_distribution<float> normal;
  Inputs out{shape, Values(m * k), Values(k * n)};
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

// How much larger than ieee's errors may be. Matrix units truncate, which few products show; two
// f16 leave up to 2^-23 of a number, which one or two show (H100, driver 580.159.04: 7.1 times,
// hilbert).
struct Allowed {
  double rms = 0.0;
  double largest = infinity;
};
Allowed allowed_of(F32Arithmetic arithmetic, std::uint64_t k) {
  if (arithmetic == F32Arithmetic::f16x3) return {k <= 2 ? 7.5 : 4.0};
  if (arithmetic == F32Arithmetic::bf16x6) return {2.0};
  return k <= 100 ? Allowed{1.4, 2.2} : Allowed{1.0, 1.0};
}

class F32Errors : public F32Parts {
 protected:
  void compare(const std::vector<std::uint64_t>& depths) {
    for (const char* name : {"uniform", "normal", "log-uniform 30", "log-uniform 100", "mixed rows",
                             "cancelling", "hilbert"}) {
      for (const std::uint64_t k : depths) {
        const std::uint64_t size = k > 100000 ? 16 : 48;
        for (const bool within : {false, true}) {
          const Inputs inputs = inputs_of(name, {size, size, k}, within);
          Problem problem = f32(inputs.shape, F32Arithmetic::ieee);
          problem.max_workspace_bytes = std::uint64_t{4} << 30;
          problem.split_k.slices = 1;
          // A tile of the loop that large products take: one sum, in the order of K.
          const Config ieee = small_configs(Path::fma, DataType::f32).front();
          ASSERT_EQ(ieee.main_loop(), MainLoop::fma);
          const std::vector<Sum> sums = sums_of(inputs);
          const Errors wanted = errors_of(inputs, sums, problem, ieee);
          std::set<F32Arithmetic> done;
          for (const Parts& c : parts_) {
            if ((c.arithmetic == F32Arithmetic::f16x3) != within) continue;
            if (!done.insert(c.arithmetic).second) continue;
            problem.f32_arithmetic = c.arithmetic;
            const Errors errors = errors_of(inputs, sums, problem, c.config);
            const Allowed allowed = allowed_of(c.arithmetic, k);
            const std::string what =
                std::string(to_string(c.arithmetic)) + ", " + name + ", K " + std::to_string(k);
            std::printf("%-40s rms %.3g of ieee's %.3g, largest %.3g of %.3g\n", what.c_str(),
                        errors.rms, wanted.rms, errors.largest, wanted.largest);
            EXPECT_LE(errors.rms, allowed.rms * wanted.rms) << what;
            EXPECT_LE(errors.largest, allowed.largest * wanted.largest) << what;
          }
        }
      }
    }
  }
};

TEST_F(F32Errors, BesideThoseOfIeee) { compare({1, 2, 5, 16, 100, 1000}); }

TEST_F(F32Errors, NightlyBesideThoseOfIeee) { compare({4096, 65536, 1u << 20}); }

// Integers whose sums fit 24 bits.
TEST_F(F32Parts, IntegersAreExact) {
  for (const Parts& c : parts_) {
    if (c.arithmetic != F32Arithmetic::bf16x9) continue;
    Trial trial(f32({33, 40, 96}, c.arithmetic), Fill::integers);
    trial.set('a', 0, 0, 0x1.fffffep+23);
    for (std::uint64_t k = 1; k < 96; ++k) trial.set('a', 0, k, 0.0);
    for (std::uint64_t n = 0; n < 40; ++n) trial.set('b', 0, n, n % 2 == 0 ? 1.0 : -1.0);
    ASSERT_TRUE(trial.run(c.config));
    EXPECT_TRUE(trial.is_exact());
  }
}

// --- what is asked and what is said

TEST_F(F32Parts, CandidatesHaveTheArithmeticAskedFor) {
  for (const Parts& c : parts_) {
    const auto candidates = context().candidates(f32({64, 64, 64}, c.arithmetic));
    ASSERT_TRUE(candidates);
    ASSERT_FALSE(candidates->empty());
    for (const Candidate& candidate : *candidates) {
      EXPECT_EQ(candidate.config.main_loop(), MainLoop::khr_direct);
      EXPECT_TRUE(candidate.config.pack_a && candidate.config.pack_b);
    }
    const auto plan = context().plan(f32({64, 64, 64}, c.arithmetic));
    ASSERT_TRUE(plan);
    EXPECT_NE(plan->explain().find("f32 arithmetic: " + std::string(to_string(c.arithmetic))),
              std::string::npos)
        << plan->explain();
  }
}

TEST_F(F32Parts, OthersAreRefusedByName) {
  for (const Parts& c : parts_) {
    Problem problem = f32({64, 64, 64}, c.arithmetic);
    Config rows = c.config;
    rows.pack_a = false;
    std::get<KhrDirectLoop>(rows.loop).swap_a = false;
    EXPECT_TRUE(fails_with(context().plan(problem, rows), Status::unsupported,
                           {to_string(c.arithmetic), "pack has to be ab"}));
    problem.f32_arithmetic = F32Arithmetic::ieee;
    EXPECT_TRUE(fails_with(context().plan(problem, c.config), Status::unsupported, {"f32"}));
  }
}

// Where there are no such matrices, ieee computes, and explain() says so.
TEST(F32Arithmetics, WithoutMatricesItIsIeee) {
  for (const F32ArithmeticRow& row : f32_arithmetics) {
    if (row.parts == 1) continue;
    const auto other = another_runner({}, false);  // hasn't passed the self-test
    const auto plan = other->context().plan(f32({64, 64, 64}, row.arithmetic));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_NE(plan->explain().find("ieee in place of " + std::string(row.name)), std::string::npos)
        << plan->explain();
    const auto layout =
        other->context().packed_layout(f32({64, 64, 64}, row.arithmetic), PackedOperand::b);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->bytes, 0u);
  }
}

}  // namespace
}  // namespace vkgemm::test
