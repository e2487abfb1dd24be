// Tests grouped problems without a device: refusals, parameters of dispatches, and the oracle.
// grouped_choice_test.cpp tests the choices of the tables, group_map_test.cpp the map from slots to
// groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "expectations.hpp"
#include "kernels/dispatch_plan.hpp"
#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "oracle/groups.hpp"
#include "oracle/reference.hpp"
#include "problem/convert.hpp"
#include "problem/row_index.hpp"
#include "runtime/operand_check.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::depth_in_groups;
using test::gemm;
using test::khr_config;
using test::lowered;
using test::reason;
using test::resolved;
using test::rows_in_groups;
using test::touched_bytes;

// --- resolve
// --------------------------------------------------------------------------------------------------

TEST(ResolveGrouped, ErrorsNameFieldAndValue) {
  const test::ErrorCase cases[] = {
      {[](Problem& p) { p.grouping->groups = 65536; }, Status::invalid_argument,
       "grouping.groups is 65536: at most 65535 are supported"},
      {[](Problem& p) { p.batch = 3; }, Status::unsupported,
       "batch is 3: with grouping it must be 1"},
      {[](Problem& p) { p.batch = 0; }, Status::unsupported,
       "batch is 0: with grouping it must be 1"},
      {[](Problem& p) { p.split_k.slices = 2; }, Status::unsupported,
       "split_k.slices is 2: with grouping it must be 0 or 1"},
      {[](Problem& p) { p.grouping->along = GroupAlong::k; }, Status::unsupported,
       "grouping.b is per_group and grouping.along is k"},
      {[](Problem& p) { p.d.layout = Layout::col_major; }, Status::unsupported,
       "d.layout is col_major and grouping.along is m: D must be row_major"},
      {[](Problem& p) {
         p.epilogue.bias = Bias::along_m;
         p.epilogue.bias_batch_stride = 7;
       },
       Status::invalid_argument,
       "epilogue.bias_batch_stride is 7: with grouping.along m, a bias along_m is one for all"},
      {[](Problem& p) { p.grouping->offsets = static_cast<OffsetType>(2); },
       Status::invalid_argument, "grouping.offsets is 2: no such enumerator"},
      {[](Problem& p) { p.grouping->along = static_cast<GroupAlong>(2); }, Status::invalid_argument,
       "grouping.along is 2: no such enumerator"},
      {[](Problem& p) { p.grouping->b = static_cast<GroupedB>(2); }, Status::invalid_argument,
       "grouping.b is 2: no such enumerator"},
      {[](Problem& p) { p.b.batch_stride = UINT64_MAX; }, Status::invalid_argument,
       "b.batch_stride is 18446744073709551615"},
      {[](Problem& p) {
         p.epilogue.bias = Bias::along_n;
         p.epilogue.bias_batch_stride = UINT64_MAX;
       },
       Status::invalid_argument, "epilogue.bias_batch_stride is 18446744073709551615"},
      {[](Problem& p) {
         p.grouping = Grouping{.groups = 5, .along = GroupAlong::k};
         p.d.batch_stride = 0;
       },
       Status::invalid_argument,
       "d.batch_stride is 0: the 5 matrices of the groups would overwrite each other"},
      {[](Problem& p) {
         p.grouping = Grouping{.groups = 5, .along = GroupAlong::k};
         p.d.batch_stride = 23;
       },
       Status::invalid_argument,
       "d.batch_stride is 23: the matrices of the groups would overlap, at least 24 is needed"},
  };
  test::expect_errors(rows_in_groups(4, 6, 8, 5), cases);
}

TEST(ResolveGrouped, OperandsOfRows) {
  Problem p = rows_in_groups(100, 6, 8, 5);
  p.epilogue = {.beta = 1.0f, .bias = Bias::along_n, .bias_batch_stride = 10};
  const ResolvedProblem r = resolved(p);
  EXPECT_EQ(r.batch, 1u);
  EXPECT_EQ(r.a.bytes, 100u * 8 * 2);
  EXPECT_EQ(r.b.batch_stride, 48u);
  EXPECT_EQ(r.b.bytes, 5u * 48 * 2);
  EXPECT_EQ(r.c.bytes, 100u * 6 * 2);
  EXPECT_EQ(r.d.bytes, 100u * 6 * 2);
  EXPECT_EQ(touched_bytes(r, OperandId::bias), (4u * 10 + 6) * 4);
  EXPECT_EQ(r.typical_m(), 20u);
  EXPECT_EQ(r.typical_k(), 8u);
  p.grouping->b = GroupedB::shared;
  EXPECT_EQ(resolved(p).b.batch_stride, 0u);
  EXPECT_EQ(resolved(p).b.bytes, 48u * 2);
  p.grouping->groups = 0;
  EXPECT_TRUE(resolved(p).is_empty());
  EXPECT_EQ(resolved(p).d.bytes, 0u);
}

