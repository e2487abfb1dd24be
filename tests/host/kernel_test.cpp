#include "kernels/dispatch_plan.hpp"
#include "kernels/lowering.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/text.hpp"
#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/steps.hpp"
#include "problem/resolve.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::fma_config;
using test::gemm;
using test::khr_config;
using test::nv_config;
using test::resolved;

DispatchPlan lower_on_h200(const Config& config, const Problem& problem) {
  const ResolvedProblem r = resolved(problem);
  EXPECT_EQ(why_illegal(config, r, test::h200()), std::nullopt);
  return lower(config, r, test::h200());
}

// Where a part of the workspace begins, which must be there.
std::uint64_t offset_of(std::uint64_t Addresses::*address, const WorkspaceLayout& layout) {
  const auto* const found = std::ranges::find(layout, address, &WorkspacePart::address);
  EXPECT_NE(found, layout.end());
  return found != layout.end() ? found->offset : UINT64_MAX;
}

std::uint32_t constant(const Config& config, const Problem& problem, std::size_t id) {
  return lower_on_h200(config, problem).product.key.constants[id];
}

TEST(CutGrid, CoversEachTileOnce) {
  struct Case {
    std::uint64_t tiles, batches;
    std::uint32_t limit_x, limit_y;
  };
  const Case cases[] = {{1, 1, 1, 1}, {10, 7, 3, 2}, {9, 6, 3, 2},   {3, 2, 3, 2},
                        {4, 1, 3, 9}, {1, 10, 5, 3}, {100, 1, 1, 1}, {7, 5, 100, 100}};
  for (const Case& c : cases) {
    Limits limits;
    limits.max_workgroup_count = {c.limit_x, c.limit_y, 1};
    std::vector<int> visits(c.tiles * c.batches);
    const auto dispatches = cut_grid(c.tiles, c.batches, limits);
    EXPECT_EQ(dispatches.size(), dispatch_count(c.tiles, c.batches, limits));
    for (const Dispatch& d : dispatches) {
      ASSERT_GT(d.tiles, 0u);
      ASSERT_GT(d.batches, 0u);
      ASSERT_LE(d.tiles, c.limit_x);
      ASSERT_LE(d.batches, c.limit_y);
      for (std::uint64_t batch = 0; batch < d.batches; ++batch) {
        for (std::uint64_t tile = 0; tile < d.tiles; ++tile) {
          ++visits.at((d.first_batch + batch) * c.tiles + d.first_tile + tile);
        }
      }
    }
    for (const int count : visits) ASSERT_EQ(count, 1);
  }
}

TEST(CutGrid, EdgesOfThe32BitRange) {
  EXPECT_TRUE(cut_grid(0, 5, {}).empty());
  EXPECT_TRUE(cut_grid(5, 0, {}).empty());
  Limits limits;
  limits.max_workgroup_count = {2147483647, 65535, 65535};
  const auto one = cut_grid(2147483647, 1, limits);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].tiles, 2147483647u);
  const auto batches = cut_grid(1, 65536, limits);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1],
            (Dispatch{.tiles = 1, .batches = 1, .first_tile = 0, .first_batch = 65535}));
  // Unknown limits: what every implementation has.
  EXPECT_EQ(cut_grid(65536, 1, {}).size(), 2u);
}

TEST(Lower, NamesTheModule) {
  EXPECT_EQ(lower_on_h200(nv_config, gemm(64, 64, 64)).product.key.module, "gemm_nv_f16");
  EXPECT_EQ(lower_on_h200(khr_config, gemm(64, 64, 64, DataType::bf16)).product.key.module,
            "gemm_khr_bf16");
  EXPECT_EQ(lower_on_h200(fma_config, gemm(64, 64, 64, DataType::f32)).product.key.module,
            "gemm_fma_f32");
}

