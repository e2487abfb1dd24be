// Awkward sizes, on few pipelines: shapes, leading dimensions and batches are parameters.
#include <algorithm>

#include "harness.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

class Shapes : public EachPath {};
VKGEMM_ON_EACH_PATH(Shapes);

// Sizes around multiples of the tile, and those of no relation to it.
TEST_P(Shapes, AroundTheTile) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  const std::uint64_t m = config.tile_m, n = config.tile_n;
  const std::uint64_t k = k_step(config);
  const Shape shapes[] = {
      {m + 1, n - 1, k - 1},
      {m - 1, n + 1, k + 1},
      {2 * m + 1, 2 * n + 1, 2 * k + 1},
      {1, 1, 1},
      {1, n + 1, k + 1},
      {m + 1, 1, 2 * k - 1},
      {m + 1, n + 1, 1},
      {31, 37, 41},
      {101, 3, 97},
      {2, 103, 7},
      {4 * m - 1, 3 * n + 2, 3},
      {3, 5 * n + 1, 4 * k + 1},
  };
  for (const Shape& shape : shapes) {
    EXPECT_TRUE(passes_gates(config, with_padding(gemm(shape, input)), {.shift = 1}));
  }
}

// K = 0 is the epilogue of beta * C alone, and A and B are not bound.
TEST_P(Shapes, KIsZero) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = with_padding(gemm({config.tile_m + 1u, config.tile_n + 1u, 0}, input));
  EXPECT_TRUE(passes_gates(config, problem)) << "zero";
  problem.epilogue.beta = -2.0f;
  problem.epilogue.bias = Bias::along_n;
  EXPECT_TRUE(passes_gates(config, problem)) << "beta * C + bias";
}

// M, N or batch of 0: success, and nothing is touched.
TEST_P(Shapes, NothingToDo) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const auto submitted = runner().submit([&](VkCommandBuffer commands) -> Result<void> {
    for (const Shape& shape : {Shape{0, 8, 8}, {8, 0, 8}, {0, 0, 0}}) {
      const auto plan = context().plan(gemm(shape));
      EXPECT_TRUE(succeeds(plan));
      if (!plan) return plan.error();
      EXPECT_EQ(plan->workspace_bytes(), 0u);
      EXPECT_NE(plan->explain().find("nothing to compute"), std::string::npos) << plan->explain();
      if (auto recorded = plan->record(commands, {}); !recorded) return recorded;
    }
    Problem problem = gemm({8, 8, 8});
    problem.batch = 0;
    const auto plan = context().plan(problem);
    if (!plan) return plan.error();
    return plan->record(commands, {});
  });
  EXPECT_TRUE(succeeds(submitted));
}

// Sizes from public test suites (oneDNN benchdnn, rocBLAS, ggml test-backend-ops, DeepBench,
// TritonBench). Large sizes are cut down on a CPU, along the dimension that stands for nothing.
struct PublicCase {
  Shape shape;
  Shape on_cpu;
  DataType type;
  const char* stresses;
};
constexpr PublicCase public_cases[] = {
    {{1, 1, 1}, {1, 1, 1}, DataType::f16, "smallest"},
    {{1, 200, 1}, {1, 200, 1}, DataType::f16, "K=1"},
    {{1, 1, 300}, {1, 1, 300}, DataType::f16, "dot product"},
    {{2, 47, 30}, {2, 47, 30}, DataType::f16, "all tails"},
    {{129, 127, 63}, {129, 127, 63}, DataType::f16, "tile+1 tile-1"},
    {{64, 32, 588}, {64, 31, 588}, DataType::f16, "im2col K"},
    {{8, 256, 2664}, {8, 65, 2664}, DataType::bf16, "K tail"},
    {{9, 16, 23040}, {9, 16, 23040}, DataType::f16, "long K"},
    {{16, 16, 4096}, {17, 16, 4093}, DataType::f32, "split-K example"},
    {{16, 16, 32768}, {17, 16, 32765}, DataType::f16, "longer K"},
    {{1, 12288, 4096}, {1, 511, 4095}, DataType::f16, "decode"},
    {{30, 28672, 4096}, {30, 67, 4095}, DataType::bf16, "gated pair"},
    {{8192, 30522, 768}, {65, 383, 767}, DataType::f16, "bias over a vocabulary"},
};

