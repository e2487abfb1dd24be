// Every configuration that Context::candidates offers here passes the gates.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "harness.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

class Candidates : public EachPath {};
VKGEMM_ON_EACH_PATH(Candidates);

// True if a CPU's driver compiles it in seconds, not in minutes: what one invocation of the main
// loop does is unrolled into the code of all the invocations that run together.
bool compiles_quickly(const Config& config) {
  const std::uint64_t work = std::uint64_t{config.tile_m} * config.tile_n * config.tile_k;
  return work / invocations(config) <= 256;
}

Problem problem_for(const Config& config, DataType input, Layout a, Layout b) {
  Problem problem = gemm({config.tile_m + 8u, 2 * config.tile_n + 8u, k_step(config) + 8}, input);
  problem.a.layout = a;
  problem.b.layout = b;
  problem.epilogue = {.alpha = 0.5f, .beta = -1.0f, .bias = Bias::along_n};
  return with_padding(problem, 8, true);
}

enum class Part : std::uint8_t { quick, slow, all };

void run_candidates(Path path, Part part, Layout a, Layout b) {
  for (const DataType input : inputs_of(path)) {
    const Matrix plain_a{.type = input, .layout = a};
    const Matrix plain_b{.type = input, .layout = b};
    // Large and small: rows of the tables may be for few rows or columns only.
    std::vector<Config> configs;
    for (const Shape& shape : {Shape{512, 512, 512}, {16, 512, 512}, {512, 16, 512}}) {
      Problem problem = gemm(shape, input);
      problem.a = plain_a;
      problem.b = plain_b;
      const auto candidates = context().candidates(problem);
      ASSERT_TRUE(succeeds(candidates));
      for (const Candidate& candidate : *candidates) {
        const Config& config = candidate.config;
        if (config.path() != path || std::ranges::find(configs, config) != configs.end()) continue;
        configs.push_back(config);
      }
    }
    EXPECT_FALSE(configs.empty()) << to_string(path) << ' ' << to_string(input);
    for (const Config& config : configs) {
      if (on_cpu() && part != Part::all && compiles_quickly(config) != (part == Part::quick)) {
        continue;
      }
      const auto start = std::chrono::steady_clock::now();
      EXPECT_TRUE(passes_gates(config, problem_for(config, input, a, b)));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      std::printf("%6.1f s  %s %s\n", took.count(), std::string(to_string(input)).c_str(),
                  to_string(config).c_str());
    }
  }
}

TEST_P(Candidates, PassTheGates) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  run_candidates(GetParam(), Part::quick, Layout::row_major, Layout::row_major);
}

TEST_P(Candidates, NightlySlowOnesPassTheGates) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  if (!on_cpu()) GTEST_SKIP() << "nothing is slow here";
  run_candidates(GetParam(), Part::slow, Layout::row_major, Layout::row_major);
}

// The other layouts. Each takes minutes: three tests, so that shards can share them.
TEST_P(Candidates, NightlyColumnMajorBPassTheGates) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  run_candidates(GetParam(), Part::all, Layout::row_major, Layout::col_major);
}
TEST_P(Candidates, NightlyColumnMajorAPassTheGates) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  run_candidates(GetParam(), Part::all, Layout::col_major, Layout::row_major);
}
TEST_P(Candidates, NightlyColumnMajorAAndBPassTheGates) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  run_candidates(GetParam(), Part::all, Layout::col_major, Layout::col_major);
}

// The configurations that the other tests use, all of them: among them every shape of matrix that
// a vendor lists, on devices that can do them.
TEST_P(Candidates, SmallConfigsPassTheGates) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  for (const Config& config : small_configs(GetParam(), input)) {
    EXPECT_TRUE(
        passes_gates(config, problem_for(config, input, Layout::row_major, Layout::col_major)));
  }
}

// --- rings of stages
// ------------------------------------------------------------------------------------

// The last k-tile, of which so many elements exist. Without `vectors` everything is loaded element
// by element, with them only operands whose rows end between two groups of 16 bytes are.
struct Tail {
  std::uint32_t elements;
  bool vectors;
};

testing::AssertionResult passes_at_depth(const Config& config, DataType input, Layout a, Layout b,
                                         std::uint64_t k_tiles, Tail tail) {
  const std::uint64_t k = k_tiles * config.tile_k + tail.elements;
  Problem problem = gemm({config.tile_m + 8u, config.tile_n, k}, input);
  problem.a.layout = a;
  problem.b.layout = b;
  problem = with_padding(problem, 8, tail.vectors);
  // An operand whose K is the outer direction can always be loaded 16 bytes at a time.
  const ResolvedProblem resolved = resolve(problem).value();
  const bool whole = k % 8 == 0;
  if (resolved.a.allows_vectors(16) != (tail.vectors && (whole || a == Layout::col_major)) ||
      resolved.b.allows_vectors(16) != (tail.vectors && (whole || b == Layout::row_major))) {
    return testing::AssertionFailure()
           << "not the loads that were meant\n  " << describe(config, problem);
  }
  return passes_gates(config, problem);
}