TEST(Lower, RequiresASubgroupSizeOnlyWhereItCan) {
  EXPECT_EQ(lower_on_h200(khr_config, gemm(64, 64, 64)).product.key.required_subgroup_size, 32u);
  EXPECT_EQ(lower_on_h200(nv_config, gemm(64, 64, 64)).product.key.required_subgroup_size, 0u);
  EXPECT_EQ(lower_on_h200(fma_config, gemm(64, 64, 64)).product.key.required_subgroup_size, 0u);
  DeviceCaps caps = test::h200();
  caps.limits.subgroup_size_control = false;
  EXPECT_EQ(lower(khr_config, resolved(gemm(64, 64, 64)), caps).product.key.required_subgroup_size,
            0u);
}

// bf16x9 takes the largest parts' sum twice where matrix units' truncation shows: 5 is beyond q + r
// = 4.
TEST(Lower, OrdersOfParts) {
  const Config direct = test::config(
      "khr_direct:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,swap_a=1,"
      "interleave_k=1,pack=ab");
  const DeviceCaps caps = trusting(test::h200());
  const auto last_order = [&](F32Arithmetic arithmetic, std::uint64_t k, bool grouped = false) {
    Problem p = gemm(64, 64, k, DataType::f32);
    p.f32_arithmetic = arithmetic;
    if (grouped) p.grouping = Grouping{.groups = 2, .along = GroupAlong::k};
    const ResolvedProblem r = resolved(p);
    EXPECT_EQ(why_illegal(direct, r, caps), std::nullopt);
    return lower(direct, r, caps).product.key.constants[SPEC_LAST_ORDER];
  };
  EXPECT_EQ(last_order(F32Arithmetic::bf16x9, 256), 5u);
  EXPECT_EQ(last_order(F32Arithmetic::bf16x9, 257), 4u);
  EXPECT_EQ(last_order(F32Arithmetic::bf16x9, 4096, true), 5u);
  EXPECT_EQ(last_order(F32Arithmetic::bf16x6, 16), 2u);
  EXPECT_EQ(last_order(F32Arithmetic::f16x3, 16), 1u);
  EXPECT_EQ(constant(fma_config, gemm(64, 64, 16, DataType::f32), SPEC_LAST_ORDER), 0u);
}

TEST(Lower, TilingConstants) {
  const auto khr = lower_on_h200(khr_config, gemm(64, 64, 64)).product.key.constants;
  EXPECT_EQ(khr[SPEC_LOCAL_SIZE], 128u);
  EXPECT_EQ(khr[SPEC_TILE_M], 128u);
  EXPECT_EQ(khr[SPEC_TILE_K], 32u);
  EXPECT_EQ(khr[SPEC_FRAGMENT_K], 16u);
  EXPECT_EQ(khr[SPEC_SUBGROUPS_N], 2u);
  EXPECT_EQ(khr[SPEC_SUBTILES], 4u);
  EXPECT_EQ(khr[SPEC_SWIZZLE], 8u);
  EXPECT_EQ(khr[SPEC_PEEL], 1u);
  EXPECT_EQ(khr[SPEC_ROTATE], 0u);
  Config rotated = khr_config;
  test::set(rotated, "rotate", 1);
  EXPECT_EQ(constant(rotated, gemm(64, 64, 64), SPEC_ROTATE), 1u);
  Config ring = khr_config;
  descriptor(MainLoop::khr_ring).enter(ring);
  test::set(ring, "peel", 0);
  EXPECT_EQ(lower_on_h200(ring, gemm(64, 64, 64)).product.key.module, "gemm_khr_ring_f16");
  EXPECT_EQ(constant(ring, gemm(64, 64, 64), SPEC_PEEL), 0u);
  const auto nv = lower_on_h200(nv_config, gemm(64, 64, 64)).product.key.constants;
  EXPECT_EQ(nv[SPEC_TILE_N], 256u);
  EXPECT_EQ(nv[SPEC_UNROLL_K], 8u);
  // Loads element by element are not unrolled.
  EXPECT_EQ(constant(nv_config, gemm(64, 63, 64), SPEC_UNROLL_K), 1u);
  // Nothing that a shader might divide by is zero.
  for (const std::size_t id : {SPEC_FRAGMENT_M, SPEC_FRAGMENT_N, SPEC_FRAGMENT_K, SPEC_SUBGROUPS_M,
                               SPEC_SUBGROUPS_N, SPEC_SUBTILES, SPEC_SWIZZLE, SPEC_UNROLL_K}) {
    EXPECT_NE(nv[id], 0u) << spec_names[id];
  }
}