TEST(ResolveGrouped, OperandsOfDepth) {
  Problem p = depth_in_groups(4, 6, 100, 5);
  p.a.layout = Layout::col_major;
  p.epilogue = {.beta = 1.0f, .bias = Bias::along_n, .bias_batch_stride = 6, .aux = true};
  p.c.batch_stride = 0;
  ResolvedProblem r = resolved(p);
  EXPECT_EQ(r.batch, 5u) << "as many products, with one A and one B";
  EXPECT_EQ(r.a.bytes, 4u * 100 * 2);
  EXPECT_EQ(r.a.batch_stride, 0u);
  EXPECT_EQ(r.b.bytes, 100u * 6 * 2);
  EXPECT_EQ(r.b.batch_stride, 0u);
  EXPECT_EQ(r.c.bytes, 24u * 2);
  EXPECT_EQ(r.d.bytes, 5u * 24 * 2);
  EXPECT_EQ(r.aux.batch_stride, 24u);
  EXPECT_EQ(touched_bytes(r, OperandId::bias), 5u * 6 * 4);
  EXPECT_EQ(r.typical_m(), 4u);
  EXPECT_EQ(r.typical_k(), 20u);

  p.c.layout = p.d.layout = p.aux.layout = Layout::col_major;
  r = resolved(p);
  EXPECT_TRUE(r.transposed);
  EXPECT_EQ(r.m, 6u);
  EXPECT_EQ(r.epilogue.bias, Bias::along_m);
  EXPECT_EQ(touched_bytes(r, OperandId::bias), 5u * 6 * 4);
}

TEST(ResolveGrouped, GroupsThatCutRowsForbidVectors) {
  constexpr Layout row = Layout::row_major;
  constexpr Layout col = Layout::col_major;
  for (const Layout a : {row, col}) {
    for (const Layout b : {row, col}) {
      Problem p = rows_in_groups(64, 64, 64, 5);
      p.a.layout = a;
      p.b.layout = b;
      EXPECT_EQ(resolved(p).a_allows_vectors(), a == row);
      EXPECT_TRUE(resolved(p).b_allows_vectors());
      p.grouping = Grouping{.groups = 5, .along = GroupAlong::k};
      EXPECT_EQ(resolved(p).a_allows_vectors(), a == col);
      EXPECT_EQ(resolved(p).b_allows_vectors(), b == row);
      p.grouping.reset();
      EXPECT_TRUE(resolved(p).a_allows_vectors() && resolved(p).b_allows_vectors());
      p.a.alignment = 2;
      EXPECT_FALSE(resolved(p).a_allows_vectors());
    }
  }
}

TEST(ResolveGrouped, OffsetsAreAnOperand) {
  Problem p = rows_in_groups(4, 6, 8, 5);
  p.grouping->offsets = OffsetType::int64;
  const OperandRules rules(resolved(p), 4);
  constexpr std::uint64_t mib = 1 << 20;
  Operands operands{.a = {1 * mib, mib},
                    .b = {2 * mib, mib},
                    .d = {3 * mib, mib},
                    .offsets = {4 * mib, 48},
                    .workspace = {5 * mib, 4}};
  EXPECT_TRUE(rules.check(operands));
  Addresses at;
  rules.bind(operands, at);
  EXPECT_EQ(at.offsets, 4 * mib);
  EXPECT_EQ(at.workspace, 5 * mib);
  operands.offsets.bytes = 47;
  EXPECT_TRUE(contains(rules.check(operands).error().message,
                       "offsets.bytes is 47, the problem touches 48"));
  operands.offsets = {4 * mib + 4, 48};
  EXPECT_EQ(rules.check(operands).error().status, Status::misaligned);
  operands.offsets = {3 * mib, 48};
  EXPECT_EQ(rules.check(operands).error().status, Status::overlapping_operands);
}

