// Row reductions without a device: what is refused, how wide a row each strategy takes, what is
// dispatched, and that the reference is right.
#include "kernels/parts/rows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/computation.hpp"
#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "kernels/workspace.hpp"
#include "oracle/reference.hpp"
#include "problem/convert.hpp"
#include "problem/resolve.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"
#include "tuning/rank.hpp"
#include "tuning/row_variants.hpp"

namespace vkgemm {
namespace {

using test::config;
using test::contains;
using test::gemm;
using test::resolved;

Problem reduced(std::uint64_t m, std::uint64_t n, std::uint64_t k, RowOp op,
                DataType type = DataType::f16) {
  Problem problem = gemm(m, n, k, type);
  problem.row_reduction = RowReduction{.op = op};
  return problem;
}

TEST(RowReduction, WhatIsRefused) {
  struct Case {
    const char* name;
    void (*change)(Problem&);
    Status status;
    const char* message;
  };
  const Case cases[] = {
      {"grouping", [](Problem& p) { p.grouping = Grouping{.groups = 2}; }, Status::unsupported,
       "row_reduction.op is layer_norm and there is a grouping"},
      {"negative eps", [](Problem& p) { p.row_reduction->eps = -1.0f; }, Status::invalid_argument,
       "row_reduction.eps is -1"},
      {"eps is NaN", [](Problem& p) { p.row_reduction->eps = std::nanf(""); },
       Status::invalid_argument, "row_reduction.eps is nan"},
      {"eps of a sum",
       [](Problem& p) { p.row_reduction = RowReduction{.op = RowOp::sum, .eps = 1.0f}; },
       Status::invalid_argument, "sum has none"},
      {"gamma of a softmax",
       [](Problem& p) { p.row_reduction = RowReduction{.op = RowOp::softmax, .gamma = true}; },
       Status::unsupported, "row_reduction.gamma is true and row_reduction.op is softmax"},
      {"a norm without D", [](Problem& p) { p.row_reduction->store_d = false; },
       Status::invalid_argument, "row_reduction.store_d is false"},
      {"no operation", [](Problem& p) { p.row_reduction->op = static_cast<RowOp>(99); },
       Status::invalid_argument, "row_reduction.op is 99"},
  };
  for (const Case& c : cases) {
    Problem problem = reduced(8, 8, 8, RowOp::layer_norm);
    EXPECT_TRUE(resolve(problem)) << c.name;
    c.change(problem);
    const auto result = resolve(problem);
    ASSERT_FALSE(result) << c.name;
    EXPECT_EQ(result.error().status, c.status) << c.name;
    EXPECT_TRUE(contains(result.error().message, c.message)) << result.error().message;
  }
}

TEST(RowReduction, DefaultsAndNames) {
  EXPECT_EQ(resolved(reduced(4, 4, 4, RowOp::rms_norm)).eps, 1e-6f);
  EXPECT_EQ(resolved(reduced(4, 4, 4, RowOp::layer_norm)).eps, 1e-5f);
  EXPECT_EQ(resolved(reduced(4, 4, 4, RowOp::l2_normalize)).eps, 1e-12f);
  for (unsigned i = 0; i < 10; ++i) {
    const auto op = static_cast<RowOp>(i);
    EXPECT_EQ(parse_row_op(to_string(op)), op);
    EXPECT_EQ(gives_values(op), i >= 4);
    EXPECT_EQ(is_scalar(op), i >= 4 && op != RowOp::quantise);
  }
  EXPECT_FALSE(parse_row_op("median"));
  Problem problem = reduced(8, 16, 8, RowOp::layer_norm);
  problem.row_reduction->gamma = true;
  problem.row_reduction->eps = 0.5f;
  EXPECT_TRUE(
      contains(to_command_line(problem),
               "--row-op layer_norm --row-eps 0.5 --with-row-gamma --dtype-row-vectors f32"));
  problem.row_reduction =
      RowReduction{.op = RowOp::max, .value_type = DataType::bf16, .store_d = false};
  EXPECT_TRUE(
      contains(to_command_line(problem), "--row-op max --dtype-row-values bf16 --without-d"));
}

TEST(RowReduction, StrategiesAsText) {
  for (const char* text : {"fma:tile=64x64x16,fragment=8x8,rows=resident",
                           "fma:tile=64x64x16,fragment=8x8,spin_limit=7,rows=panel",
                           "fma:tile=64x64x16,fragment=8x8,rows=recompute",
                           "fma:tile=64x64x16,fragment=8x8,rows=two_pass"}) {
    EXPECT_EQ(to_string(config(text)), text);
  }
  const auto wrong = parse_config("fma:tile=64x64x16,fragment=8x8,rows=three_pass");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(contains(wrong.error().message, "rows=resident, panel, recompute or two_pass"));
}

TEST(RowReduction, WhatAStrategyNeeds) {
  const auto why = [](const char* text, const Problem& problem, const DeviceCaps& caps) {
    return why_illegal(config(text), resolved(problem), caps).value_or("");
  };
  const Problem norm = reduced(300, 200, 64, RowOp::layer_norm, DataType::f32);
  const Problem sum = reduced(300, 200, 64, RowOp::sum, DataType::f32);
  const char* const plain = "fma:tile=64x64x16,fragment=8x8";
  const DeviceCaps h200 = test::h200();
  EXPECT_TRUE(contains(why(plain, norm, h200), "rows is none: row_reduction layer_norm needs"));
  EXPECT_TRUE(contains(
      why("fma:tile=64x64x16,fragment=8x8,rows=two_pass", gemm(8, 8, 8, DataType::f32), h200),
      "rows is two_pass: the problem has no row_reduction"));
  EXPECT_TRUE(contains(why("fma:tile=64x64x16,fragment=8x8,rows=resident", norm, h200),
                       "tile_n is 64, less than n, 200"));
  EXPECT_TRUE(contains(why("fma:tile=64x48x16,fragment=8x8,rows=recompute", norm, h200),
                       "tile_n is 48, not a power of two from 32 to 1024"));
  EXPECT_TRUE(contains(why("fma:tile=64x64x16,fragment=8x8,slices=2,rows=recompute", norm, h200),
                       "slices is 2, only two_pass adds slices"));
  EXPECT_TRUE(
      contains(why("skinny:tile=4x64x16,rows=panel", norm, h200), "main loop skinny hides"));
  EXPECT_TRUE(contains(why("nv:tile=128x128x32,invocations=128,rows=resident",
                           reduced(300, 100, 64, RowOp::softmax), h200),
                       "main loop nv hides"));
  EXPECT_TRUE(contains(why("fma:tile=64x64x16,fragment=8x8,rows=recompute", sum, h200),
                       "sum is one number a row"));
  DeviceCaps alone = h200;
  alone.device_barrier = {false, "VKGEMM_DEVICE_BARRIER is 0"};
  const char* const panel = "fma:tile=64x64x16,fragment=8x8,rows=panel";
  EXPECT_TRUE(contains(why(panel, norm, alone), "rows is panel: VKGEMM_DEVICE_BARRIER is 0"));
  EXPECT_EQ(why(panel, sum, alone), "") << "nobody waits for numbers";
  EXPECT_TRUE(contains(why("khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,"
                           "subtiles=4,pack=a,rows=two_pass",
                           reduced(300, 200, 64, RowOp::sum), h200),
                       "pack: copies are not built for rows in two passes on main loop khr"));
}

// The widest rows of each strategy, and one more column.
TEST(RowReduction, WidestRows) {
  struct Band {
    DeviceCaps caps;
    DataType type;
    const char* tile;
    std::uint64_t resident, panel;  // 0: refused; the most a size can be: unlimited
  };
  constexpr std::uint64_t any = 1u << 20;
  const char* const wide =
      "khr:tile=64x512x32,fragment=16x16x16,subgroups=1x8,subgroup_size=32,subtiles=4,swizzle=1";
  const char* const intel =
      "khr:tile=32x64x16,fragment=8x16x16,subgroups=2x2,subgroup_size=16,subtiles=2,swizzle=1";
  const Band bands[] = {
      {test::h200(), DataType::f16, wide, 512, 132 * 512},
      {test::h200(), DataType::bf16, wide, 512, 132 * 512},
      {test::h200(), DataType::f32, "fma:tile=64x128x16,fragment=8x8,swizzle=1", 128, 132 * 128},
      {test::navi31(), DataType::f16,
       "khr:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=2,swizzle=1",
       64, 48 * 64},
      {test::navi31(), DataType::f32, "fma:tile=64x64x16,fragment=8x8,swizzle=1", 64, 48 * 64},
      {test::battlemage(), DataType::f16, intel, 64, 0},
      {test::battlemage(), DataType::bf16, intel, 64, 0},
      {test::lavapipe(), DataType::f16,
       "khr:tile=16x32x16,fragment=8x8x8,subgroups=1x2,subgroup_size=8,subtiles=2,swizzle=1", 32,
       any},
      {test::lavapipe(), DataType::f32, "fma:tile=16x32x8,fragment=4x4,swizzle=1", 32, any},
  };
  for (const Band& band : bands) {
    const DeviceTables tables(band.caps);
    const auto legal = [&](RowStrategy strategy, std::uint64_t n) {
      Config c = config(band.tile);
      c.rows = strategy;
      const Problem problem = reduced(1000, n, 64, RowOp::softmax, band.type);
      return why_illegal(c, resolved(problem), tables.target(band.caps)).value_or("");
    };
    EXPECT_EQ(legal(RowStrategy::resident, band.resident), "") << band.caps.name;
    EXPECT_EQ(legal(RowStrategy::resident, band.resident - 1), "") << band.caps.name;
    EXPECT_NE(legal(RowStrategy::resident, band.resident + 1), "") << band.caps.name;
    EXPECT_EQ(legal(RowStrategy::two_pass, any), "") << band.caps.name;
    if (band.panel == 0) {
      for (const RowStrategy strategy : {RowStrategy::panel, RowStrategy::recompute}) {
        EXPECT_TRUE(contains(legal(strategy, 1), "refused on intel_xe2")) << band.caps.name;
      }
      continue;
    }
    EXPECT_EQ(legal(RowStrategy::panel, band.panel), "") << band.caps.name;
    if (band.panel != any) {
      EXPECT_NE(legal(RowStrategy::panel, band.panel + 1), "") << band.caps.name;
    }
    for (const std::uint64_t n : {std::uint64_t{1}, band.panel, any}) {
      EXPECT_EQ(legal(RowStrategy::two_pass, n), "") << band.caps.name;
      EXPECT_EQ(legal(RowStrategy::recompute, n), "") << band.caps.name;
    }
  }
}

// Whatever is proposed can run: a strategy that doesn't fit gives way to the next.
TEST(RowReduction, ProposalsAreLegalAndFit) {
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
      for (const std::uint64_t n :
           {1u, 31u, 64u, 255u, 256u, 257u, 512u, 1000u, 1024u, 1025u, 5000u, 70000u}) {
        for (const RowOp op : {RowOp::layer_norm, RowOp::logsumexp}) {
          const ResolvedProblem problem = resolved(reduced(4000, n, 512, op, type));
          const auto ranked = DeviceTables(caps).rank(problem, caps);
          ASSERT_FALSE(ranked.empty()) << caps.name << " " << n << " " << to_string(type);
          for (const ScoredRow& scored : ranked) {
            ASSERT_EQ(why_illegal(scored.config, problem, caps), std::nullopt)
                << to_string(scored.config);
            ASSERT_LE(lower(scored.config, problem, caps).workspace.bytes,
                      problem.max_workspace_bytes);
          }
        }
      }
    }
  }
}