// With one push constant less than the largest block has, products and what adds their slices read
// their parameters in the workspace; other kernels have few.
TEST(Lower, ParametersInMemory) {
  const Config config = test::config("fma:tile=64x64x16,fragment=8x8,slices=3");
  const ResolvedProblem problem = resolve(gemm(64, 64, 64, DataType::f32)).value();
  DeviceCaps caps = test::h200();
  caps.limits.max_push_constant_bytes = gpu::most_parameter_bytes;
  const DispatchPlan enough = lower(config, problem, caps);
  EXPECT_FALSE(enough.product.in_memory);
  caps.limits.max_push_constant_bytes -= 4;
  const DispatchPlan few = lower(config, problem, caps);
  EXPECT_TRUE(few.product.in_memory);
  EXPECT_EQ(few.product.key.module, "gemm_fma_f32_in_memory");
  EXPECT_EQ(few.product.key.constants, enough.product.key.constants);
  EXPECT_TRUE(few.after.front().in_memory);
  EXPECT_EQ(few.after.front().key.module, "sum_slices_in_memory");
  EXPECT_EQ(offset_of(&Addresses::parameters, few.workspace), enough.workspace.bytes);
  EXPECT_EQ(few.workspace.bytes, enough.workspace.bytes + workspace_unit);

  // Behind the word for bad offsets they begin at a multiple of their alignment, too.
  Problem grouped = gemm(64, 64, 64, DataType::f32);
  grouped.grouping = Grouping{.groups = 3};
  const Config one_slice = test::config("fma:tile=64x64x16,fragment=8x8");
  const DispatchPlan groups = lower(one_slice, resolve(grouped).value(), caps);
  EXPECT_EQ(groups.product.key.module, "grouped_fma_f32_in_memory");
  EXPECT_EQ(offset_of(&Addresses::bad_group, groups.workspace), 0u);
  EXPECT_EQ(offset_of(&Addresses::parameters, groups.workspace), workspace_unit);
}

