// Split-K: slices of K by separate workgroups, added in order. The tests of waiting for one another
// stand in device_barrier_test.cpp.
#include <array>

#include "harness.hpp"
#include "kernels/dispatch_plan.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "runtime/plan_internal.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

// 1·2 and 2·2, 256 times, recorded one after the other.
void expect_workspace_may_be_used_again(const Config& config, DataType input) {
  const Problem problem = gemm({32, 32, 256}, input);
  const auto plan = context().plan(problem, config);
  ASSERT_TRUE(succeeds(plan));
  const PerOperand<std::uint64_t> bytes = operand_bytes(problem);
  auto ones = runner().allocate(bytes[OperandId::a]);
  auto other = runner().allocate(bytes[OperandId::b]);
  auto workspace = runner().allocate(plan->workspace_bytes());
  std::array<headless::Buffer, 2> results;
  ASSERT_TRUE(succeeds(ones) && succeeds(other) && succeeds(workspace));
  // 1 and 2 in the input's type, twice if it has two bytes.
  const std::uint32_t one = input == DataType::f16    ? 0x3c003c00u
                            : input == DataType::bf16 ? 0x3f803f80u
                                                      : 0x3f800000u;
  const std::uint32_t two = input == DataType::f32 ? 0x40000000u : 0x40004000u;
  ASSERT_TRUE(succeeds(runner().fill(*ones, one)));
  ASSERT_TRUE(succeeds(runner().fill(*other, two)));
  for (headless::Buffer& result : results) {
    auto made = runner().allocate(bytes[OperandId::d]);
    ASSERT_TRUE(succeeds(made));
    result = std::move(*made);
  }
  ASSERT_TRUE(succeeds(runner().submit([&](VkCommandBuffer commands) {
    Operands operands{.a = ones->span(),
                      .b = other->span(),
                      .d = results[0].span(),
                      .workspace = workspace->span()};
    if (auto recorded = plan->record(commands, operands); !recorded) return recorded;
    operands.a = other->span();
    operands.d = results[1].span();
    return plan->record(commands, operands);
  })));
  for (const std::size_t i : {0u, 1u}) {
    std::vector<float> values(bytes[OperandId::d] / sizeof(float));
    ASSERT_TRUE(succeeds(runner().download(results[i], 0, values.data(), bytes[OperandId::d])));
    for (const float value : values) ASSERT_EQ(value, i == 0 ? 512.0f : 1024.0f);
  }
}

class SplitK : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }

  // The ways to add the slices on this path.
  static std::vector<ReductionMode> modes() {
    if (GetParam() == Path::nv) return {ReductionMode::two_dispatches};
    return {ReductionMode::two_dispatches, ReductionMode::last_arriver,
            ReductionMode::device_barrier};
  }
  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config(std::uint32_t slices, ReductionMode mode = ReductionMode::two_dispatches) const {
    return sliced(small_configs(GetParam(), input()).front(), slices, mode);
  }

  // All reduction modes pass, and with the same bits.
  testing::AssertionResult passes_in_all_modes(const Config& plain, std::uint32_t slices,
                                               const Problem& problem,
                                               const TrialOptions& options = {}) const {
    const Config first = sliced(plain, slices);
    if (is_left_out(first, problem)) return testing::AssertionSuccess();
    if (auto passed = passes_gates(first, problem, options); !passed) return passed;
    Trial trial(problem, Fill::random, options);
    for (const ReductionMode mode : modes()) {
      const Config config = sliced(plain, slices, mode);
      auto same = mode == modes().front() ? trial.run(config) : trial.repeats(config);
      if (!same) return same << "\n  " << describe(config, problem);
    }
    return testing::AssertionSuccess();
  }
};
VKGEMM_ON_EACH_PATH(SplitK);

// More slices than there are steps of K, too: the last ones are empty.
TEST_P(SplitK, AnyNumberOfSlicesOfAnyDepth) {
  const std::uint64_t step = config(1).tile_k;
  for (const std::uint32_t slices : {2u, 3u, 7u, 64u, 512u}) {
    for (const std::uint64_t k :
         {std::uint64_t{0}, std::uint64_t{1}, step, 5 * step + 3, 9 * step}) {
      EXPECT_TRUE(passes_in_all_modes(config(1), slices, with_padding(gemm({19, 21, k}, input()))));
    }
  }
}

// Reduction modes differ only after the product: where compiling is slow, one configuration of each
// type and two layouts stand for all.
TEST_P(SplitK, EveryConfiguration) {
  for (const DataType type : inputs_of(GetParam())) {
    bool all_modes = true;
    std::size_t turn = 0;
    for (const Config& plain : small_configs(GetParam(), type)) {
      // Every second one of path khr, rings among them.
      if (++turn % 2 == 0 && on_cpu() && GetParam() == Path::khr) continue;
      const Problem problem = with_padding(gemm({33, 35, 7 * plain.tile_k + 8}, type), 8, true);
      EXPECT_TRUE(all_modes ? passes_in_all_modes(plain, 3, problem)
                            : passes_gates(sliced(plain, 3), problem));
      all_modes = !on_cpu();
    }
  }
}

