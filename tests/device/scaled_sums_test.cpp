// 8-bit activations: rows of A as s8 or 8-bit floats, whose scales are of rows or of groups of K,
// times a quantised B.
#include <gtest/gtest.h>

#include <vector>

#include "harness.hpp"
#include "problem/inputs/codes.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

constexpr Quantisation integers[] = {
    {.type = CodeType::int4, .group_k = 128},
    {.type = CodeType::int4, .group_k = 32, .zeros = true},
    {.type = CodeType::int4, .group_k = 64, .zeros = true, .float_zeros = true},
    {.type = CodeType::int8},
    {.type = CodeType::int8, .group_k = 192, .scale_type = DataType::f32},
    {.type = CodeType::q4_1},
    {.type = CodeType::q5_0},
    {.type = CodeType::q4_k},
    {.type = CodeType::q6_k}};

constexpr Quantisation floats[] = {
    {.type = CodeType::e4m3, .group_k = 128, .group_n = 128, .scale_type = DataType::f32},
    {.type = CodeType::e5m2, .group_k = 64},
    {.type = CodeType::e4m3, .scale_type = DataType::bf16}};

Problem problem_of(std::uint64_t m, std::uint64_t n, std::uint64_t k, const Quantisation& q,
                   std::uint32_t a_group_k, DataType a = DataType::s8) {
  const bool blocks = form_of(q.type).group_k != 0;
  Problem problem = gemm({m, n, blocks ? 512 : k}, a);
  if (a != DataType::s8) problem.b.type = DataType::f16;
  if (blocks) problem.b.layout = Layout::col_major;
  problem.d.type = DataType::f32;
  problem.a_group_k = a_group_k;
  if (a_group_k != 0) problem.epilogue.row_scales = Scales::shared;
  return problem;
}

class ScaledSums : public EachPathCounted {
 protected:
  void SetUp() override {
    EachPathCounted::SetUp();
    if (IsSkipped()) return;
    if (GetParam() == Path::nv) GTEST_SKIP() << "path nv takes no codes";
    if (!runner().caps().int8_arithmetic) GTEST_SKIP() << "no 8-bit arithmetic";
  }

  // The path's loops. K-tiles that are staged are as deep as sums of groups need.
  static std::vector<Config> configs(DataType input) {
    std::vector<Config> out;
    for (Config config : small_configs(GetParam(), input)) {
      if (descriptor(config).takes_fragments()) continue;
      config.pack_b = true;
      config.pack_a = false;
      out.push_back(config);
      config.tile_k *= 2;
      out.push_back(config);
      if (on_cpu()) break;
    }
    if (GetParam() == Path::fma && input == DataType::s8) {
      out.push_back(parse_config("skinny:tile=3x32x32,swizzle=2,pack=b").value());
    }
    // lavapipe's own matrices are not as deep as loads are wide.
    if (out.empty()) {
      out.push_back(
          parse_config("khr:tile=16x32x32,fragment=16x16x16,subgroups=1x2,subgroup_size=8,"
                       "pack=b")
              .value());
    }
    return out;
  }

  void families(const Quantisation& q, DataType a);

  // lavapipe takes long to compile matrix loops.
  static bool is_slow() { return on_cpu() && GetParam() == Path::khr && !is_nightly(); }

  void passes(const Problem& problem, const Quantisation& q,
              const std::vector<std::int64_t>& offsets = {}) {
    for (const Config& config : configs(problem.b.type)) computes(problem, q, config, offsets);
  }

  void computes(const Problem& problem, const Quantisation& q, const Config& config,
                const std::vector<std::int64_t>& offsets = {}) {
    TrialOptions options;
    options.offsets = offsets;
    options.quantisation = q;
    const auto plan = runner().context().plan(planned(problem, options, config), config);
    if (!plan) {
      // Rows have strategies of their own.
      EXPECT_TRUE(problem.row_reduction || config.main_loop() != MainLoop::skinny)
          << plan.error().message;
      return;
    }
    ++computed_;
    EXPECT_TRUE(passes_gates(config, problem, options))
        << to_string(q) << ", groups of A " << problem.a_group_k;
  }
};
VKGEMM_ON_EACH_PATH(ScaledSums);