TEST(Lower, SplitK) {
  Config config = khr_config;
  config.slices = 5;
  Problem problem = gemm(200, 130, 100);
  problem.batch = 3;
  problem.epilogue = {.alpha = 2.0f, .activation = Activation::relu};
  const DispatchPlan kernel = lower_on_h200(config, problem);
  EXPECT_EQ(kernel.product.key.module, "gemm_khr_f16");
  EXPECT_EQ(kernel.product.key.constants[SPEC_SPLIT], std::uint32_t{SPLIT_TWO_DISPATCHES});
  EXPECT_EQ(kernel.product.key.constants[SPEC_ACTIVATION], 0u) << "is the second step's";
  ASSERT_EQ(kernel.product.dispatches.size(), 1u);
  EXPECT_EQ(kernel.product.dispatches[0], (Dispatch{.tiles = 4, .batches = 3, .slices = 5}));
  EXPECT_EQ(kernel.product.gemm().slices, 5u);
  // Rows are padded to 16 bytes, and the whole to 256.
  EXPECT_EQ(kernel.workspace.bytes, 3u * 5 * 200 * 132 * 4 + 128);
  EXPECT_EQ(kernel.after.front().key.module, "sum_slices");
  EXPECT_EQ(kernel.after.front().key.constants[SPEC_SPLIT], std::uint32_t{SPLIT_NONE});
  EXPECT_EQ(kernel.after.front().key.constants[SPEC_ACTIVATION],
            static_cast<std::uint32_t>(Activation::relu));
  ASSERT_EQ(kernel.after.front().dispatches.size(), 1u);
  EXPECT_EQ(kernel.after.front().dispatches[0],
            (Dispatch{.tiles = (200 * 33 + 63) / 64, .batches = 3}));

  // One pipeline adds for all tiles, and one multiplies for all epilogues.
  Config other = test::config("fma:tile=64x64x16,fragment=8x8,slices=2");
  EXPECT_EQ(lower_on_h200(other, problem).after.front().key, kernel.after.front().key);
  problem.epilogue.activation = Activation::none;
  EXPECT_EQ(lower_on_h200(config, problem).product.key, kernel.product.key);

  // A slice of whole steps is not always one of whole unrolled steps.
  Config unrolled = nv_config;
  EXPECT_EQ(constant(unrolled, gemm(128, 256, 512), SPEC_K_TAIL), 0u);
  unrolled.slices = 2;
  EXPECT_EQ(constant(unrolled, gemm(128, 256, 512), SPEC_K_TAIL), 1u);

  // The last workgroup of a tile has the epilogue, and words to count in, which are set to zero.
  config.reduction_mode = ReductionMode::last_arriver;
  problem.epilogue.activation = Activation::relu;
  const DispatchPlan last = lower_on_h200(config, problem);
  EXPECT_TRUE(last.after.empty());
  EXPECT_EQ(last.product.key.module, "gemm_split_khr_f16");
  EXPECT_EQ(last.product.key.constants[SPEC_SPLIT], std::uint32_t{SPLIT_LAST_ARRIVER});
  EXPECT_EQ(last.product.key.constants[SPEC_ACTIVATION],
            static_cast<std::uint32_t>(Activation::relu));
  EXPECT_EQ(last.product.dispatches, kernel.product.dispatches);
  EXPECT_EQ(offset_of(&Addresses::partial, last.workspace), 0u);
  EXPECT_EQ(offset_of(&Addresses::control, last.workspace), kernel.workspace.bytes);
  EXPECT_EQ(last.workspace.bytes, kernel.workspace.bytes + 256);
  ASSERT_EQ(last.before.size(), 1u);
  EXPECT_EQ(last.before[0].key.module, "reset");
  EXPECT_EQ(std::get<gpu::ResetParams>(last.before[0].params).control_words,
            CONTROL_WORDS + 4u * 3);

  // Workgroups that wait for one another come as one dispatch, with the last arrivers behind them.
  config.reduction_mode = ReductionMode::device_barrier;
  const DispatchPlan waiting = lower_on_h200(config, problem);
  EXPECT_EQ(waiting.product.key.constants[SPEC_SPLIT], std::uint32_t{SPLIT_DEVICE_BARRIER});
  EXPECT_EQ(waiting.product.key.constants[SPEC_GUARDED], 0u);
  ASSERT_EQ(waiting.product.dispatches.size(), 1u);
  EXPECT_EQ(waiting.product.dispatches[0], (Dispatch{.tiles = 4 * 3 * 5, .batches = 1}));
  EXPECT_EQ(waiting.product.gemm().batch, 3u);
  EXPECT_EQ(waiting.product.key.constants[SPEC_SPIN_LIMIT], default_spin_limit);
  ASSERT_FALSE(waiting.after.empty());
  EXPECT_EQ(waiting.after.front().dispatches, last.product.dispatches);
  PipelineKey guarded = last.product.key;
  guarded.constants[SPEC_GUARDED] = 1;
  EXPECT_EQ(waiting.after.front().key, guarded);
  config.workgroups = 7;
  EXPECT_EQ(lower_on_h200(config, problem).product.dispatches[0].tiles, 7u);

  const DispatchPlan whole = lower_on_h200(khr_config, problem);
  EXPECT_TRUE(whole.after.empty());
  EXPECT_EQ(whole.workspace.bytes, 0u);
}

