// Row reductions: every operation by every strategy, which have the same bits. Rows that end
// anywhere, in one tile and in many; what is not a number; barriers that are given up.
#include <bit>
#include <cmath>
#include <limits>

#include "harness.hpp"
#include "kernels/legality.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr RowOp all_ops[] = {RowOp::rms_norm,     RowOp::layer_norm, RowOp::softmax,
                             RowOp::l2_normalize, RowOp::logsumexp,  RowOp::sum,
                             RowOp::max,          RowOp::mean,       RowOp::variance,
                             RowOp::quantise,     RowOp::amax};
constexpr RowStrategy all_strategies[] = {RowStrategy::two_pass, RowStrategy::resident,
                                          RowStrategy::recompute, RowStrategy::panel};

constexpr std::string_view khr_row_texts[] = {
    "khr:tile=16x32x16,fragment=8x8x8,subgroups=1x2,subgroup_size=8,subtiles=2,swizzle=1,peel=0",
    "khr:tile=32x64x16,fragment=16x16x16,subgroups=1x2,subgroup_size=8,swizzle=1,peel=0",
    "khr_ring:tile=32x32x16,fragment=8x8x8,subgroups=2x2,subgroup_size=8,subtiles=2,swizzle=1",
    "khr:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32,swizzle=1",
    "khr:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=2,swizzle=1",
    "khr:tile=64x128x32,fragment=16x16x16,subgroups=1x4,subgroup_size=32,subtiles=4,swizzle=1",
    "khr:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=64,swizzle=1",
    "khr_ring:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,swizzle=1",
    "khr:tile=32x32x32,fragment=8x16x16,subgroups=2x2,subgroup_size=16,subtiles=2,swizzle=1",
};
constexpr std::string_view fma_row_texts[] = {
    "fma:tile=16x32x8,fragment=4x4,swizzle=1,peel=0",
    "fma:tile=32x64x16,fragment=8x8,swizzle=1",
    "fma:tile=16x128x8,fragment=4x8,swizzle=1",
};
constexpr std::string_view nv_row_texts[] = {"nv:tile=32x32x32,invocations=128,swizzle=2"};

// Configurations without a strategy; legal for any layout.
std::vector<Config> row_configs(Path path, DataType input) {
  std::span<const std::string_view> texts = khr_row_texts;
  if (path == Path::fma) texts = fma_row_texts;
  if (path == Path::nv) texts = nv_row_texts;
  std::vector<Config> legal;
  for (const std::string_view text : texts) {
    Config config = parse_config(text).value();
    Problem problem = gemm({64, 64, 64}, input);
    problem.row_reduction = RowReduction{.op = RowOp::sum};
    problem.a.layout = problem.b.layout = Layout::col_major;
    config.rows = path == Path::nv ? RowStrategy::two_pass : RowStrategy::panel;
    const bool cols = is_legal(config, resolve(problem).value(), target());
    problem.a.layout = problem.b.layout = Layout::row_major;
    if (!cols || !is_legal(config, resolve(problem).value(), target())) continue;
    config.rows = RowStrategy::none;
    legal.push_back(config);
  }
  return legal;
}