TEST(RowReduction, TilesAreReshaped) {
  const ResolvedProblem problem = resolved(reduced(4096, 500, 512, RowOp::softmax));
  const auto wide = resident_variant(test::khr_config, problem, test::h200());
  ASSERT_TRUE(wide.has_value());
  EXPECT_EQ(wide->config.tile_n, 512u);
  EXPECT_EQ(wide->config.tile_m, 32u);
  EXPECT_EQ(why_illegal(wide->config, problem, test::h200()), std::nullopt);
  EXPECT_LT(wide->rate_factor, 1.0) << "longer edges, more to load";
  const ResolvedProblem wider = resolved(reduced(64, 1025, 8, RowOp::sum));
  EXPECT_FALSE(resident_variant(test::khr_config, wider, test::h200()).has_value());
}

TEST(RowReduction, Steps) {
  const DeviceCaps caps = test::h200();
  const auto lowered = [&](const char* text, const Problem& problem) {
    EXPECT_EQ(why_illegal(config(text), resolved(problem), caps).value_or(""), "");
    return lower(config(text), resolved(problem), caps);
  };
  const Problem norm = reduced(300, 200, 64, RowOp::layer_norm, DataType::f32);

  const DispatchPlan panel = lowered("fma:tile=64x64x16,fragment=8x8,swizzle=1,rows=panel", norm);
  ASSERT_EQ(panel.before.size(), 1u);
  EXPECT_EQ(panel.before[0].key.module, "reset");
  EXPECT_EQ(std::get<gpu::ResetParams>(panel.before[0].params).control_words,
            CONTROL_WORDS + 5u * 4);
  EXPECT_EQ(std::get<gpu::ResetParams>(panel.before[0].params).row_state_pieces,
            5u * 64 * 4 * 12 / 16);
  EXPECT_EQ(panel.product.key.module, "reduce_tiles_fma_f32");
  EXPECT_EQ(panel.product.block<gpu::ReduceTilesParams>().gemm.slices,
            std::uint32_t{ROW_STAGE_PANEL});
  ASSERT_EQ(panel.after.size(), 1u);
  EXPECT_EQ(panel.after[0].key, panel.product.key) << "one pipeline, so the same bits";
  EXPECT_EQ(panel.after[0].block<gpu::ReduceTilesParams>().gemm.slices,
            ROW_STAGE_APPLY | std::uint32_t{ROW_STAGE_GUARDED});

  const DispatchPlan again = lowered("fma:tile=64x64x16,fragment=8x8,rows=recompute", norm);
  EXPECT_TRUE(again.before.empty());
  EXPECT_EQ(again.product.block<gpu::ReduceTilesParams>().gemm.slices,
            std::uint32_t{ROW_STAGE_STATISTICS});
  ASSERT_EQ(again.after.size(), 1u);
  EXPECT_EQ(again.after[0].block<gpu::ReduceTilesParams>().gemm.slices,
            std::uint32_t{ROW_STAGE_APPLY});
  EXPECT_EQ(again.workspace.bytes, 5u * 64 * 4 * 12);

  const DispatchPlan two = lowered("fma:tile=64x64x16,fragment=8x8,rows=two_pass", norm);
  EXPECT_TRUE(two.values_in_d);
  EXPECT_EQ(two.workspace.bytes, 0u) << "D is f32: values wait there";
  EXPECT_EQ(two.product.key.module, "gemm_fma_f32");
  ASSERT_EQ(two.after.size(), 1u);
  EXPECT_EQ(two.after[0].key.module, "reduce_rows");
  EXPECT_EQ(two.after[0].key.constants[SPEC_ROW_OP], std::uint32_t{ROW_OP_LAYER_NORM});
  EXPECT_FALSE(two.chunks);
}