TEST_P(SplitK, EveryLayout) {
  for (const Layout a : {Layout::row_major, Layout::col_major}) {
    for (const Layout b : {Layout::row_major, Layout::col_major}) {
      for (const Layout d : {Layout::row_major, Layout::col_major}) {
        Problem problem = gemm({18, 33, 100}, input());
        problem.a.layout = a;
        problem.b.layout = b;
        problem.c.layout = problem.d.layout = problem.aux.layout = d;
        problem.epilogue.beta = 0.5f;
        problem = with_padding(problem);
        const bool all_modes = !on_cpu() || (a == b && b == d);
        EXPECT_TRUE(all_modes ? passes_in_all_modes(config(1), 4, problem)
                              : passes_gates(config(4), problem));
      }
    }
  }
}

// The whole epilogue runs after the sum: on every path with every type of C, D, aux and bias.
TEST_P(SplitK, EpilogueAfterTheSum) {
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
    for (const bool aligned : {false, true}) {
      Problem problem = gemm({20, 40, 130}, input(), type);
      problem.c.type = problem.aux.type = problem.epilogue.bias_type = type;
      problem.batch = 3;
      const DataType bias_type = problem.epilogue.bias_type;
      problem.epilogue = oracle::heavy_epilogue();
      problem.epilogue.bias_type = bias_type;
      // All paths share this code: where compiling is slow, khr takes one alignment of each type.
      if (on_cpu() && GetParam() == Path::khr && aligned != (type == DataType::bf16)) continue;
      EXPECT_TRUE(passes_in_all_modes(config(1), 5, with_padding(problem, 8, aligned)));
    }
  }
}

// Sums of integers are exact in any order. What differs then is the epilogue: that of the main loop
// and that of the kernel that adds slices.
TEST_P(SplitK, SameBitsAsWithoutSlices) {
  const auto same_bits = [&](Activation activation) -> testing::AssertionResult {
    Problem problem = gemm({33, 24, 5 * config(1).tile_k + 3}, input());
    problem.epilogue = oracle::heavy_epilogue();
    problem.epilogue.alpha = 0.3f;  // rounds, as a product and within a fused multiply-add
    problem.epilogue.beta = 0.7f;
    problem.epilogue.activation = activation;
    Trial trial(with_padding(problem, 8, true), Fill::integers);
    if (auto ran = trial.run(config(1)); !ran) return ran;
    for (const ReductionMode mode : modes()) {
      if (auto same = trial.repeats(config(3, mode)); !same) {
        return same << "\n  " << describe(config(3, mode), problem);
      }
    }
    return testing::AssertionSuccess();
  };
  EXPECT_TRUE(same_bits(Activation::none));
  EXPECT_TRUE(same_bits(Activation::gelu_erf));
  if (on_cpu() && !is_nightly()) return;  // compiles slowly
  EXPECT_TRUE(same_bits(Activation::gelu_tanh));
  EXPECT_TRUE(same_bits(Activation::silu));
}

TEST_P(SplitK, InPlace) {
  Problem problem = gemm({17, 19, 70}, input(), DataType::f32);
  problem.c.type = DataType::f32;
  problem.epilogue.beta = -0.5f;
  EXPECT_TRUE(passes_in_all_modes(config(1), 3, problem, {.in_place = true}));
}

// A 16×4096 by a column-major 4096×16, in 64 slices.
TEST_P(SplitK, LongAndThin) {
  Problem problem = gemm({16, 16, 4096}, input(), input());
  problem.b.layout = Layout::col_major;
  EXPECT_TRUE(passes_in_all_modes(config(1), 64, problem));
}

TEST_P(SplitK, WorkspaceIsAskedForAndChecked) {
  const auto plan = context().plan(gemm({10, 9, 64}, input()), config(4));
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(plan->workspace_bytes(), 2048u) << "4 slices of 10 rows of 12 values, rounded up";
  EXPECT_NE(plan->explain().find("4 slices of K"), std::string::npos);

  std::array<headless::Buffer, 4> buffers;
  for (headless::Buffer& buffer : buffers) {
    auto made = runner().allocate(1 << 16);
    ASSERT_TRUE(succeeds(made));
    buffer = std::move(*made);
  }
  Operands operands{.a = buffers[0].span(),
                    .b = buffers[1].span(),
                    .d = buffers[2].span(),
                    .workspace = buffers[3].span(0, plan->workspace_bytes())};
  const auto record = [&] {
    return runner().submit(
        [&](VkCommandBuffer commands) { return plan->record(commands, operands); });
  };
  EXPECT_TRUE(succeeds(record()));
  --operands.workspace.bytes;
  EXPECT_TRUE(fails_with(record(), Status::workspace_too_small, {"workspace", "2047", "2048"}));
  operands.workspace = buffers[3].span(128, plan->workspace_bytes());
  EXPECT_TRUE(fails_with(record(), Status::misaligned, {"workspace", "256"}));
  operands.workspace = {};
  EXPECT_TRUE(fails_with(record(), Status::workspace_too_small, {"workspace"}));
}

// One workspace for two recordings in a row: the second one waits for the first.
TEST_P(SplitK, WorkspaceMayBeUsedAgain) {
  for (const ReductionMode mode : modes())
    expect_workspace_may_be_used_again(config(8, mode), input());
}

}  // namespace
}  // namespace vkgemm::test
