// Gated products: every gate, every arrangement of B, and what they compose with.
#include <cmath>
#include <limits>
#include <vector>

#include "harness.hpp"
#include "kernels/legality.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr Gate all_gates[] = {Gate::sigmoid_tanh, Gate::geglu_erf, Gate::geglu_tanh,
                              Gate::swiglu,       Gate::reglu,     Gate::glu};
constexpr GatedB all_arrangements[] = {GatedB::halves, GatedB::separate, GatedB::interleaved};

// Small ones that hold both halves; the first ones are the cheapest to compile.
constexpr std::string_view texts[] = {
    "khr:tile=16x16x16,fragment=8x8x8,subgroups=2x1,subgroup_size=8,subtiles=1,swizzle=2,peel=0",
    "khr:tile=16x32x16,fragment=16x16x16,subgroups=1x2,subgroup_size=8,swizzle=2,peel=0",
    // three subgroups: the loads of B do not divide over the workgroup
    "khr:tile=24x16x16,fragment=8x8x8,subgroups=3x1,subgroup_size=8,swizzle=2,peel=0",
    "khr:tile=16x16x16,fragment=8x16x16,subgroups=1x1,subgroup_size=8,subtiles=2,swizzle=2",
    "khr_ring:tile=16x16x16,fragment=8x8x8,subgroups=1x2,subgroup_size=8,swizzle=2,peel=0",
    "khr:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32,swizzle=2,peel=0",
    "khr_ring:tile=64x32x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,swizzle=2",
    "khr:tile=64x32x16,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=2,swizzle=2",
    "khr_ring:tile=48x48x32,fragment=16x16x16,subgroups=3x3,subgroup_size=32,swizzle=2",
    "khr:tile=32x32x32,fragment=16x16x16,subgroups=2x1,subgroup_size=64,swizzle=2",
    "khr:tile=32x32x32,fragment=8x16x16,subgroups=2x2,subgroup_size=16,subtiles=2,swizzle=2",
    "khr:tile=32x16x16,fragment=8x8x16,subgroups=2x2,subgroup_size=16,swizzle=2",
    "fma:tile=16x16x8,fragment=4x8,swizzle=2,peel=0",
    "skinny:tile=3x16x32,swizzle=2",  // for few rows
    "fma:tile=8x32x16,fragment=4x8,swizzle=2",
    "fma:tile=32x48x8,fragment=8x16,swizzle=3,peel=0",
    "skinny:tile=1x48x64",
};

std::vector<Config> gated_configs(Path path, DataType input) {
  Problem problem = gemm({64, 64, 64}, input);
  problem.gated = Gated{};
  std::vector<Config> legal;
  for (const std::string_view text : texts) {
    const Config config = parse_config(text).value();
    if (config.path() != path) continue;
    bool everywhere = true;
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        problem.a.layout = a;
        problem.b.layout = b;
        everywhere = everywhere && is_legal(config, resolve(problem).value(), target());
      }
    }
    if (everywhere) legal.push_back(config);
  }
  return legal;
}

Problem gated(Problem problem, GatedB b = GatedB::halves, Gate gate = Gate::reglu) {
  problem.gated = {.gate = gate, .b = b};
  return problem;
}

Problem with_bias_and_aux(Problem problem, Bias bias = Bias::along_n) {
  problem.epilogue.alpha = -0.5f;
  problem.epilogue.bias = bias;
  problem.epilogue.aux = true;
  return problem;
}

class GatedProduct : public EachPath {
 protected:
  void SetUp() override {
    VKGEMM_SKIP_IF(GetParam() == Path::nv ? "gated products are not built on path nv"
                                          : why_skip(GetParam()));
    ASSERT_FALSE(gated_configs(GetParam(), input()).empty());
  }

  DataType input() const { return inputs_of(GetParam()).front(); }
  // They are one piece of code for all paths, which a CPU takes long to compile.
  std::vector<Gate> gates() const {
    if (on_cpu() && GetParam() == Path::khr) return {Gate::sigmoid_tanh, Gate::geglu_tanh};
    return {std::begin(all_gates), std::end(all_gates)};
  }
  // Always the same pipeline for a gate.
  Problem with_every_gate(Shape shape, Gate gate) const {
    Problem problem = with_bias_and_aux(gated(gemm(shape, input()), GatedB::halves, gate));
    problem.epilogue.clamp_min = -1.0f;
    return with_padding(problem);
  }
  Config config() const { return gated_configs(GetParam(), input()).front(); }
};
VKGEMM_ON_EACH_PATH(GatedProduct);