TEST(Lower, Packs) {
  Config config = khr_config;
  config.pack_a = true;
  Problem problem = gemm(200, 130, 100);
  problem.batch = 3;
  problem.b.batch_stride = 0;
  const DispatchPlan one = lower_on_h200(config, problem);
  ASSERT_EQ(one.before.size(), 1u);
  const Step& a = one.before[0];
  EXPECT_EQ(a.copied, &Addresses::a);
  EXPECT_EQ(a.key.module, "pack");
  EXPECT_EQ(a.key.constants[SPEC_A_COL_MAJOR], 0u) << "K becomes the outer direction";
  const auto& params = std::get<gpu::PackParams>(a.params);
  EXPECT_EQ(params.width, 200u);
  EXPECT_EQ(params.depth, 100u);
  EXPECT_EQ(params.copy_depth, 100u) << "B is as deep as ever";
  EXPECT_EQ(params.source_ld, 100u);
  EXPECT_EQ(params.copy_ld, 256u) << "rows begin at cache lines";
  EXPECT_EQ(params.copy_batch, 256u * 100 * 2);
  ASSERT_EQ(a.dispatches.size(), 1u);
  EXPECT_EQ(a.dispatches[0], (Dispatch{.tiles = 4 * 2, .batches = 3}));
  EXPECT_EQ(one.workspace.bytes, 3u * 256 * 100 * 2);
  EXPECT_EQ(one.product.key.constants[SPEC_A_COL_MAJOR], 1u);
  EXPECT_EQ(one.product.key.constants[SPEC_A_PADDED], 1u);
  EXPECT_EQ(one.product.key.constants[SPEC_K_TAIL], 1u);
  EXPECT_EQ(one.product.gemm().lda, 256u);
  EXPECT_EQ(one.product.gemm().m, 200u);

  config.pack_b = true;
  config.slices = 2;
  const DispatchPlan both = lower_on_h200(config, problem);
  ASSERT_EQ(both.before.size(), 2u);
  EXPECT_EQ(both.before[1].copied, &Addresses::b);
  EXPECT_EQ(both.before[1].dispatches[0].batches, 1u) << "one for all";
  EXPECT_EQ(offset_of(&Addresses::a, both.workspace), 0u);
  EXPECT_EQ(offset_of(&Addresses::b, both.workspace), 3u * 256 * 128 * 2);
  EXPECT_EQ(both.product.gemm().k, 128u) << "whole k-tiles";
  EXPECT_EQ(both.product.key.constants[SPEC_K_TAIL], 0u);
  const std::uint64_t copies = (3u * 256 + 192) * 128 * 2;
  EXPECT_EQ(offset_of(&Addresses::partial, both.workspace), copies);
  EXPECT_EQ(both.workspace.bytes, copies + 2u * 3 * 200 * 132 * 4);
}

// A loop and a type have all kernels, or none: legality asks for one of them.
TEST(Lower, HasEveryKernelOfALoopAndAType) {
  for (const LoopDescriptor* loop : main_loops()) {
    for (const Input* input : inputs()) {
      const bool any = has_kernels(loop->loop, *input);
      const auto is_there = [&](std::string_view kernel) {
        return !module_name(kernel, loop->loop, *input).empty();
      };
      const auto what = concat(loop->name, ' ', input->name);
      EXPECT_EQ(is_there("gemm"), any) << what;
      EXPECT_EQ(is_there("grouped"), any) << what;
      EXPECT_EQ(is_there("pack"), any && loop->takes_fragments()) << what;
      EXPECT_EQ(is_there("gemm_split"), any && loop->shows_stores) << what;
      EXPECT_EQ(is_there("reduce_tiles"), any && loop->keeps_values) << what;
    }
  }
}