// --- legality and what is lowered
// -----------------------------------------------------------------------------

TEST(LegalityGrouped, NamesWhatDoesNotGoTogether) {
  const std::string khr = to_string(khr_config);
  const Problem rows = rows_in_groups(500, 512, 512, 9);
  EXPECT_EQ(reason(khr, rows), "");
  EXPECT_EQ(reason(khr + ",schedule=persistent", rows), "");
  EXPECT_EQ(reason(khr + ",schedule=persistent,workgroups=7", rows), "");
  EXPECT_EQ(
      reason(khr + ",workgroups=7", rows),
      "workgroups is 7: only reduction_mode device_barrier and schedule persistent have a number "
      "of their own");
  EXPECT_EQ(reason(khr + ",slices=2", rows), "slices is 2: not built for grouped problems");
  EXPECT_EQ(reason(khr + ",pack=a", rows), "pack: not built for grouped problems on main loop khr");
  EXPECT_EQ(reason(khr + ",schedule=persistent", gemm(64, 64, 64)),
            "schedule is persistent: only grouped problems have it");
  const Problem depth = depth_in_groups(1 << 20, 1 << 20, 64, 65535);
  EXPECT_EQ(reason(khr + ",schedule=persistent", depth),
            "schedule is persistent: 67108864 tiles in each of 65535 groups, at most 2147483647 "
            "can be numbered");
  EXPECT_TRUE(
      contains(reason(khr, rows_in_groups(2147483647, 2147483647, 64, 1)), "can be numbered"));
}

// The main loop of packed operands.
constexpr std::string_view direct_text =
    "khr_direct:tile=128x64x32,fragment=16x16x16,subgroups=2x1,subgroup_size=32,subtiles=4,pack=ab";

DeviceCaps trusted_h200() { return trusting(test::h200()); }

std::string direct_reason(const Problem& problem, std::string_view changes = "") {
  const Config config = test::config(std::string(direct_text) + std::string(changes));
  return why_illegal(config, resolved(problem), trusted_h200()).value_or("");
}

TEST(LegalityGrouped, PacksForTheDirectLoop) {
  Problem rows = rows_in_groups(500, 512, 512, 9);
  const Problem depth = depth_in_groups(500, 512, 512, 9);
  for (const std::string_view schedule :
       {"", ",schedule=persistent", ",schedule=persistent,workgroups=7"}) {
    EXPECT_EQ(direct_reason(rows, schedule), "");
    EXPECT_EQ(direct_reason(depth, schedule), "");
  }
  EXPECT_EQ(direct_reason(rows, ",slices=2"), "slices is 2: not built for grouped problems");
  const Config one = [] {
    Config c = test::config(direct_text);
    c.pack_b = false;
    return c;
  }();
  EXPECT_EQ(why_illegal(one, resolved(rows), trusted_h200()),
            "pack is a: main loop khr_direct takes B packed");
  // Rows of A in slots, and B's matrices, each as deep as whole k-tiles.
  EXPECT_EQ(direct_reason(rows_in_groups(2147483647, 64, 70, 1)),
            "pack is ab: 1 copies of 2147483648 by 96 elements are too large");
  EXPECT_EQ(direct_reason(depth_in_groups(64, 64, 2147483647, 1)),
            "pack is ab: 1 copies of 64 by 2147483648 elements are too large");
  EXPECT_EQ(direct_reason(rows_in_groups(64, 1 << 20, 4096, 65535)),
            "pack is ab: 65535 copies of 1048576 by 4096 elements are too large");
  rows.gated = Gated{};
  EXPECT_EQ(direct_reason(rows), "");
}