TEST_P(GatedProduct, EveryGate) {
  for (const Gate gate : gates()) {
    EXPECT_TRUE(passes_gates(config(), with_every_gate({19, 21, 37}, gate)));
  }
}

// Limits that about half of the values pass.
TEST_P(GatedProduct, Parameters) {
  for (const Gate gate : gates()) {
    for (const bool swapped : {false, true}) {
      Problem problem = with_every_gate({19, 21, 37}, gate);
      problem.gated->swapped = swapped;
      const bool has_sigmoid =
          gate != Gate::reglu && gate != Gate::geglu_erf && gate != Gate::geglu_tanh;
      if (has_sigmoid) problem.gated->slope = 1.702f;
      if (gate != Gate::sigmoid_tanh) {
        problem.gated->limit = 0.75f;
        problem.gated->offset = 1.0f;
      }
      EXPECT_TRUE(passes_gates(config(), problem));
    }
  }
}

TEST_P(GatedProduct, NanAndInfinityPropagate) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const Gate gate : gates()) {
    Trial trial(with_every_gate({5, 9, 12}, gate), Fill::random, {.poison = std::byte{0}});
    trial.set(OperandId::a, 1, 3, nan);
    trial.set(OperandId::a, 2, 4, inf);
    trial.set(OperandId::b, 5, 2, nan);       // of l
    trial.set(OperandId::b, 6, 9 + 4, nan);   // of r
    trial.set(OperandId::b, 7, 9 + 5, -inf);  // of r
    ASSERT_TRUE(trial.run(config()));
    EXPECT_TRUE(trial.is_within_bound()) << to_string(gate);
    for (const auto& [row, col] : {std::pair{1u, 0u}, {0u, 2u}, {0u, 4u}}) {
      EXPECT_TRUE(std::isnan(trial.d(row, col))) << to_string(gate);
    }
  }
}

// Shapes around the tile.
TEST_P(GatedProduct, AnyShape) {
  const std::uint64_t m = config().tile_m, n = config().tile_n / 2, k = config().tile_k;
  for (const GatedB b : all_arrangements) {
    for (const Shape shape : {Shape{1, 1, 1},
                              {m - 1, n + 1, k + 1},
                              {m + 1, n - 1, k - 1},
                              {2 * m + 3, 1, 3 * k + 1},
                              {1, 3 * n + 1, 5},
                              {m, 2 * n + 2, 2 * k + 3},
                              {m, n, 0}}) {
      if (on_cpu() && shape.k == 0 && b == GatedB::interleaved) continue;  // one pipeline more
      EXPECT_TRUE(
          passes_gates(config(), with_padding(gated(gemm(shape, input()), b)), {.shift = 1}));
    }
  }
}

// Whole tiles, and aligned edges, whose loads are 16 bytes wide. Compiling all of it takes a CPU
// long.
TEST_P(GatedProduct, AlignedInEveryLayout) {
  std::size_t turn = 0;
  for (const Layout a_layout : {Layout::row_major, Layout::col_major}) {
    for (const Layout b_layout : {Layout::row_major, Layout::col_major}) {
      for (const bool whole : {false, true}) {
        ++turn;
        for (const GatedB b : all_arrangements) {
          if (on_cpu() && (turn + (b == GatedB::interleaved ? 1 : 0)) % 3 != 0) continue;
          const std::uint64_t n = whole ? config().tile_n : 24;
          Problem problem = gated(gemm({whole ? 2u * config().tile_m : 40u, n, 48}, input()), b);
          problem.a.layout = a_layout;
          problem.b.layout = b_layout;
          EXPECT_TRUE(passes_gates(config(), whole ? problem : with_padding(problem, 8, true)));
        }
      }
    }
  }
}

// 20 elements of 16 bits are no multiple of 16 bytes: the right half of a row-major B is not
// aligned.
TEST_P(GatedProduct, RightHalfMayBeginAnywhere) {
  const Problem problem = gated(gemm({16, 20, 32}, input()));
  EXPECT_TRUE(passes_gates(config(), problem));
  if (size_in_bytes(input()) != 2) return;
  const auto plan = context().plan(problem, config());
  ASSERT_TRUE(succeeds(plan));
  EXPECT_NE(plan->explain().find("its right half begins at element 20, not a multiple of 8"),
            std::string::npos)
      << plan->explain();
}