class RowReductions : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return row_configs(GetParam(), input()).front(); }

  // Statistics, their merging and the second pass are one piece of code for all paths.
  // Configurations that a CPU takes long to compile run a selection of it, one operation of each
  // kind of statistics; those that it compiles sooner, and the nightly tests, run all.
  bool is_selection() const { return on_cpu() && GetParam() == Path::khr && !is_nightly(); }
  std::vector<RowOp> ops() const {
    if (is_selection()) {
      return {RowOp::rms_norm, RowOp::layer_norm, RowOp::softmax, RowOp::max, RowOp::quantise};
    }
    return {std::begin(all_ops), std::end(all_ops)};
  }

  static Config with(Config config, RowStrategy strategy) {
    config.rows = strategy;
    if (strategy == RowStrategy::panel) config.spin_limit = patient_spin_limit();
    return config;
  }

  // A CPU runs as many workgroups at a time as it has threads, of which there are two at least:
  // more would give up.
  static bool is_patient(const Config& config, const Problem& problem) {
    return !on_cpu() || is_scalar(problem.row_reduction->op) ||
           problem.n <= std::uint64_t{2} * config.tile_n;
  }
  static bool is_legal_here(const Config& config, const Problem& problem) {
    return is_legal(config, resolve(problem).value(), target()) &&
           (config.rows != RowStrategy::panel || is_patient(config, problem));
  }

  // The gates by each strategy that is legal, and the same bits by all.
  static testing::AssertionResult passes_by_all(
      const Config& plain, const Problem& problem, const TrialOptions& options = {},
      std::span<const RowStrategy> strategies = all_strategies) {
    Trial trial(problem, Fill::random, options);
    bool first = true;
    for (const RowStrategy strategy : strategies) {
      const Config config = with(plain, strategy);
      if (!is_legal_here(config, problem)) continue;
      if (first && is_left_out(config, problem)) return testing::AssertionSuccess();
      if (first || !on_cpu()) {
        if (auto passed = passes_gates(config, problem, options); !passed) return passed;
      }
      auto same = first ? trial.run(config) : trial.repeats(config);
      if (!same) return same << "\n  " << describe(config, problem);
      first = false;
    }
    if (first)
      return testing::AssertionFailure() << "nothing is legal: " << describe(plain, problem);
    return testing::AssertionSuccess();
  }
};
VKGEMM_ON_EACH_PATH(RowReductions);

Problem reduced(Shape shape, RowOp op, DataType input, DataType output = DataType::f32) {
  Problem problem = gemm(shape, input, output);
  problem.row_reduction = RowReduction{.op = op};
  if (op == RowOp::quantise) problem.d.type = DataType::s8;
  return problem;
}

// Steps come before the reduction. They store their tensor, sum columns and find
// amax in each strategy.
TEST_P(RowReductions, OfSteps) {
  for (const std::uint64_t n : {32u, 56u}) {
    for (const RowOp op : {RowOp::rms_norm, RowOp::max}) {
      Problem problem = gemm({19, n, 9}, input());
      problem.row_reduction = RowReduction{.op = op};
      problem.epilogue.tensors[0] = TensorShape::matrix;
      problem.epilogue.steps[0] = {.op = StepOp::add, .operand = StepOperand::t0};
      if (GetParam() != Path::nv) {
        problem.epilogue.tensors[1] = TensorShape::matrix;
        problem.epilogue.steps[1] = {.op = StepOp::store, .operand = StepOperand::t1};
        problem.epilogue.tensors[2] = TensorShape::along_n;
        problem.epilogue.steps[2] = {.op = StepOp::sum_columns, .operand = StepOperand::t2};
        problem.t2.type = DataType::f32;
        problem.epilogue.tensors[3] = TensorShape::scalar;
        problem.epilogue.steps[3] = {.op = StepOp::amax, .operand = StepOperand::t3};
        problem.t3.type = DataType::f32;
      }
      EXPECT_TRUE(passes_by_all(config(), with_padding(problem)));
    }
  }
}

TEST_P(RowReductions, EveryOperation) {
  const bool all = !on_cpu() || is_nightly();
  for (const RowOp op : ops()) {
    // Where compiling is slow, one tile and two take turns.
    const bool even = static_cast<unsigned>(op) % 2 == 0;
    if (all || even) {
      EXPECT_TRUE(passes_by_all(config(), with_padding(reduced({19, 37, 24}, op, input()))));
    }
    if (all || !even) {
      EXPECT_TRUE(passes_by_all(config(), reduced({32, 32, 40}, op, input(), input())));
    }
  }
}

// One column, one x4, x4s that end early, whole tiles, one more; one row.
TEST_P(RowReductions, AnyWidth) {
  const std::uint64_t tile = config().tile_n;
  for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{4},
                                std::uint64_t{6}, tile - 1, tile, tile + 1, 2 * tile - 2}) {
    for (const RowOp op : {RowOp::layer_norm, RowOp::softmax, RowOp::max}) {
      if (on_cpu() && op != RowOp::layer_norm) continue;
      EXPECT_TRUE(passes_by_all(config(), with_padding(reduced({5, n, 9}, op, input()))));
    }
  }
  if (is_selection()) return;
  EXPECT_TRUE(passes_by_all(config(), reduced({1, 2 * tile, 17}, RowOp::l2_normalize, input())));
}