TEST(Lower, EdgesAndTails) {
  EXPECT_EQ(constant(khr_config, gemm(256, 128, 64), SPEC_EDGES), 0u);
  EXPECT_EQ(constant(khr_config, gemm(255, 128, 64), SPEC_EDGES), 1u);
  EXPECT_EQ(constant(khr_config, gemm(256, 136, 64), SPEC_EDGES), 1u);
  EXPECT_EQ(constant(khr_config, gemm(256, 128, 64), SPEC_K_TAIL), 0u);
  EXPECT_EQ(constant(khr_config, gemm(256, 128, 80), SPEC_K_TAIL), 1u);
  EXPECT_EQ(constant(khr_config, gemm(256, 128, 0), SPEC_K_TAIL), 0u);
  EXPECT_EQ(constant(nv_config, gemm(128, 256, 256), SPEC_K_TAIL), 0u);
  EXPECT_EQ(constant(nv_config, gemm(128, 256, 32), SPEC_K_TAIL), 1u)
      << "not a whole unrolled step";
}

TEST(Lower, LoadVectors) {
  EXPECT_EQ(constant(khr_config, gemm(64, 64, 64), SPEC_A_VECTOR), 8u);
  EXPECT_EQ(constant(khr_config, gemm(64, 64, 60), SPEC_A_VECTOR), 0u);
  EXPECT_EQ(constant(khr_config, gemm(64, 60, 64), SPEC_B_VECTOR), 0u);
  EXPECT_EQ(constant(fma_config, gemm(64, 64, 60, DataType::f32), SPEC_A_VECTOR), 4u);
  EXPECT_EQ(constant(fma_config, gemm(64, 64, 62, DataType::f32), SPEC_A_VECTOR), 0u);
  EXPECT_EQ(constant(fma_config, gemm(64, 64, 60, DataType::f16), SPEC_A_VECTOR), 0u);
  Problem p = gemm(64, 64, 64);
  p.a.alignment = 8;
  EXPECT_EQ(constant(khr_config, p, SPEC_A_VECTOR), 0u);
  // nv: a power of two that divides the leading dimension.
  for (const std::uint64_t k : {8u, 24u, 16u, 48u, 64u, 4096u, 4104u, 12u}) {
    const std::uint32_t vector = constant(nv_config, gemm(64, 64, k), SPEC_A_VECTOR);
    if (k % 8 != 0) {
      EXPECT_EQ(vector, 0u) << k;
      continue;
    }
    EXPECT_GE(vector, 8u) << k;
    EXPECT_EQ(vector & (vector - 1), 0u) << k;
    EXPECT_EQ(k % vector, 0u) << k;
  }
}

TEST(Lower, EpilogueVectors) {
  const auto d_vector = [](const Config& config, Matrix d, std::uint64_t n) {
    Problem p = gemm(64, n, 64);
    p.d = d;
    return constant(config, p, SPEC_D_VECTOR);
  };
  EXPECT_EQ(d_vector(khr_config, {.type = DataType::f16}, 64), 1u);
  EXPECT_EQ(d_vector(khr_config, {.type = DataType::f16}, 60), 1u);
  EXPECT_EQ(d_vector(khr_config, {.type = DataType::f16}, 62), 0u);
  EXPECT_EQ(d_vector(khr_config, {.type = DataType::f16, .ld = 66}, 64), 0u);
  EXPECT_EQ(d_vector(khr_config, {.type = DataType::f16, .alignment = 8}, 64), 1u);
  EXPECT_EQ(d_vector(khr_config, {.type = DataType::f16, .alignment = 4}, 64), 0u);
  EXPECT_EQ(d_vector(fma_config, {.type = DataType::f32, .alignment = 8}, 64), 0u);
  EXPECT_EQ(d_vector(fma_config, {.type = DataType::f32}, 60), 1u);
  EXPECT_EQ(d_vector(nv_config, {.type = DataType::f32}, 64), 0u) << "nv has no use for it";
}