TEST_P(GatedProduct, EveryConfiguration) {
  std::size_t turn = 0;
  for (const DataType type : inputs_of(GetParam())) {
    for (const Config& one : gated_configs(GetParam(), type)) {
      ++turn;
      if (on_cpu() && turn == 1) continue;  // stands for all others in all other tests
      for (const GatedB b : {GatedB::halves, GatedB::interleaved}) {
        if (on_cpu() && (turn % 2 == 0) == (b == GatedB::halves)) continue;
        const std::uint64_t n = one.tile_n + 8, k = std::uint64_t{3} * one.tile_k + 8;
        const Problem problem = gated(gemm({one.tile_m + 3u, n, k}, type), b);
        EXPECT_TRUE(passes_gates(one, with_padding(problem, 8, true)));
      }
    }
  }
}

// Bias and aux have the columns of both halves, in the order of B.
TEST_P(GatedProduct, EpilogueOfEveryType) {
  std::size_t turn = 0;
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
    for (const bool aligned : {false, true}) {
      ++turn;
      for (const GatedB b : all_arrangements) {
        const bool worth_it = b == GatedB::interleaved ? turn == 3 || turn == 6 : turn == 2;
        if (on_cpu() && !worth_it) continue;
        // N of 22: rows of aux can be stored in pieces of four elements, but not their right half.
        Problem problem = with_bias_and_aux(gemm({20, 22, 33}, input(), type),
                                            aligned ? Bias::along_n : Bias::along_m);
        problem.epilogue.bias_type = type;
        problem.epilogue.clamp_min = -0.25f;
        problem.epilogue.clamp_max = 0.75f;
        problem.batch = aligned ? 2 : 1;
        problem.epilogue.bias_batch_stride = aligned ? 46 : 0;
        EXPECT_TRUE(passes_gates(config(), with_padding(gated(problem, b), 8, aligned)));
      }
    }
  }
}

// Nothing tells the arrangements apart but where columns stand.
TEST_P(GatedProduct, ArrangementsGiveTheSameBits) {
  for (const Config& one : {config(), gated_configs(GetParam(), input()).back()}) {
    if (on_cpu() && one != config()) continue;
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      std::vector<std::vector<double>> results;
      for (const GatedB b : all_arrangements) {
        Problem problem = with_every_gate({18, 27, 41}, Gate::sigmoid_tanh);
        problem.gated->b = b;
        problem.b.layout = layout;
        problem = with_padding(problem);
        Trial trial(problem, Fill::random);
        const auto column = [&](std::uint64_t half, std::uint64_t j) {
          return b == GatedB::interleaved ? 2 * j + half : j + half * problem.n;
        };
        for (std::uint64_t half = 0; half < 2; ++half) {
          for (std::uint64_t j = 0; j < problem.n; ++j) {
            const auto value = [&](std::uint64_t k) {
              return fill_value(Fill::random, 77, (half * 100 + j) * 100 + k);
            };
            const bool right = b == GatedB::separate && half == 1;
            for (std::uint64_t k = 0; k < problem.k; ++k) {
              trial.set(right ? OperandId::b_right : OperandId::b, k,
                        b == GatedB::separate ? j : column(half, j), value(k));
            }
            trial.set(OperandId::bias, 0, column(half, j), value(99));
          }
        }
        ASSERT_TRUE(trial.run(one));
        EXPECT_TRUE(trial.is_within_bound());
        std::vector<double>& result = results.emplace_back();
        for (std::uint64_t i = 0; i < problem.m; ++i) {
          for (std::uint64_t j = 0; j < problem.n; ++j) result.push_back(trial.d(i, j));
        }
      }
      EXPECT_EQ(results[0], results[1]) << to_string(one);
      EXPECT_EQ(results[0], results[2]) << to_string(one);
    }
  }
}

// --- compositions
// ------------------------------------------------------------------------------------------

TEST_P(GatedProduct, SlicesInEveryReductionMode) {
  for (const GatedB b : all_arrangements) {
    // As halves, but for where its right half begins.
    if (on_cpu() && GetParam() == Path::khr && b == GatedB::separate) continue;
    Problem problem = with_bias_and_aux(gated(gemm({21, 19, 150}, input()), b));
    problem.batch = 2;
    problem = with_padding(problem, 8, b == GatedB::interleaved);
    EXPECT_TRUE(passes_gates(sliced(config(), 3), problem));
    if (on_cpu() && b != GatedB::interleaved) continue;
    Trial trial(problem, Fill::random);
    ASSERT_TRUE(trial.run(sliced(config(), 3)));
    EXPECT_TRUE(trial.repeats(sliced(config(), 3, ReductionMode::last_arriver)));
    EXPECT_TRUE(trial.repeats(sliced(config(), 3, ReductionMode::device_barrier)));
  }
}