// Values that the workspace doesn't hold at once; every row in one part.
TEST(RowReduction, Chunks) {
  Problem problem = reduced(1000, 200, 64, RowOp::layer_norm);
  problem.max_workspace_bytes = 200 * 4 * 256;
  Config c = test::khr_config;
  c.rows = RowStrategy::two_pass;
  const DispatchPlan kernel = lower(c, resolved(problem), test::h200());
  ASSERT_TRUE(kernel.chunks);
  EXPECT_EQ(kernel.chunks->rows, 256u);
  EXPECT_EQ(kernel.chunks->count(), 4u);
  EXPECT_EQ(kernel.workspace.bytes, problem.max_workspace_bytes);
  EXPECT_EQ(kernel.product.dispatches[0].tiles, 2u * 2);
  EXPECT_EQ(kernel.product.last_dispatches[0].tiles, 2u * 2) << "232 rows";
  EXPECT_EQ(kernel.product.key.constants[SPEC_EDGES], 1u);
  EXPECT_EQ(kernel.chunks->row_pitch.a, 64u * 2);
  EXPECT_EQ(kernel.chunks->row_pitch.d, 200u * 2);

  problem.batch = 7;
  problem.m = 100;
  const DispatchPlan batches = lower(c, resolved(problem), test::h200());
  ASSERT_TRUE(batches.chunks);
  EXPECT_EQ(batches.chunks->rows, 100u);
  EXPECT_EQ(batches.chunks->batches, 2u);
  EXPECT_EQ(batches.chunks->count(), 4u);
  EXPECT_EQ(batches.product.last_dispatches[0].batches, 1u);
}