TEST(Lower, SlicesOf16BitsWhereDIsAllThatIsStored) {
  const auto narrow = [](auto change) {
    Problem p = gemm(256, 256, 64);
    Config c = test::config(
        "khr_direct:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,"
        "pack=ab");
    DeviceCaps caps = test::h200();
    change(p, c, caps);
    return lower(c, resolved(p), caps).product.key.constants[SPEC_NARROW_SLICES];
  };
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.epilogue.alpha = 2.0f; }), 1u);
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.d.type = DataType::bf16; }), 1u);
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.d.type = DataType::f32; }), 0u);
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.n = 252; }), 0u);
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.d.ld = 260; }), 0u);
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.d.alignment = 8; }), 0u);
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.epilogue.beta = 1.0f; }), 0u);
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.epilogue.bias = Bias::along_n; }), 0u);
  EXPECT_EQ(narrow([](Problem& p, Config&, DeviceCaps&) { p.epilogue.clamp_max = 6.0f; }), 0u);
  EXPECT_EQ(
      narrow([](Problem& p, Config&, DeviceCaps&) { p.epilogue.activation = Activation::relu; }),
      0u);
  EXPECT_EQ(narrow([](Problem&, Config& c, DeviceCaps&) { c.slices = 2; }), 0u);
  EXPECT_EQ(narrow([](Problem&, Config& c, DeviceCaps&) {
              std::get<KhrDirectLoop>(c.loop).subgroups_k = 2;
            }),
            0u);
  EXPECT_EQ(narrow([](Problem&, Config&, DeviceCaps& caps) { caps.fragment_shapes.clear(); }), 0u);
}

TEST(Lower, WhatIsNotUsedDoesNotMakeAnotherPipeline) {
  const Problem plain = gemm(64, 64, 64);
  Problem same = plain;
  same.c = {.type = DataType::f32, .ld = 100};
  same.aux = {.type = DataType::bf16, .ld = 77};
  same.epilogue.bias_type = DataType::bf16;
  same.epilogue.alpha = 3.0f;
  same.m = 128 - 64;
  for (const Config& config : {nv_config, khr_config, fma_config}) {
    const PipelineKey a = lower_on_h200(config, plain).product.key;
    const PipelineKey b = lower_on_h200(config, same).product.key;
    EXPECT_EQ(a, b);
    EXPECT_EQ(PipelineKeyHash{}(a), PipelineKeyHash{}(b));
  }
  // Dynamic sizes share one pipeline, static ones do not.
  EXPECT_EQ(lower_on_h200(khr_config, gemm(128, 128, 64)).product.key,
            lower_on_h200(khr_config, gemm(1280, 256, 640)).product.key);
  Config fixed = khr_config;
  fixed.static_shape = true;
  const auto constants = lower_on_h200(fixed, gemm(1280, 256, 640)).product.key.constants;
  EXPECT_EQ(constants[SPEC_STATIC_N], 256u);
  EXPECT_EQ(constants[SPEC_STATIC_K], 640u);
  EXPECT_EQ(constants[SPEC_STATIC_LDA], 640u);
  EXPECT_EQ(constants[SPEC_STATIC_LDB], 256u);
}

