// Products of s8: exact, in every loop that has them, and with everything that composes with a
// product.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "device/caps.hpp"
#include "direct.hpp"
#include "harness.hpp"
#include "kernels/main_loop.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr std::uint64_t deepest = 131071;

class Integers : public EachPath {
 protected:
  void SetUp() override {
    if (!loads(caps(), input_of(DataType::s8)))
      GTEST_SKIP() << caps().name << " has no 8-bit arithmetic";
    VKGEMM_SKIP_IF(why_skip(GetParam(), DataType::s8));
    configs_ = of_each_loop([](const Config&) { return true; });
    ASSERT_FALSE(configs_.empty());
  }
  static bool takes(const Config& config, const Problem& problem) {
    return static_cast<bool>(runner().context().plan(problem, config));
  }
  static std::vector<Config> taking(const Problem& problem) {
    return of_each_loop([&](const Config& config) { return takes(config, problem); });
  }

  std::vector<Config> configs_;

 private:
  // All that fit; where compiling is slow, the first of each loop.
  template <typename Fits>
  static std::vector<Config> of_each_loop(Fits fits) {
    std::vector<Config> chosen;
    std::set<MainLoop> done;
    for (const Config& config : small_configs(GetParam(), DataType::s8)) {
      if (!fits(config) || (on_cpu() && !done.insert(config.main_loop()).second)) continue;
      chosen.push_back(config);
    }
    return chosen;
  }
};
VKGEMM_ON_EACH_PATH(Integers);

Problem sums(Shape shape) { return gemm(shape, DataType::s8, DataType::s32); }

Problem scaled(Shape shape, DataType output = DataType::f32) {
  Problem problem = gemm(shape, DataType::s8, output);
  problem.epilogue.row_scales = problem.epilogue.column_scales = Scales::shared;
  return problem;
}

// All values of s8, the sums bit for bit.
TEST_P(Integers, SumsAreExact) {
  int ran = 0;
  for (const Config& config : configs_) {
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        Problem problem = with_padding(sums({35, 70, 150}));
        problem.a.layout = a;
        problem.b.layout = b;
        problem.a.ld = (a == Layout::row_major ? problem.k : problem.m) + 3;
        problem.b.ld = (b == Layout::row_major ? problem.n : problem.k) + 5;
        if (is_left_out(config, problem) || !takes(config, problem)) continue;
        Trial trial(problem, Fill::random, {.shift = 3});
        ASSERT_TRUE(trial.run(config)) << describe(config, problem);
        EXPECT_TRUE(trial.is_exact()) << describe(config, problem);
        EXPECT_TRUE(trial.repeats(config));
        ++ran;
      }
    }
  }
  EXPECT_GT(ran, 0);
}

// The largest sum there can be, and one that f32 would round: 2^24 + 1.
TEST_P(Integers, DeepSumsFitS32) {
  const Config& config = configs_.front();
  Problem problem = sums({2, 17, deepest});
  problem.b.layout = Layout::col_major;
  Trial trial(problem, Fill::integers);
  for (std::uint64_t k = 0; k < deepest; ++k) {
    trial.set(OperandId::a, 0, k, -128.0);
    trial.set(OperandId::b, k, 0, -128.0);
    trial.set(OperandId::b, k, 1, k <= 1024 ? (k == 0 ? -1.0 : -128.0) : 0.0);
    trial.set(OperandId::a, 1, k, k == 0 ? -1.0 : -128.0);
  }
  ASSERT_TRUE(trial.run(config)) << describe(config, problem);
  EXPECT_EQ(trial.d(0, 0), static_cast<double>(deepest) * 16384.0);
  EXPECT_EQ(trial.d(1, 1), 0x1p24 + 1.0);
  EXPECT_TRUE(trial.is_exact());
}

// Slices are added as integers: any number of them gives the same bits.
TEST_P(Integers, SlicesAddExactly) {
  int offered = 0;
  for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver}) {
    for (Config config : configs_) {
      if (!descriptor(config).shows_stores && mode != ReductionMode::two_dispatches) continue;
      config.slices = 3;
      config.reduction_mode = mode;
      const Problem problem = sums({33, 65, 32 * config.tile_k});
      if (!takes(config, problem)) continue;
      ++offered;
      if (is_left_out(config, problem)) continue;
      Trial trial(problem, Fill::random);
      ASSERT_TRUE(trial.run(config)) << describe(config, problem);
      EXPECT_TRUE(trial.is_exact()) << describe(config, problem);
    }
  }
  EXPECT_GT(offered, 1);
}