// Beyond what is merged as a tree, and beyond what a workgroup keeps of a row.
TEST_P(RowReductions, LongRows) {
  for (const std::uint64_t n : {1023u, 1024u, 1025u, 2304u, 4100u, 9001u}) {
    for (const RowOp op : {RowOp::layer_norm, RowOp::logsumexp, RowOp::sum}) {
      if (on_cpu() && (op == RowOp::layer_norm) != (n % 2 == 1)) continue;
      // The tree and the second pass are the same on all paths.
      if (is_selection() && (op == RowOp::sum || n > 1025)) continue;
      EXPECT_TRUE(passes_by_all(config(), reduced({3, n, 8}, op, input(), input())));
    }
  }
}

// All types of D, vectors, values and residuals, with the whole epilogue before the reduction, in a
// batch.
TEST_P(RowReductions, TypesAndEpilogue) {
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
    for (const bool aligned : {false, true}) {
      if (is_selection() && (type == DataType::f32 || aligned != (type == DataType::f16))) continue;
      Problem problem =
          reduced({18, 40, 24}, aligned ? RowOp::layer_norm : RowOp::variance, input(),
                  GetParam() == Path::nv && type != input() ? DataType::f32 : type);
      problem.c.type = type;
      problem.aux.type = problem.d.type;
      problem.batch = 3;
      problem.epilogue = oracle::heavy_epilogue();
      problem.epilogue.bias_type = type;
      problem.row_reduction->vector_type = problem.row_reduction->value_type = type;
      problem.row_reduction->gamma = problem.row_reduction->beta = aligned;
      EXPECT_TRUE(passes_by_all(config(), with_padding(problem, 8, aligned)));
    }
  }
}

TEST_P(RowReductions, EveryConfiguration) {
  std::size_t types = 0;
  for (const DataType type : inputs_of(GetParam())) {
    ++types;
    std::size_t turn = 0;
    for (const Config& config : row_configs(GetParam(), type)) {
      ++turn;
      // The first one stands for all others in all other tests.
      if (is_selection() && turn == 1) continue;
      // The reduction sees f32 whatever the type is: of further ones, one each.
      if (on_cpu() && types > 1 && turn != types) continue;
      // Two passes are a product like any other, and the second kernel.
      const std::span<const RowStrategy> all = all_strategies;
      const auto strategies = is_selection() ? all.subspan(2) : all;
      for (const RowOp op : {RowOp::layer_norm, RowOp::max}) {
        if (on_cpu() && op == RowOp::max) continue;
        Problem problem =
            reduced({config.tile_m + 7u, 2 * config.tile_n - 5u, 2 * config.tile_k + 8u}, op, type);
        problem.epilogue.bias = Bias::along_n;
        EXPECT_TRUE(passes_by_all(config, with_padding(problem, 8, true), {}, strategies));
      }
    }
  }
}

TEST_P(RowReductions, EveryLayoutOfAAndB) {
  // All kernels load in the same way: where compiling is slow, one that has no other test of it.
  const std::span<const RowStrategy> all = all_strategies;
  const auto strategies = is_selection() ? all.subspan(2, 1) : all;
  for (const Layout a : {Layout::row_major, Layout::col_major}) {
    for (const Layout b : {Layout::row_major, Layout::col_major}) {
      if (is_selection() && a == b) continue;
      Problem problem = reduced({18, 35, 100}, RowOp::softmax, input());
      problem.a.layout = a;
      problem.b.layout = b;
      EXPECT_TRUE(passes_by_all(config(), with_padding(problem), {}, strategies));
    }
  }
}