TEST(Lower, EpilogueConstants) {
  Problem p = gemm(64, 64, 64);
  auto constants = lower_on_h200(khr_config, p).product.key.constants;
  EXPECT_EQ(constants[SPEC_C_TYPE], TYPE_NONE + 0u);
  EXPECT_EQ(constants[SPEC_D_TYPE], TYPE_F16 + 0u);
  EXPECT_EQ(constants[SPEC_AUX_TYPE], TYPE_NONE + 0u);
  EXPECT_EQ(constants[SPEC_BIAS_TYPE], TYPE_NONE + 0u);
  EXPECT_EQ(constants[SPEC_CLAMP], 0u);
  p.c.type = DataType::bf16;
  p.d.type = DataType::f32;
  p.aux.type = DataType::f16;
  p.epilogue = {.beta = 0.5f,
                .bias = Bias::along_m,
                .bias_type = DataType::f16,
                .activation = Activation::tanh,
                .aux = true,
                .clamp_max = 6.0f};
  constants = lower_on_h200(khr_config, p).product.key.constants;
  EXPECT_EQ(constants[SPEC_C_TYPE], TYPE_BF16 + 0u);
  EXPECT_EQ(constants[SPEC_D_TYPE], TYPE_F32 + 0u);
  EXPECT_EQ(constants[SPEC_AUX_TYPE], TYPE_F16 + 0u);
  EXPECT_EQ(constants[SPEC_BIAS_TYPE], TYPE_F16 + 0u);
  EXPECT_EQ(constants[SPEC_BIAS], BIAS_ALONG_M + 0u);
  EXPECT_EQ(constants[SPEC_ACTIVATION], static_cast<std::uint32_t>(Activation::tanh));
  EXPECT_EQ(constants[SPEC_CLAMP], 1u);
}

TEST(Lower, Parameters) {
  Problem p = gemm(10, 20, 30);
  p.batch = 2;
  p.a.ld = 40;
  p.a.batch_stride = 5'000'000'000;  // in bytes it doesn't fit 32 bits, nor do the elements
  p.d = {.type = DataType::f32, .ld = 22};
  p.epilogue = {.alpha = 1.25f,
                .beta = -0.5f,
                .bias = Bias::along_n,
                .bias_batch_stride = 20,
                .clamp_min = -1.0f};
  p.c.batch_stride = 0;
  const DispatchPlan kernel = lower_on_h200(fma_config, p);
  EXPECT_EQ(kernel.product.gemm().m, 10u);
  EXPECT_EQ(kernel.product.gemm().n, 20u);
  EXPECT_EQ(kernel.product.gemm().k, 30u);
  EXPECT_EQ(kernel.product.gemm().lda, 40u);
  EXPECT_EQ(kernel.product.gemm().ldb, 20u);
  EXPECT_EQ(kernel.product.gemm().ldc, 20u);
  EXPECT_EQ(kernel.product.gemm().ldd, 22u);
  EXPECT_EQ(kernel.product.gemm().a_batch, 10'000'000'000u);
  EXPECT_EQ(kernel.product.gemm().b_batch, 30u * 20 * 2);
  EXPECT_EQ(kernel.product.gemm().c_batch, 0u);
  EXPECT_EQ(kernel.product.gemm().d_batch, 220u * 4);
  EXPECT_EQ(kernel.product.gemm().bias_batch, 80u);
  EXPECT_EQ(kernel.product.gemm().alpha, 1.25f);
  EXPECT_EQ(kernel.product.gemm().beta, -0.5f);
  EXPECT_EQ(kernel.product.gemm().clamp_min, -1.0f);
  EXPECT_EQ(kernel.product.gemm().clamp_max, std::numeric_limits<float>::infinity());
  ASSERT_EQ(kernel.product.dispatches.size(), 1u);
  EXPECT_EQ(kernel.product.dispatches[0], (Dispatch{.tiles = 1, .batches = 2}));
  EXPECT_EQ(kernel.workspace.bytes, 0u);
}

TEST(Lower, KeysThatDifferHashDifferently) {
  std::unordered_set<std::size_t> hashes;
  PipelineKey key = lower_on_h200(khr_config, gemm(64, 64, 64)).product.key;
  hashes.insert(PipelineKeyHash{}(key));
  for (std::uint32_t& value : key.constants) {
    for (const std::uint32_t flip : {1u, 0x80000000u}) {
      value ^= flip;
      EXPECT_TRUE(hashes.insert(PipelineKeyHash{}(key)).second);
      value ^= flip;
    }
  }
}

}  // namespace
}  // namespace vkgemm