TEST_P(Shapes, FromPublicSuites) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  for (const PublicCase& test : public_cases) {
    const auto configs = small_configs(GetParam(), test.type);
    if (configs.empty()) continue;  // Combinations say what a path does not multiply
    const Shape shape = on_cpu() ? test.on_cpu : test.shape;
    const Problem problem = with_padding(gemm(shape, test.type));
    // Exact sums alone where the reference takes too long to run three times.
    if (shape.m * shape.n * shape.k > std::uint64_t{1} << 30) {
      const auto plan = plan_on(GetParam(), problem);
      ASSERT_TRUE(succeeds(plan)) << test.stresses;
      Trial trial(problem, Fill::integers);
      EXPECT_TRUE(trial.run(*plan)) << test.stresses;
      EXPECT_TRUE(trial.is_within_bound(oracle::Verify::sampled)) << test.stresses;
    } else {
      EXPECT_TRUE(passes_gates(configs.front(), problem)) << test.stresses;
    }
  }
}

// lda=503 ldb=604 ldd=505, as one of those suites has it; and a leading dimension far above the
// row.
TEST_P(Shapes, LeadingDimensions) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = on_cpu() ? gemm({125, 126, 127}, input) : gemm({500, 501, 502}, input);
  problem.a.ld = 503;
  problem.b.ld = 604;
  problem.d.ld = 505;
  for (Matrix* matrix : {&problem.a, &problem.b, &problem.d}) {
    matrix->alignment = size_in_bytes(matrix->type);
  }
  EXPECT_TRUE(passes_gates(config, problem, {.shift = 3}));
  problem.m = 3;
  problem.n = 5;
  problem.a.ld = problem.b.ld = 65537;
  problem.d.ld = 1000003;
  EXPECT_TRUE(passes_gates(config, problem, {.shift = 1}));
}

// --- batches
// ------------------------------------------------------------------------------------------

TEST_P(Shapes, BatchWithGaps) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = gemm({config.tile_m + 1u, config.tile_n + 3u, config.tile_k + 1u}, input);
  problem.batch = 5;
  problem.epilogue = {
      .beta = 1.0f, .bias = Bias::along_n, .bias_batch_stride = problem.n + 1, .aux = true};
  EXPECT_TRUE(passes_gates(config, with_padding(problem, 3), {.shift = 1}));
  problem.epilogue.bias_batch_stride = 0;
  EXPECT_TRUE(passes_gates(config, with_padding(problem, 3), {.shift = 1}));
}

// One A for all, one B for all, and C too.
TEST_P(Shapes, BatchSharesOperands) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = gemm({config.tile_m + 1u, config.tile_n + 3u, config.tile_k + 1u}, input);
  problem.batch = 3;
  problem = with_padding(problem);
  problem.a.batch_stride = 0;
  EXPECT_TRUE(passes_gates(config, problem)) << "A";
  problem.b.batch_stride = 0;
  EXPECT_TRUE(passes_gates(config, problem)) << "A and B";
  problem.a.batch_stride = std::nullopt;
  EXPECT_TRUE(passes_gates(config, problem)) << "B";
}

// Matrices side by side within common rows, as the heads of an attention layer lie.
TEST_P(Shapes, BatchSideBySide) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = with_padding(gemm({21, 9, 11}, input));
  problem.batch = 4;
  problem.a.ld = 4 * 11 + 1;
  problem.a.batch_stride = 11;
  problem.d.ld = 4 * 9 + 3;
  problem.d.batch_stride = 9;
  EXPECT_TRUE(passes_gates(config, problem));
}

// More matrices, and more tiles, than one dispatch takes.
TEST_P(Shapes, GridInChunks) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config = small_configs(GetParam(), input).front();
  Problem problem = with_padding(gemm({1, 1, 1}, input));
  problem.batch = 65535 + 7;
  for (Matrix* matrix : {&problem.a, &problem.b, &problem.d}) matrix->batch_stride = 3;
  EXPECT_TRUE(passes_gates(config, problem)) << "batch";

  const std::uint64_t limit = caps().limits.max_workgroup_count[0];
  if (limit > 65536) GTEST_SKIP() << "more tiles than a dispatch holds would fill the memory";
  problem = with_padding(gemm({1, (limit + 3) * config.tile_n - 1, 1}, input));
  EXPECT_TRUE(passes_gates(config, problem)) << "tiles";
}

}  // namespace
}  // namespace vkgemm::test