// Rows of C, D and aux are strewn over memory.
TEST_P(RowReductions, ColumnMajorD) {
  const std::span<const RowStrategy> all = all_strategies;
  for (const DataType type : {input(), DataType::f32}) {
    for (const bool heavy : {false, true}) {
      if (on_cpu() && heavy == (type == DataType::f32)) continue;
      Problem problem = reduced({19, 38, 24}, heavy ? RowOp::layer_norm : RowOp::mean, input());
      problem.d.layout = Layout::col_major;
      problem.d.type = problem.c.type = type;
      problem.batch = 2;
      problem.epilogue.beta = 0.5f;
      if (heavy && GetParam() != Path::nv) {
        problem.aux = problem.c = problem.d;
        problem.epilogue = oracle::heavy_epilogue();
        problem.row_reduction->gamma = true;
      }
      problem.c.layout = Layout::col_major;
      // One of the kernel that keeps its tiles, and the second kernel.
      const auto strategies = on_cpu() ? all.subspan(2) : all;
      EXPECT_TRUE(passes_by_all(config(), with_padding(problem), {}, strategies));
      problem.c = problem.d;
      if (on_cpu()) continue;
      EXPECT_TRUE(passes_by_all(config(), problem, {.in_place = true}));
    }
  }
}

TEST_P(RowReductions, WithoutD) {
  for (const RowOp op : {RowOp::logsumexp, RowOp::sum, RowOp::mean}) {
    if (is_selection() && op != RowOp::logsumexp) continue;
    Problem problem = reduced({21, 50, 24}, op, input());
    problem.row_reduction->store_d = false;
    problem.batch = 2;
    EXPECT_TRUE(passes_by_all(config(), problem));
  }
}

TEST_P(RowReductions, InPlace) {
  Problem problem = reduced({17, 60, 24}, RowOp::rms_norm, input());
  problem.c.type = problem.d.type = DataType::f32;
  problem.epilogue.beta = -0.5f;
  EXPECT_TRUE(passes_by_all(config(), problem, {.in_place = true}));
  if (GetParam() == Path::nv || is_selection()) return;
  problem.c.type = problem.d.type = input();
  EXPECT_TRUE(passes_by_all(config(), problem, {.in_place = true}));
}

// Rows, or matrices, at a time, because the workspace doesn't hold more; the last part is smaller.
TEST_P(RowReductions, TwoPassesInParts) {
  const Config two_pass = with(config(), RowStrategy::two_pass);
  Problem problem =
      reduced({5 * two_pass.tile_m + 3u, 30, 24}, RowOp::layer_norm, DataType::f16, DataType::f16);
  problem.a.type = problem.b.type = problem.c.type = input();
  problem.d.type = problem.aux.type = input() == DataType::f32 ? DataType::f16 : input();
  problem.epilogue.beta = 0.5f;
  problem.epilogue.bias = Bias::along_m;
  problem.epilogue.aux = true;
  problem.max_workspace_bytes = std::uint64_t{2} * two_pass.tile_m * 32 * 4;
  for (const Layout a : {Layout::row_major, Layout::col_major}) {
    if (is_selection() && a == Layout::col_major) continue;
    problem.a.layout = a;
    if (GetParam() != Path::nv) problem.c.layout = problem.d.layout = problem.aux.layout = a;
    problem.batch = 1;
    EXPECT_TRUE(passes_gates(two_pass, with_padding(problem)));
    problem.batch = 2;
    problem.epilogue.bias_batch_stride = problem.m;
    EXPECT_TRUE(passes_gates(two_pass, with_padding(problem)));
    problem.epilogue.bias_batch_stride = 0;
  }
  problem.c.layout = problem.d.layout = problem.aux.layout = Layout::row_major;
  problem.m = 8;
  problem.batch = 13;
  problem.row_reduction = RowReduction{.op = RowOp::sum};
  problem.max_workspace_bytes = 5 * 8 * 32 * 4;
  EXPECT_TRUE(passes_gates(two_pass, with_padding(problem)));
}

TEST_P(RowReductions, SlicesOfKInTwoPasses) {
  for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver,
                                   ReductionMode::device_barrier}) {
    if (GetParam() == Path::nv && mode != ReductionMode::two_dispatches) continue;
    const Config two_pass = sliced(with(config(), RowStrategy::two_pass), 3, mode);
    for (const DataType output : {DataType::f32, DataType::bf16}) {
      if (GetParam() == Path::nv && output != DataType::f32) continue;
      if (is_selection() && output == DataType::f32) continue;
      EXPECT_TRUE(passes_gates(two_pass, reduced({17, 45, 200}, RowOp::rms_norm, input(), output)));
    }
  }
}