// Half a mixture of experts: each group of rows has its own B.
TEST_P(GatedProduct, GroupsOfRows) {
  const auto tile = static_cast<std::int64_t>(config().tile_m);
  const std::vector<std::int64_t> offsets{1, 1, tile, 2 * tile + 1, 2 * tile + 1, 5 * tile + 4};
  for (const GatedB b : all_arrangements) {
    for (const GroupedB shared : {GroupedB::shared, GroupedB::per_group}) {
      Problem problem = with_bias_and_aux(gated(gemm({0, 21, 37}, input()), b));
      problem.m = static_cast<std::uint64_t>(offsets.back() + 3);
      problem.grouping = {.groups = 5, .b = shared};
      problem.epilogue.bias_batch_stride = 43;
      problem = with_padding(problem, 8, b == GatedB::interleaved);
      Config one = config();
      if (b != GatedB::interleaved || !on_cpu()) {
        EXPECT_TRUE(passes_gates(one, problem, {.offsets = offsets}));
      }
      if (b != GatedB::interleaved && on_cpu()) continue;
      one.schedule = Schedule::persistent;
      one.workgroups = 3;
      EXPECT_TRUE(passes_gates(one, problem, {.offsets = offsets}));
    }
  }
}

TEST_P(GatedProduct, GroupsOfDepth) {
  const std::vector<std::int64_t> offsets{2, 2, 20, 21, 70};
  for (const GatedB b : all_arrangements) {
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      if (on_cpu() && (layout == Layout::col_major) == (b == GatedB::interleaved)) continue;
      Problem problem = with_bias_and_aux(gated(gemm({18, 13, 75}, input()), b));
      problem.b.layout = layout;
      problem.grouping = {.groups = 4, .along = GroupAlong::k};
      EXPECT_TRUE(passes_gates(config(), with_padding(problem), {.offsets = offsets}));
    }
  }
}

TEST_P(GatedProduct, PackedOperands) {
  if (size_in_bytes(input()) != 2) GTEST_SKIP() << "only 16-bit operands are packed";
  Config one = config();
  for (const GatedB b : all_arrangements) {
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      one.pack_a = layout == Layout::row_major || b == GatedB::halves;
      one.pack_b = layout == Layout::col_major || b != GatedB::halves;
      Problem problem = with_bias_and_aux(gated(gemm({19, 24, 37}, input()), b));
      problem.b.layout = layout;
      EXPECT_TRUE(passes_gates(one, with_padding(problem, 8, layout == Layout::row_major)));
    }
  }
}

TEST_P(GatedProduct, ColumnMajorD) {
  for (const Config& one : {config(), gated_configs(GetParam(), input()).back()}) {
    if (on_cpu() && GetParam() == Path::khr && one != config()) continue;
    for (const GatedB b : {GatedB::halves, GatedB::interleaved}) {
      Problem problem = with_bias_and_aux(gated(gemm({19, 22, 37}, input()), b));
      problem.d.layout = problem.aux.layout = Layout::col_major;
      problem.batch = 2;
      problem = with_padding(problem);
      EXPECT_TRUE(passes_gates(sliced(one, b == GatedB::halves ? 1 : 2), problem));
    }
  }
}

TEST_P(GatedProduct, StaticShape) {
  Config one = config();
  one.static_shape = true;
  for (const GatedB b : all_arrangements) {
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      // One leading dimension that is not the caller's is enough where compiling is slow.
      if (on_cpu() && (layout == Layout::row_major || b != GatedB::interleaved)) continue;
      Problem problem = gated(gemm({18, 13, 27}, input()), b);
      problem.b.layout = layout;
      EXPECT_TRUE(passes_gates(one, with_padding(problem)));
    }
  }
}

TEST_P(GatedProduct, CandidatesPassAndExplainThemselves) {
  for (const GatedB b : all_arrangements) {
    const Problem problem = gated(gemm({30, 20, 40}, input()), b, Gate::geglu_tanh);
    const auto chosen = context().plan(problem);
    ASSERT_TRUE(succeeds(chosen));
    EXPECT_NE(chosen->config().path(), Path::nv);
    const auto plan = plan_on(GetParam(), problem);
    ASSERT_TRUE(succeeds(plan));
    Trial trial(problem, Fill::random);
    ASSERT_TRUE(trial.run(*plan));
    EXPECT_TRUE(trial.is_within_bound());
    const std::string text = plan->explain();
    for (const std::string& part :
         {"gated: geglu_tanh, b " + std::string(to_string(b)), std::string("not nv: ")}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace vkgemm::test