TEST(LowerGrouped, PacksRowsBySlots) {
  Problem p = rows_in_groups(1000, 130, 100, 9);
  p.grouping->offsets = OffsetType::int64;
  p.a.layout = Layout::col_major;
  const Config config = test::config(direct_text);
  DispatchPlan kernel = lower(config, resolved(p), trusted_h200());
  ASSERT_EQ(kernel.before.size(), 2u);
  const std::uint32_t slots = 1000 / 128 + 9;
  const Step& a = kernel.before[0];
  EXPECT_EQ(a.key.module, "pack_khr_direct_f16");
  EXPECT_EQ(a.key.constants[SPEC_GROUPED], std::uint32_t{GROUPED_ALONG_M});
  EXPECT_EQ(a.key.constants[SPEC_OFFSETS_64], 1u);
  EXPECT_EQ(a.key.constants[SPEC_TILE_M], 128u);
  EXPECT_EQ(a.key.constants[SPEC_TILE_K], 1u) << "one pipeline for all";
  EXPECT_EQ(a.key.constants[SPEC_A_VECTOR], 0u) << "groups begin at any row";
  const auto& from = a.block<gpu::PackParams>();
  EXPECT_EQ(from.groups, 9u);
  EXPECT_EQ(from.candidates, 64u);
  EXPECT_EQ(from.width, 1000u);
  EXPECT_EQ(from.depth, 100u);
  EXPECT_EQ(from.copy_ld, slots * 128);
  EXPECT_EQ(from.copy_depth, 128u);
  EXPECT_EQ(a.dispatches.at(0), (Dispatch{.tiles = slots * 2 * 2, .batches = 1}));
  const Step& b = kernel.before[1];
  EXPECT_EQ(b.key.constants[SPEC_GROUPED], std::uint32_t{GROUPED_NONE});
  EXPECT_EQ(b.key.constants[SPEC_TILE_M], 1u);
  EXPECT_EQ(b.dispatches.at(0), (Dispatch{.tiles = 3 * 2, .batches = 9}));
  EXPECT_EQ(b.block<gpu::PackParams>().copy_batch, 192u * 128 * 2);
  EXPECT_EQ(kernel.product.key.module, "grouped_khr_direct_f16");
  EXPECT_EQ(kernel.product.gemm().m, 1000u);
  EXPECT_EQ(kernel.product.gemm().k, 128u);
  EXPECT_EQ(kernel.product.gemm().lda, slots * 128);
  EXPECT_EQ(kernel.product.gemm().b_batch, 192u * 128 * 2);
  // A step and a tile are read beyond each.
  const std::uint64_t a_bytes = rounded_up((slots * 128 * 128 + (slots * 128 + 128) * 16) * 2, 256);
  const std::uint64_t b_bytes = (std::uint64_t{9} * 192 * 128 + (192 + 128) * 16) * 2;
  ASSERT_EQ(kernel.workspace.end() - kernel.workspace.begin(), 3);
  const WorkspacePart* const parts = kernel.workspace.begin();
  EXPECT_EQ(parts[0].address, &Addresses::bad_group);
  EXPECT_EQ(parts[0].offset, 0u);
  EXPECT_EQ(parts[1].address, &Addresses::a);
  EXPECT_EQ(parts[1].offset, 256u);
  EXPECT_EQ(parts[2].offset, 256 + a_bytes);
  EXPECT_EQ(kernel.workspace.bytes, 256 + a_bytes + b_bytes);

  p.grouping->b = GroupedB::shared;
  p.a.layout = Layout::row_major;
  p.k = 104;
  kernel = lower(config, resolved(p), trusted_h200());
  EXPECT_EQ(kernel.before.at(0).key.constants[SPEC_A_VECTOR], 8u);
  EXPECT_EQ(kernel.before.at(1).dispatches.at(0).batches, 1u);
}

TEST(LowerGrouped, PacksDepthBySlots) {
  Problem p = depth_in_groups(130, 200, 1000, 9);
  const DispatchPlan kernel = lower(test::config(direct_text), resolved(p), trusted_h200());
  ASSERT_EQ(kernel.before.size(), 2u);
  const std::uint32_t depth = (1000 / 32 + 9) * 32;
  for (const Step& step : kernel.before) {
    EXPECT_EQ(step.key.constants[SPEC_GROUPED], std::uint32_t{GROUPED_ALONG_K});
    EXPECT_EQ(step.key.constants[SPEC_TILE_M], 1u);
    EXPECT_EQ(step.key.constants[SPEC_TILE_K], 32u);
    EXPECT_EQ(step.block<gpu::PackParams>().depth, 1000u);
    EXPECT_EQ(step.block<gpu::PackParams>().copy_depth, depth);
    EXPECT_EQ(step.dispatches.at(0).batches, 1u) << "one A and one B";
  }
  EXPECT_EQ(kernel.before[0].key.constants[SPEC_A_VECTOR], 0u) << "groups cut the rows of A";
  EXPECT_EQ(kernel.before[1].key.constants[SPEC_A_VECTOR], 8u);
  EXPECT_EQ(kernel.product.gemm().k, 1000u) << "offsets are clamped to it";
  p.k = 0;
  EXPECT_TRUE(lower(test::config(direct_text), resolved(p), trusted_h200()).before.empty());
}