// The reference, on rows that one can work out by hand: A is 1×1 and 1, B is the row.
struct ByHand {
  std::vector<float> d;
  float value = 0.0f;
};
ByHand reference_of(const std::vector<float>& row, const RowReduction& rows) {
  Problem problem = gemm(1, row.size(), 1, DataType::f32);
  problem.row_reduction = rows;
  const float one = 1.0f;
  ByHand out{.d = std::vector<float>(row.size())};
  oracle::compute_reference(problem, {{OperandId::a, &one}, {OperandId::b, row.data()}},
                            {{OperandId::d, out.d.data()}, {OperandId::row_values, &out.value}}, 1);
  return out;
}

TEST(RowReduction, ReferenceByHand) {
  const std::vector<float> row = {1.0f, 2.0f, 3.0f, 6.0f};
  const auto value = [&](RowOp op) { return reference_of(row, {.op = op}).value; };
  EXPECT_EQ(value(RowOp::sum), 12.0f);
  EXPECT_EQ(value(RowOp::max), 6.0f);
  EXPECT_EQ(value(RowOp::mean), 3.0f);
  EXPECT_EQ(value(RowOp::variance), 3.5f);
  EXPECT_NEAR(value(RowOp::logsumexp), 6.0721726f, 1e-6f);
  const auto d = [&](RowOp op, float eps) { return reference_of(row, {.op = op, .eps = eps}).d; };
  EXPECT_NEAR(d(RowOp::layer_norm, 0.5f)[3], 1.5f, 1e-6f);
  EXPECT_NEAR(d(RowOp::rms_norm, 3.5f)[0], 0.25f, 1e-6f);
  EXPECT_NEAR(d(RowOp::l2_normalize, 0.0f)[1], 2.0f / std::sqrt(50.0f), 1e-6f);
  EXPECT_NEAR(d(RowOp::l2_normalize, 10.0f)[1], 0.2f, 1e-7f);
  const std::vector<float> p = reference_of(row, {.op = RowOp::softmax}).d;
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0f), 1.0f, 1e-6f);
  EXPECT_NEAR(p[3] / p[2], std::exp(3.0f), 1e-4f);
}