// K = 0: rows of the epilogue alone.
TEST_P(RowReductions, NoProducts) {
  Problem problem = reduced({6, 40, 0}, RowOp::layer_norm, input());
  problem.c.type = DataType::f32;
  problem.epilogue.beta = 2.0f;
  EXPECT_TRUE(passes_by_all(config(), problem));
}

// The spacing of f32 at the mean is a fifth of the deviation.
TEST_P(RowReductions, LargeMean) {
  struct Values {
    double mean, step;
  };
  for (const Values values : {Values{1e4, 1e-3}, Values{1e7, 1.0}}) {
    for (const RowOp op : {RowOp::layer_norm, RowOp::variance}) {
      if (is_selection() && (op == RowOp::layer_norm) == (values.mean > 1e6)) continue;
      Problem problem = reduced({4, 2 * config().tile_n - 3u, 1}, op, input());
      problem.c.type = DataType::f32;
      problem.epilogue.beta = 1.0f;
      problem.row_reduction->eps = op == RowOp::layer_norm ? std::optional(0.0f) : std::nullopt;
      const auto value = [values](std::uint64_t j) {
        return double{
            static_cast<float>(values.mean + values.step * static_cast<double>(j * 7 % 16))};
      };
      const auto n = static_cast<double>(problem.n);
      double mean = 0.0, variance = 0.0;
      for (std::uint64_t j = 0; j < problem.n; ++j) mean += value(j) / n;
      for (std::uint64_t j = 0; j < problem.n; ++j) variance += std::pow(value(j) - mean, 2) / n;
      for (const RowStrategy strategy : all_strategies) {
        const Config by = with(config(), strategy);
        if (!is_legal_here(by, problem)) continue;
        Trial trial(problem, Fill::random);
        for (std::uint64_t j = 0; j < problem.n; ++j) {
          trial.set(OperandId::b, 0, j, 0.0);
          for (std::uint64_t i = 0; i < 4; ++i) trial.set(OperandId::c, i, j, value(j));
        }
        ASSERT_TRUE(trial.run(by)) << describe(by, problem);
        EXPECT_TRUE(trial.is_within_bound()) << describe(by, problem);
        if (op == RowOp::variance) {
          EXPECT_NEAR(trial.row_value(2) / variance, 1.0, 1e-5) << describe(by, problem);
          continue;
        }
        for (std::uint64_t j = 0; j < problem.n; ++j) {
          ASSERT_NEAR(trial.d(1, j), (value(j) - mean) / std::sqrt(variance), 1e-5)
              << j << " " << describe(by, problem);
        }
      }
    }
  }
}

// Row 1 holds what is named, in one column or all; rows 0 and 2 are ordinary, and stay so.
TEST_P(RowReductions, WhatIsNotANumber) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::uint64_t n = config().tile_n + 9u;
  for (const RowOp op : all_ops) {
    // One of each kind, and the logarithm of what may be infinite.
    const bool has_a_kind = op == RowOp::rms_norm || op == RowOp::layer_norm ||
                            op == RowOp::softmax || op == RowOp::logsumexp || op == RowOp::max ||
                            op == RowOp::quantise || op == RowOp::amax;
    if (on_cpu() && !is_nightly() && !has_a_kind) continue;
    if (is_selection() && op != RowOp::softmax && op != RowOp::max) continue;
    Problem problem = reduced({3, n, 4}, op, input());
    problem.c.type = DataType::f32;
    problem.epilogue.beta = 1.0f;
    for (const RowStrategy strategy : all_strategies) {
      const Config by = with(config(), strategy);
      if (!is_legal_here(by, problem)) continue;
      for (const double what : {nan, inf, -inf}) {
        for (const bool everywhere : {false, true}) {
          Trial trial(problem, Fill::random, {.poison = std::byte{0x11}});
          if (everywhere) {
            for (std::uint64_t j = 0; j < n; ++j) trial.set(OperandId::c, 1, j, what);
          } else {
            trial.set(OperandId::c, 1, n - 2, what);
          }
          ASSERT_TRUE(trial.run(by)) << describe(by, problem);
          EXPECT_TRUE(trial.is_within_bound())
              << what << (everywhere ? " everywhere\n" : "\n") << describe(by, problem);
        }
      }
    }
  }
}