// True if the groups of 16 bytes of a k-tile divide over the workgroup (staging.glsl).
bool loads_evenly(const Config& config) {
  const std::uint32_t a = config.tile_m * config.tile_k / 8;
  const std::uint32_t b = config.tile_n * config.tile_k / 8;
  return a % invocations(config) + b % invocations(config) == 0;
}

// A ring begins and ends in more ways than one: every number of k-tiles up to where its unrolled
// loop has run twice and what follows it has run, without a tail and with one that ends in the
// lower half of a k-tile, between the halves, and in the upper half.
TEST_P(Candidates, EveryDepthOfARing) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  bool even = false, uneven = false;
  for (const DataType input : inputs_of(GetParam())) {
    for (const Config& config : small_configs(GetParam(), input)) {
      if (!is_ring(config)) continue;
      (loads_evenly(config) ? even : uneven) = true;
      const std::uint32_t half = config.tile_k / 2;
      for (const Tail tail :
           {Tail{0, true}, Tail{8, true}, Tail{half - 1, false}, Tail{half + 1, false}}) {
        for (std::uint64_t k_tiles = 0; k_tiles <= 8; ++k_tiles) {
          ASSERT_TRUE(
              passes_at_depth(config, input, Layout::row_major, Layout::row_major, k_tiles, tail));
        }
      }
    }
  }
  if (!even && !uneven) {
    GTEST_SKIP() << "path " << to_string(GetParam()) << " has no ring of stages here";
  }
  EXPECT_TRUE(!on_cpu() || (even && uneven)) << "loads of one kind only";
}

// Halves of a k-tile are stored by K, which is another direction in each layout.
void every_layout_of_a_ring(Path path) {
  bool found = false;
  const DataType input = inputs_of(path).front();
  std::size_t turn = 0;
  for (const Config& config : small_configs(path, input)) {
    if (!is_ring(config)) continue;
    found = true;
    for (const auto& [a, b] : {std::pair{Layout::row_major, Layout::col_major},
                               {Layout::col_major, Layout::row_major},
                               {Layout::col_major, Layout::col_major}}) {
      // Every layout on some ring, and every ring with some layout.
      if (++turn % 4 != 1 && on_cpu() && !is_nightly()) continue;
      for (const Tail tail : {Tail{0, true}, Tail{8, true}, Tail{config.tile_k / 2 + 1, true}}) {
        // Compiles slowly; without a tail it is what EveryDepthOfARing has.
        if (on_cpu() && (peels(config) ? tail.elements <= 8 : tail.elements == 0)) continue;
        for (const std::uint64_t k_tiles : {0u, 1u, 2u, 3u, 5u, 8u}) {
          ASSERT_TRUE(passes_at_depth(config, input, a, b, k_tiles, tail));
        }
      }
    }
  }
  if (!found) GTEST_SKIP() << "path " << to_string(path) << " has no ring of stages here";
}
TEST_P(Candidates, EveryLayoutOfARing) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  every_layout_of_a_ring(GetParam());
}

// A peeled loop begins and ends in as many ways, rotated or not.
TEST_P(Candidates, EveryDepthOfAPeeledLoop) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  int ran = 0;
  const DataType input = inputs_of(GetParam()).front();
  for (const Config& config : small_configs(GetParam(), input)) {
    if (config.main_loop() != MainLoop::khr || !peels(config)) continue;
    if (on_cpu() && ran != 0) break;  // each compiles slowly
    for (const bool rotate : {false, true}) {
      Config c = config;
      std::get<KhrLoop>(c.loop).rotate = rotate;
      for (const Tail tail : {Tail{0, true}, Tail{8, true}}) {
        for (const std::uint64_t k_tiles : {0u, 1u, 2u, 3u}) {
          ASSERT_TRUE(
              passes_at_depth(c, input, Layout::row_major, Layout::row_major, k_tiles, tail));
          ++ran;
        }
      }
    }
  }
  if (GetParam() != Path::khr) GTEST_SKIP() << "main loop khr alone is rotated";
  EXPECT_GT(ran, 0);
}

// N, K and the leading dimensions as constants of the pipeline.
TEST_P(Candidates, StaticShapes) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  Config config = small_configs(GetParam(), input).front();
  config.static_shape = true;
  EXPECT_TRUE(
      passes_gates(config, problem_for(config, input, Layout::row_major, Layout::row_major)));
}

// The library's choice when nobody says.
TEST_P(Candidates, TheChosenOneIsTheFirst) {
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Problem problem = gemm({33, 65, 17}, input);
  const auto candidates = context().candidates(problem);
  const auto plan = context().plan(problem);
  ASSERT_TRUE(succeeds(candidates));
  ASSERT_TRUE(succeeds(plan));
  ASSERT_FALSE(candidates->empty());
  EXPECT_EQ(plan->config(), candidates->front().config);
  EXPECT_NE(plan->explain().find(candidates->front().provenance), std::string::npos);
  const auto parsed = parse_config(to_string(plan->config()));
  ASSERT_TRUE(succeeds(parsed));
  EXPECT_EQ(*parsed, plan->config());
}

}  // namespace
}  // namespace vkgemm::test
