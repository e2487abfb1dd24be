// Dispatches that are cut because they would take too long: the same bits, also if each is
// submitted by itself.
#include <limits>
#include <set>

#include "harness.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm::test {
namespace {

constexpr double too_short_ms = 1e-6;  // as many pieces as can be

class DispatchLimit : public EachPath {};
VKGEMM_ON_EACH_PATH(DispatchLimit);

// The test of a configuration, or of the one that vkgemm chooses.
testing::AssertionResult is_the_same_in_pieces(Problem problem, const Config* config,
                                               std::vector<std::int64_t> offsets = {}) {
  const auto plan = [&] {
    return config != nullptr ? context().plan(problem, *config) : context().plan(problem);
  };
  const auto whole = plan();
  if (!whole) return succeeds(whole);
  problem.max_dispatch_ms = too_short_ms;
  const auto cut = plan();
  if (!cut) return succeeds(cut);
  if (cut->dispatch_count() <= whole->dispatch_count()) {
    return testing::AssertionFailure() << "not cut: " << cut->explain();
  }
  const std::string says = "max_dispatch_ms 1e-06: " + std::to_string(cut->dispatch_count());
  if (cut->explain().find(says) == std::string::npos) {
    return testing::AssertionFailure() << cut->explain() << "does not say " << says;
  }
  if (!(whole->config() == cut->config())) {
    return testing::AssertionFailure() << "another configuration: " << cut->explain();
  }
  Trial trial(problem, Fill::integers, {.in_pieces = true, .offsets = std::move(offsets)});
  if (auto ran = trial.run(*whole); !ran) return ran;
  if (auto right = problem.row_reduction ? trial.is_within_bound() : trial.is_exact(); !right) {
    return right;
  }
  return trial.repeats(*cut);
}

TEST_P(DispatchLimit, Products) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = with_padding(
      gemm({5 * config.tile_m - 1, 7 * config.tile_n + 1, 2 * config.tile_k + 1}, input));
  if (!on_cpu()) problem.m *= 50;
  EXPECT_TRUE(is_the_same_in_pieces(problem, &config)) << "tiles";
  problem = with_padding(gemm({config.tile_m - 1, 1, 5}, input));
  problem.batch = on_cpu() ? 19 : 10000;
  EXPECT_TRUE(is_the_same_in_pieces(problem, &config)) << "batch";
}

TEST_P(DispatchLimit, SlicesOfK) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  Config config = small_configs(GetParam(), input).front();
  Problem problem = gemm({5 * config.tile_m, 7 * config.tile_n - 1, 4 * config.tile_k}, input);
  if (!on_cpu()) problem.m *= 50;
  problem.epilogue.bias = Bias::along_n;
  config.slices = 3;
  EXPECT_TRUE(is_the_same_in_pieces(problem, &config));
  if (GetParam() == Path::nv) return;
  config.reduction_mode = ReductionMode::last_arriver;
  EXPECT_TRUE(is_the_same_in_pieces(problem, &config));
}

TEST_P(DispatchLimit, Groups) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = gemm({5 * config.tile_m, 3 * config.tile_n, config.tile_k}, input);
  if (!on_cpu()) problem.n *= 100;
  problem.grouping = Grouping{.groups = 3};
  const auto m = static_cast<std::int64_t>(problem.m);
  EXPECT_TRUE(is_the_same_in_pieces(problem, &config, {0, 1, 1, m}));
}

// By the first candidate of each strategy.
TEST_P(DispatchLimit, Rows) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  Problem problem = gemm({on_cpu() ? 1000U : 100000U, 200, 24}, inputs_of(GetParam()).front());
  for (const RowOp op : {RowOp::max, RowOp::rms_norm}) {
    if (on_cpu() && op != RowOp::max && GetParam() != Path::fma) break;  // compiles slowly
    problem.row_reduction = RowReduction{.op = op};
    const auto candidates = context().candidates(problem);
    ASSERT_TRUE(succeeds(candidates));
    std::set<RowStrategy> tried;
    for (const Candidate& candidate : *candidates) {
      const Config& config = candidate.config;
      if (config.path() != GetParam() || !tried.insert(config.rows).second) continue;
      if (is_left_out(config, problem)) continue;
      EXPECT_TRUE(is_the_same_in_pieces(problem, &config)) << describe(config, problem);
    }
    EXPECT_FALSE(tried.empty());
  }
}

// As an application passes back what it measured.
TEST_P(DispatchLimit, TheEstimateIsScaled) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = gemm({5 * config.tile_m, 7 * config.tile_n, config.tile_k}, input);
  if (!on_cpu()) problem.m *= 50;
  const auto whole = context().plan(problem, config);
  ASSERT_TRUE(succeeds(whole));
  ASSERT_TRUE(whole->estimated_ms());
  EXPECT_GT(*whole->estimated_ms(), 0.0);
  problem.max_dispatch_ms = *whole->estimated_ms();
  const auto plan_with = [&](double scale) {
    problem.estimate_scale = scale;
    const auto plan = context().plan(problem, config);
    EXPECT_TRUE(succeeds(plan));
    EXPECT_EQ(plan->estimated_ms(), whole->estimated_ms());
    return *plan;
  };
  EXPECT_EQ(plan_with(1.0).dispatch_count(), 1u);
  const Plan slow = plan_with(4.0);
  EXPECT_GT(slow.dispatch_count(), 1u);
  EXPECT_NE(slow.explain().find(" by the estimate times estimate_scale 4"), std::string::npos)
      << slow.explain();
  const Plan unknown = plan_with(std::numeric_limits<double>::infinity());
  EXPECT_GE(unknown.dispatch_count(), slow.dispatch_count());
  EXPECT_NE(unknown.explain().find("as short as can be: estimate_scale is not known"),
            std::string::npos)
      << unknown.explain();
  // explain() names the source of all estimates but measured ones.
  const bool measured = DeviceTables(caps())
                            .source_of_estimate(config, resolve(problem).value())
                            .starts_with("measured");
  EXPECT_EQ(slow.explain().find("the estimate rests on another device's times: derived: ") ==
                std::string::npos,
            measured)
      << slow.explain();
}

TEST_P(DispatchLimit, RangesThatThereAreNot) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const auto plan =
      context().plan(gemm({8, 8, 8}, input), small_configs(GetParam(), input).front());
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(plan->dispatch_count(), 1u);
  ASSERT_TRUE(succeeds(runner().submit([&](VkCommandBuffer commands) -> Result<void> {
    EXPECT_TRUE(fails_with(plan->record(commands, {}, {.first = 2}), Status::invalid_argument,
                           {"range.first is 2", "has 1 dispatch"}));
    EXPECT_TRUE(fails_with(plan->record(commands, {}, {.first = 1, .count = 1}),
                           Status::invalid_argument, {"range.count is 1", "has 1 dispatch"}));
    return {};
  })));
}

}  // namespace
}  // namespace vkgemm::test