TEST(LowerGrouped, Rows) {
  Problem p = rows_in_groups(1024, 512, 512, 9);
  p.epilogue = {.bias = Bias::along_n, .bias_batch_stride = 512};
  const DispatchPlan kernel = lowered(p);
  EXPECT_EQ(kernel.product.key.module, "grouped_khr_f16");
  EXPECT_EQ(kernel.product.key.constants[SPEC_GROUPED], std::uint32_t{GROUPED_ALONG_M});
  EXPECT_EQ(kernel.product.key.constants[SPEC_OFFSETS_64], 0u);
  EXPECT_EQ(kernel.product.key.constants[SPEC_PERSISTENT], 0u);
  EXPECT_EQ(kernel.product.key.constants[SPEC_EDGES], 1u) << "groups end anywhere";
  EXPECT_EQ(kernel.product.key.constants[SPEC_K_TAIL], 0u);
  EXPECT_EQ(kernel.product.key.constants[SPEC_A_VECTOR], 8u);
  EXPECT_EQ(kernel.product.block<gpu::GroupedParams>().groups, 9u);
  EXPECT_EQ(kernel.product.gemm().b_batch, 512u * 512 * 2);
  EXPECT_EQ(kernel.product.gemm().bias_batch, 512u * 4);
  EXPECT_EQ(kernel.workspace.bytes, 4u);
  ASSERT_EQ(kernel.product.dispatches.size(), 1u);
  EXPECT_EQ(kernel.product.dispatches[0], (Dispatch{.tiles = (8 + 9) * 4, .batches = 1}));
  p.max_workspace_bytes = 3;
  p.grouping->offsets = OffsetType::int64;
  p.a.layout = Layout::col_major;
  const DispatchPlan other = lowered(p);
  EXPECT_EQ(other.workspace.bytes, 0u);
  EXPECT_EQ(other.product.key.constants[SPEC_OFFSETS_64], 1u);
  EXPECT_EQ(other.product.key.constants[SPEC_A_VECTOR], 0u);
  // Dense pipelines know nothing of it.
  const DispatchPlan dense = lowered(gemm(1024, 512, 512));
  for (const std::size_t id : {SPEC_GROUPED, SPEC_OFFSETS_64, SPEC_PERSISTENT}) {
    EXPECT_EQ(dense.product.key.constants[id], 0u);
  }
}

TEST(LowerGrouped, Depth) {
  const Problem p = depth_in_groups(256, 128, 1024, 70000 / 2);
  const DispatchPlan kernel = lowered(p);
  EXPECT_EQ(kernel.product.key.constants[SPEC_GROUPED], std::uint32_t{GROUPED_ALONG_K});
  EXPECT_EQ(kernel.product.key.constants[SPEC_EDGES], 0u);
  EXPECT_EQ(kernel.product.key.constants[SPEC_K_TAIL], 1u);
  EXPECT_EQ(kernel.product.key.constants[SPEC_A_VECTOR], 0u);
  EXPECT_EQ(kernel.product.key.constants[SPEC_B_VECTOR], 8u);
  EXPECT_EQ(kernel.product.gemm().a_batch, 0u);
  EXPECT_EQ(kernel.product.gemm().d_batch, 256u * 128 * 2);
  ASSERT_EQ(kernel.product.dispatches.size(), 1u);
  EXPECT_EQ(kernel.product.dispatches[0], (Dispatch{.tiles = 2, .batches = 35000}));
}