TEST_P(ScaledSums, EveryKindAndGroup) {
  for (const Quantisation& q : integers) {
    for (const std::uint32_t group : {0u, 32u, 64u, 128u}) {
      if (on_cpu() && group == 64) continue;
      if (is_slow() && (&q != integers || group == 0)) continue;
      passes(problem_of(19, 37, 330, q, group), q);
    }
  }
}

// A in columns, of which elements are loaded one by one, or words are transposed.
TEST_P(ScaledSums, ColumnsOfA) {
  for (const Quantisation& q : integers) {
    if (q.type != CodeType::q4_k && &q != integers) continue;
    if (is_slow() && &q != integers) continue;
    for (const std::uint64_t m : {24u, 19u}) {
      Problem problem = problem_of(m, 37, 330, q, 32);
      problem.a.layout = Layout::col_major;
      passes(problem, q);
    }
  }
}

// 8-bit floats and f16, multiplied as f16.
TEST_P(ScaledSums, Floats) {
  for (const DataType a : {DataType::e4m3, DataType::e5m2, DataType::f16}) {
    for (const Quantisation& q : floats) {
      for (const std::uint32_t group : {32u, 64u, 128u}) {
        if (on_cpu() && group == 64) continue;
        if (is_slow() && (&q != floats || a != DataType::e4m3 || group == 32)) continue;
        Problem problem = problem_of(19, 137, 330, q, group, a);
        passes(problem, q);
        if (&q != floats || is_slow()) continue;
        problem.a.layout = Layout::col_major;
        problem.m = 24;
        passes(problem, q);
      }
    }
  }
}

// Scales of the batch, of slices of K, of gates, of groups of rows that are gathered.
void ScaledSums::families(const Quantisation& q, DataType a) {
  Problem batch = problem_of(21, 40, 300, q, 64, a);
  batch.batch = 3;
  batch.epilogue.row_scales = Scales::per_matrix;
  batch.epilogue.column_scales = Scales::shared;
  passes(batch, q);
  Problem slices = problem_of(21, 40, 512, q, 128, a);
  slices.batch = 2;
  slices.epilogue.row_scales = Scales::per_matrix;
  for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver}) {
    slices.split_k = {.slices = 3, .reduction_mode = mode};
    passes(slices, q);
    if (is_slow()) return;
  }
  Problem gated = problem_of(21, 40, 256, q, 32, a);
  gated.gated = Gated{.gate = Gate::swiglu};
  passes(gated, q);
  Problem rows = problem_of(21, 40, 256, q, 32, a);
  rows.row_reduction = {.op = RowOp::rms_norm};
  passes(rows, q);
  Problem groups = problem_of(40, 24, 256, q, 64, a);
  groups.grouping = Grouping{.groups = 3, .b = GroupedB::per_group, .a_rows = 13, .a_terms = 4};
  passes(groups, q, {0, 11, 11, 40});
}

// A group is deeper than the k-tile, and the tile has too many accumulators to keep sums.
TEST_P(ScaledSums, OfTilesTooLargeToKeepThem) {
  if (GetParam() != Path::khr) GTEST_SKIP() << "path khr keeps sums";
  if (is_slow()) GTEST_SKIP() << "takes a minute to compile: at night";
  const Config config =
      parse_config(on_cpu()
                       ? "khr:tile=16x64x32,fragment=16x16x32,subgroups=1x1,subgroup_size=8,pack=b"
                       : "khr:tile=64x64x64,fragment=16x16x32,subgroups=1x1,subgroup_size=32,"
                         "subtiles=4,pack=b")
          .value();
  const Quantisation q{.type = CodeType::int4, .group_k = 128};
  computes(problem_of(40, 72, 330, q, 128), q, config);
}

// A kept sum deeper than KEPT_DEPTH_MOST is added up in parts.
TEST_P(ScaledSums, OfAllOfKAreAddedUpInParts) {
  const Quantisation q{.type = CodeType::int8};
  passes(problem_of(3, 5, 2 * 65536 - 100, q, 0), q);
}

TEST_P(ScaledSums, EveryFamily) {
  families(integers[0], DataType::s8);
  if (!is_slow()) families(floats[1], DataType::e4m3);
}

}  // namespace
}  // namespace vkgemm::test