TEST(RowReduction, ReferenceOfQuantiseByHand) {
  const std::vector<float> row = {1.0f, -254.0f, 3.0f, 5.0f};
  Problem problem = gemm(1, row.size(), 1, DataType::f32);
  problem.d.type = DataType::s8;
  problem.row_reduction = RowReduction{.op = RowOp::quantise};
  const auto codes_of = [&](const std::vector<float>& values, float& scale) {
    const float one = 1.0f;
    std::vector<std::int8_t> codes(values.size(), std::int8_t{99});
    oracle::compute_reference(problem, {{OperandId::a, &one}, {OperandId::b, values.data()}},
                              {{OperandId::d, codes.data()}, {OperandId::row_values, &scale}}, 1);
    return codes;
  };
  float scale = 0.0f;
  EXPECT_EQ(codes_of(row, scale), (std::vector<std::int8_t>{0, -127, 2, 2}));
  EXPECT_EQ(scale, 2.0f);
  const std::vector<std::int8_t> zeros(4);
  EXPECT_EQ(codes_of({0.0f, 0.0f, 1e-37f, 0.0f}, scale), zeros);
  EXPECT_EQ(scale, 0.0f);
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(codes_of({1.0f, -inf, 2.0f, 3.0f}, scale), zeros);
  EXPECT_EQ(scale, inf);
  EXPECT_EQ(codes_of({1.0f, inf, std::nanf(""), 3.0f}, scale), zeros);
  EXPECT_TRUE(std::isnan(scale));
}