TEST(LowerGrouped, PersistentWorkgroups) {
  Config c = khr_config;
  c.schedule = Schedule::persistent;
  const auto workgroups = [&](const Problem& p, const DeviceCaps& caps) {
    const DispatchPlan kernel = lower(c, resolved(p), caps);
    EXPECT_EQ(kernel.product.key.constants[SPEC_PERSISTENT], 1u);
    EXPECT_EQ(kernel.product.dispatches.size(), 1u);
    EXPECT_EQ(kernel.product.dispatches.at(0).batches, 1u);
    return kernel.product.dispatches.at(0).tiles;
  };
  const std::uint32_t all = workgroups(rows_in_groups(1 << 20, 4096, 64, 9), test::h200());
  EXPECT_GE(all, 132u);
  EXPECT_EQ(all % 132, 0u);
  EXPECT_EQ(workgroups(rows_in_groups(128, 128, 64, 1), test::h200()), 2u) << "no more than tiles";
  EXPECT_EQ(workgroups(depth_in_groups(256, 256, 64, 3), test::h200()), 12u);
  c.workgroups = 5;
  EXPECT_EQ(workgroups(rows_in_groups(1 << 20, 4096, 64, 9), test::h200()), 5u);
  DeviceCaps small = test::h200();
  small.limits.max_workgroup_count[0] = 3;
  EXPECT_EQ(workgroups(rows_in_groups(1 << 20, 4096, 64, 9), small), 3u);
}

// --- the reference
// --------------------------------------------------------------------------------------------

// Against sums written down here.
// Under a sanitizer: nothing is copied from nowhere.
TEST(ReferenceGrouped, NoOffsetsAreNone) {
  for (const OffsetType type : {OffsetType::int32, OffsetType::int64}) {
    EXPECT_TRUE(oracle::decode_offsets(nullptr, 0, type).empty());
  }
}

TEST(ReferenceGrouped, RowsAndDepth) {
  for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
    const bool rows = along == GroupAlong::m;
    Problem p = rows ? rows_in_groups(7, 2, 3, 4) : depth_in_groups(2, 3, 7, 4);
    p.grouping->offsets = OffsetType::int64;
    for (Matrix* matrix : {&p.a, &p.b, &p.c, &p.d}) matrix->type = DataType::f32;
    p.a.layout = Layout::col_major;
    p.epilogue.bias = Bias::along_n;
    p.epilogue.bias_batch_stride = 4;
    const std::vector<std::int64_t> offsets{1, 3, 3, 4, 9};  // the last one ends at 7
    const auto encoded = encode_integers(offsets, size_in_bytes(OffsetType::int64));
    const PerOperand<std::uint64_t> bytes = operand_bytes(p);
    const auto fill = [](std::uint64_t size, int factor) {
      std::vector<float> values(size / 4);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(static_cast<int>(i) * factor % 11 - 5);
      }
      return values;
    };
    const auto a = fill(bytes[OperandId::a], 3), b = fill(bytes[OperandId::b], 5),
               bias = fill(bytes[OperandId::bias], 7);
    std::vector<float> d(bytes[OperandId::d] / 4, 77.0f), expected = d;
    const oracle::HostOperands operands{{OperandId::a, a.data()},
                                        {OperandId::b, b.data()},
                                        {OperandId::bias, bias.data()},
                                        {OperandId::d, d.data()},
                                        {OperandId::offsets, encoded.data()}};
    oracle::compute_reference(p, operands, {{OperandId::d, d.data()}});
    for (std::size_t g = 0; g < 4; ++g) {
      const auto begin = static_cast<std::size_t>(offsets[g]);
      const std::size_t end = std::min<std::size_t>(static_cast<std::size_t>(offsets[g + 1]), 7);
      for (std::size_t i = rows ? begin : 0; i < (rows ? end : 2); ++i) {
        for (std::size_t j = 0; j < p.n; ++j) {
          float sum = bias[g * 4 + j];
          for (std::size_t k = rows ? 0 : begin; k < (rows ? 3 : end); ++k) {
            sum += a[k * p.m + i] * b[(rows ? g * 6 : 0) + k * p.n + j];
          }
          expected[(rows ? 0 : g * 6) + i * p.n + j] = sum;
        }
      }
    }
    EXPECT_EQ(d, expected);
    EXPECT_TRUE(oracle::verify(p, operands).passed());
    d[rows ? 6 * 2 : 3 * 6] += 1.0f;
    const auto report = oracle::verify(p, operands);
    EXPECT_EQ(report.failures, 1u);
    EXPECT_TRUE(contains(report.first_failure, "d[batch 3, ")) << report.first_failure;
  }
}

}  // namespace
}  // namespace vkgemm