// Factors of rows and columns before the rest of the epilogue, in both directions of D.
TEST_P(Integers, ScalesAndTheWholeEpilogue) {
  int ran = 0;
  for (const Config& config : configs_) {
    for (const DataType output : {DataType::f16, DataType::f32}) {
      for (const Layout layout : {Layout::row_major, Layout::col_major}) {
        Problem problem = scaled({35, 70, 150}, output);
        problem.c.type = problem.aux.type = DataType::f32;
        problem.epilogue.alpha = 0.25f;
        problem.epilogue.beta = 2.0f;
        problem.epilogue.bias = Bias::along_n;
        problem.epilogue.activation = Activation::relu;
        problem.epilogue.aux = true;
        for (Matrix* matrix : {&problem.c, &problem.d, &problem.aux}) matrix->layout = layout;
        if (!takes(config, problem)) continue;
        EXPECT_TRUE(passes_gates(config, problem)) << to_string(layout);
        ++ran;
      }
    }
  }
  EXPECT_GE(ran, 4);
}

TEST_P(Integers, EachMatrixHasItsScales) {
  const Config& config = configs_.front();
  for (const auto& [rows, columns] : {std::pair{Scales::per_matrix, Scales::shared},
                                      {Scales::shared, Scales::per_matrix},
                                      {Scales::none, Scales::per_matrix},
                                      {Scales::per_matrix, Scales::none}}) {
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      Problem problem = scaled({19, 37, 70});
      problem.batch = 3;
      problem.d.layout = layout;
      problem.epilogue.row_scales = rows;
      problem.epilogue.column_scales = columns;
      EXPECT_TRUE(passes_gates(config, problem)) << to_string(rows) << ", " << to_string(columns);
    }
  }
}

// With gates, groups and row reductions, as floats have them.
TEST_P(Integers, Compose) {
  std::set<std::string> ran;
  for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
    Problem gated = scaled({33, 40, 96}, DataType::f16);
    gated.epilogue.bias = Bias::along_n;
    gated.gated = Gated{.gate = Gate::reglu, .b = b};
    for (const Config& config : taking(gated)) {
      EXPECT_TRUE(passes_gates(config, gated)) << to_string(b);
      ran.insert(std::string(to_string(b)));
    }
  }
  for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
    Problem grouped = scaled({70, 40, 96});
    if (along == GroupAlong::m) grouped.epilogue.column_scales = Scales::per_matrix;
    if (along == GroupAlong::k) grouped.epilogue.row_scales = Scales::per_matrix;
    grouped.grouping =
        Grouping{.groups = 3,
                 .along = along,
                 .b = along == GroupAlong::m ? GroupedB::per_group : GroupedB::shared};
    for (const Config& config : taking(grouped)) {
      EXPECT_TRUE(passes_gates(config, grouped, {.offsets = {3, 3, 40, 70}})) << to_string(along);
      ran.insert(std::string(to_string(along)));
    }
  }
  Problem rows = scaled({35, 40, 96});
  rows.row_reduction = RowReduction{.op = RowOp::softmax, .store_d = true};
  for (Config config : configs_) {
    config.rows = RowStrategy::two_pass;
    if (!takes(config, rows)) continue;
    EXPECT_TRUE(passes_gates(config, rows));
    ran.insert("rows");
  }
  EXPECT_EQ(ran, (std::set<std::string>{"halves", "separate", "interleaved", "m", "k", "rows"}));
}

// An empty sum has no factors: K = 0, and groups of K that hold nothing.
TEST_P(Integers, EmptySumsIgnoreScales) {
  const Config& config = configs_.front();
  Problem problem = scaled({8, 16, 32});
  problem.epilogue.row_scales = Scales::shared;
  problem.grouping = Grouping{.groups = 2, .along = GroupAlong::k};
  Trial trial(problem, Fill::integers, {.offsets = {0, 0, 32}});
  trial.set(OperandId::row_scales, 0, 0, std::numeric_limits<double>::infinity());
  ASSERT_TRUE(trial.run(config));
  EXPECT_EQ(trial.d(0, 0, 0), 0.0);
  EXPECT_TRUE(std::isnan(trial.d(0, 0, 1)) || std::isinf(trial.d(0, 0, 1)));
}

// Scales are of every type of input.
TEST_P(Integers, FloatsHaveScalesToo) {
  for (const DataType type : inputs_of(GetParam())) {
    if (type == DataType::s8) continue;
    Problem problem = gemm({35, 70, 64}, type);
    problem.epilogue.row_scales = problem.epilogue.column_scales = Scales::shared;
    EXPECT_TRUE(passes_gates(small_configs(GetParam(), type).front(), problem));
  }
}

// NaN and infinities of scales reach D.
TEST_P(Integers, ScalesPropagate) {
  const Config& config = configs_.front();
  Problem problem = scaled({8, 16, 32});
  Trial trial(problem, Fill::integers, {.poison = std::byte{0}});
  trial.set(OperandId::row_scales, 2, 0, nan);
  trial.set(OperandId::column_scales, 0, 3, std::numeric_limits<double>::infinity());
  trial.set(OperandId::a, 1, 0, 120.0);
  trial.set(OperandId::b, 0, 3, 120.0);
  ASSERT_TRUE(trial.run(config));
  EXPECT_TRUE(std::isnan(trial.d(2, 0)));
  EXPECT_TRUE(std::isinf(trial.d(1, 3)));
  EXPECT_TRUE(trial.is_within_bound());
}

}  // namespace
}  // namespace vkgemm::test