// As PyTorch has them.
TEST(RowReduction, ReferenceOfInfinities) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(reference_of({-inf, -inf}, {.op = RowOp::softmax}).d[0]));
  EXPECT_TRUE(std::isnan(reference_of({inf, 1.0f}, {.op = RowOp::softmax}).d[1]));
  EXPECT_EQ(reference_of({-inf, 1.0f}, {.op = RowOp::softmax}).d[0], 0.0f);
  EXPECT_EQ(reference_of({-inf, -inf}, {.op = RowOp::logsumexp}).value, -inf);
  EXPECT_EQ(reference_of({inf, 1.0f}, {.op = RowOp::logsumexp}).value, inf);
  EXPECT_TRUE(std::isnan(reference_of({std::nanf(""), 1.0f}, {.op = RowOp::max}).value));
}

// A result that is off is found, by D and by the numbers.
TEST(RowReduction, VerificationFails) {
  Problem problem = gemm(1, 4, 1, DataType::f32);
  problem.row_reduction = RowReduction{.op = RowOp::logsumexp};
  const float one = 1.0f;
  const std::vector<float> row = {1.0f, 2.0f, 3.0f, 6.0f};
  const oracle::HostOperands operands{{OperandId::a, &one}, {OperandId::b, row.data()}};
  std::vector<float> d = row;
  float value = 6.0721726f;
  const auto verify = [&] {
    return oracle::verify(
        problem, operands.with({{OperandId::d, d.data()}, {OperandId::row_values, &value}}),
        {.threads = 1});
  };
  EXPECT_TRUE(verify().passed()) << verify().first_failure;
  EXPECT_EQ(verify().checked, 5u);
  value += 1e-4f;
  EXPECT_TRUE(contains(verify().first_failure, "row_values"));
  value = 6.0721726f;
  d[2] += 1e-5f;
  EXPECT_TRUE(contains(verify().first_failure, "d[batch 0, 0, 2]"));
}

// More workspace never takes a configuration away.
TEST(RowReduction, PartsFitWhateverWorkspaceHoldsOneOfThem) {
  Problem p = gemm(8, 20, 64);
  p.row_reduction = RowReduction{.op = RowOp::softmax};
  const Config config = test::config("skinny:tile=1x64x256,rows=two_pass");
  for (p.max_workspace_bytes = 256; p.max_workspace_bytes < 2000; ++p.max_workspace_bytes) {
    const ResolvedProblem problem = resolved(p);
    EXPECT_TRUE(fits_workspace(config, Computation(problem, config).chunk(), test::h200().limits))
        << p.max_workspace_bytes;
  }
}

}  // namespace
}  // namespace vkgemm