// A row of zeros is 0 / eps, and with eps = 0 not a number.
TEST_P(RowReductions, ZeroRows) {
  for (const RowOp op : {RowOp::l2_normalize, RowOp::rms_norm, RowOp::layer_norm}) {
    if (is_selection() && op != RowOp::l2_normalize) continue;
    for (const float eps : {1e-12f, 0.0f}) {
      Problem problem = reduced({3, 33, 4}, op, input());
      problem.row_reduction->eps = eps;
      for (const RowStrategy strategy : {RowStrategy::two_pass, RowStrategy::recompute}) {
        const Config by = with(config(), strategy);
        if (!is_legal_here(by, problem)) continue;
        Trial trial(problem, Fill::random, {.poison = std::byte{0x11}});
        for (std::uint64_t k = 0; k < 4; ++k) trial.set(OperandId::a, 1, k, 0.0);
        ASSERT_TRUE(trial.run(by));
        for (std::uint64_t j = 0; j < 33; ++j) {
          const bool right = eps == 0.0f ? std::isnan(trial.d(1, j)) : trial.d(1, j) == 0.0;
          EXPECT_TRUE(right) << trial.d(1, j) << ' ' << describe(by, problem);
          EXPECT_TRUE(std::isfinite(trial.d(2, j)));
        }
      }
    }
  }
}

// Sums that are exact say that every element is counted once; means and variances of powers of two
// of integers are exact, too.
TEST_P(RowReductions, ExactStatistics) {
  for (const RowOp op : {RowOp::sum, RowOp::max, RowOp::mean, RowOp::variance, RowOp::amax}) {
    if (is_selection() && op != RowOp::sum) continue;
    for (const RowStrategy strategy : all_strategies) {
      Problem problem = reduced({9, 64, 8}, op, input());
      const Config by = with(config(), strategy);
      if (!is_legal_here(by, problem)) continue;
      Trial trial(problem, Fill::integers);
      ASSERT_TRUE(trial.run(by));
      EXPECT_TRUE(trial.is_exact()) << describe(by, problem);
    }
  }
}

// Panels whose workgroups give up at once, or wait for more than there are: the dispatches behind
// do the work, with the same bits, and the device is not asked again.
TEST_P(RowReductions, PanelsThatGiveUp) {
  if (GetParam() == Path::nv) GTEST_SKIP() << "path nv has no panels";
  for (const std::uint32_t spin_limit : {0u, 1u, 100u}) {
    for (const bool in_place : {false, true}) {
      const std::unique_ptr<headless::Runner> own = another_runner();
      Config panel = with(config(), RowStrategy::panel);
      Problem problem = reduced({3 * panel.tile_m + 1u, 9 * panel.tile_n - 3u, 24}, RowOp::softmax,
                                input(), input());
      problem.epilogue.beta = 0.5f;
      problem.c.type = input();
      panel.spin_limit = spin_limit;
      Trial trial(problem, Fill::random, {.in_place = in_place, .on = own.get()});
      ASSERT_TRUE(trial.run(with(config(), RowStrategy::recompute)));
      const auto plan = own->context().plan(problem, panel);
      ASSERT_TRUE(succeeds(plan));
      EXPECT_TRUE(trial.repeats(*plan)) << describe(panel, problem);
      // Recorded once more, it doesn't try.
      EXPECT_TRUE(trial.repeats(*plan)) << describe(panel, problem);
      if (own->context().barrier_aborts() != 0) {
        EXPECT_TRUE(fails_with(own->context().plan(problem, panel), Status::unsupported,
                               {"rows is panel", "gave up"}));
      } else {
        // The first one there of nine tiles can't have heard of the others.
        EXPECT_FALSE(on_cpu() && spin_limit == 0) << "nobody gave up";
      }
    }
  }
}

}  // namespace
}  // namespace vkgemm::test
