// Grouped problems, as far as no device is needed: what is refused, what a dispatch is told, and
// which group a slot belongs to.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

#include "kernels/dispatch_plan.hpp"
#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "runtime/operand_check.hpp"
#include "support/convert.hpp"
#include "support/groups.hpp"
#include "support/reference.hpp"
#include "test_devices.hpp"
#include "tuning/rank.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::resolved;

Problem of_rows(std::uint64_t m, std::uint64_t n, std::uint64_t k, std::uint32_t groups) {
  Problem p = gemm(m, n, k);
  p.grouping = {.groups = groups, .b = GroupedB::per_group};
  return p;
}

Problem of_depth(std::uint64_t m, std::uint64_t n, std::uint64_t k, std::uint32_t groups) {
  Problem p = gemm(m, n, k);
  p.grouping = {.groups = groups, .along = GroupAlong::k};
  return p;
}

// --- which group has a slot: the shader's own text
// ----------------------------------------------------------

namespace shader {

using uint = std::uint32_t;
uint TILE_M = 1;
std::vector<std::int64_t> offsets;
std::int64_t capacity = 0;

uint group_offset(uint group) {
  return static_cast<uint>(std::clamp<std::int64_t>(offsets.at(group), 0, capacity));
}

#include "lib/group_map.glsl"

}  // namespace shader

// Every row of every group in one tile, by all slots one after the other.
void expect_every_row_once(const std::vector<std::uint32_t>& sizes, std::uint32_t first,
                           std::uint32_t behind) {
  shader::offsets = {first};
  for (const std::uint32_t size : sizes) {
    shader::offsets.push_back(shader::offsets.back() + size);
  }
  shader::capacity = shader::offsets.back() + behind;
  const auto groups = static_cast<std::uint32_t>(sizes.size());
  std::vector<int> owner(static_cast<std::size_t>(shader::capacity), -1);
  const auto capacity = static_cast<std::uint32_t>(shader::capacity);
  for (std::uint32_t slot = 0; slot < shader::slot_count(capacity, groups); ++slot) {
    const std::uint32_t lanes = 1 + slot % 5;
    const std::uint32_t first_group = shader::first_candidate(slot, groups, lanes);
    ASSERT_LT(first_group, groups);
    std::uint32_t group = groups;
    for (std::uint32_t g = first_group; g < std::min(first_group + lanes, groups); ++g) {
      if (!shader::has_slot(g, slot)) continue;
      ASSERT_EQ(group, groups) << "two groups have slot " << slot;
      group = g;
    }
    if (group == groups) continue;
    const std::uint32_t end = shader::group_offset(group + 1);
    const std::uint32_t row =
        shader::group_offset(group) + (slot - shader::first_slot(group)) * shader::TILE_M;
    for (std::uint32_t i = row; i < std::min(row + shader::TILE_M, end); ++i) {
      ASSERT_EQ(owner.at(i), -1) << "row " << i << " twice";
      owner[i] = static_cast<int>(group);
    }
  }
  for (std::uint32_t g = 0; g < groups; ++g) {
    for (std::int64_t i = shader::offsets[g]; i < shader::offsets[g + 1]; ++i) {
      ASSERT_EQ(owner.at(static_cast<std::size_t>(i)), static_cast<int>(g)) << "row " << i;
      owner[static_cast<std::size_t>(i)] = -1;
    }
  }
  for (const int left : owner) ASSERT_EQ(left, -1) << "a row of no group";
}

TEST(GroupMap, AllSmallGroups) {
  for (const std::uint32_t tile : {1u, 2u, 3u, 4u}) {
    shader::TILE_M = tile;
    // All five-tuples of sizes from 0 to 5, at all distances from a multiple of the tile.
    for (std::uint32_t all = 0; all < 6 * 6 * 6 * 6 * 6; ++all) {
      std::vector<std::uint32_t> sizes;
      for (std::uint32_t rest = all, g = 0; g < 5; ++g, rest /= 6) sizes.push_back(rest % 6);
      expect_every_row_once(sizes, all % tile, all % 3);
      if (HasFatalFailure()) FAIL() << all << " with tiles of " << tile;
    }
  }
}

TEST(GroupMap, ManyGroupsOfAllSizes) {
  std::mt19937 engine(3);
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  for (int turn = 0; turn < 300; ++turn) {
    shader::TILE_M = 1u << random() % 9;
    std::vector<std::uint32_t> sizes(1 + random() % 200);
    for (std::uint32_t& size : sizes) {
      size = random() % 2 == 0 ? 0 : random() % (3 * shader::TILE_M + 2);
    }
    expect_every_row_once(sizes, random() % 5, random() % 100);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// Whatever the offsets, the search ends, and with a group that exists.
TEST(GroupMap, NonsenseEnds) {
  std::mt19937_64 random(4);
  for (int turn = 0; turn < 1000; ++turn) {
    shader::TILE_M = 1u << random() % 9;
    shader::capacity = static_cast<std::int64_t>(random() % 1000);
    shader::offsets.resize(2 + random() % 50);
    for (std::int64_t& offset : shader::offsets) offset = static_cast<std::int64_t>(random());
    const auto groups = static_cast<std::uint32_t>(shader::offsets.size() - 1);
    for (std::uint32_t slot = 0; slot < 1100; ++slot) {
      ASSERT_LT(shader::first_candidate(slot, groups, 1 + slot % 7), groups);
    }
  }
}

TEST(GroupMap, TheHostCountsAsTheShader) {
  for (const std::uint32_t tile : {16u, 128u}) {
    shader::TILE_M = tile;
    Config c = test::config("fma:tile=128x64x16,fragment=8x8");
    c.tile_m = tile;
    for (const std::uint64_t m : {1u, 127u, 128u, 2147483647u}) {
      EXPECT_EQ(tile_count(c, resolved(of_rows(m, 1, 1, 9))),
                shader::slot_count(static_cast<std::uint32_t>(m), 9));
    }
  }
}

// --- resolve
// --------------------------------------------------------------------------------------------------

TEST(ResolveGrouped, ErrorsNameFieldAndValue) {
  struct ErrorCase {
    std::function<void(Problem&)> change;
    Status status;
    std::string_view expected;
  };
  const ErrorCase cases[] = {
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
         p.grouping = {.groups = 5, .along = GroupAlong::k};
         p.d.batch_stride = 0;
       },
       Status::invalid_argument,
       "d.batch_stride is 0: the 5 matrices of the groups would overwrite each other"},
      {[](Problem& p) {
         p.grouping = {.groups = 5, .along = GroupAlong::k};
         p.d.batch_stride = 23;
       },
       Status::invalid_argument,
       "d.batch_stride is 23: the matrices of the groups would overlap, at least 24 is needed"},
  };
  for (const ErrorCase& c : cases) {
    Problem p = of_rows(4, 6, 8, 5);
    c.change(p);
    const auto result = resolve(p);
    ASSERT_FALSE(result) << c.expected;
    EXPECT_EQ(result.error().status, c.status) << c.expected;
    EXPECT_TRUE(contains(result.error().message, c.expected)) << result.error().message;
  }
}

TEST(ResolveGrouped, OperandsOfRows) {
  Problem p = of_rows(100, 6, 8, 5);
  p.epilogue = {.beta = 1.0f, .bias = Bias::along_n, .bias_batch_stride = 10};
  const ResolvedProblem r = resolved(p);
  EXPECT_EQ(r.batch, 1u);
  EXPECT_EQ(r.a.bytes, 100u * 8 * 2);
  EXPECT_EQ(r.b.batch_stride, 48u);
  EXPECT_EQ(r.b.bytes, 5u * 48 * 2);
  EXPECT_EQ(r.c.bytes, 100u * 6 * 2);
  EXPECT_EQ(r.d.bytes, 100u * 6 * 2);
  EXPECT_EQ(r.bias_bytes(), (4u * 10 + 6) * 4);
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
  Problem p = of_depth(4, 6, 100, 5);
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
  EXPECT_EQ(r.bias_bytes(), 5u * 6 * 4);
  EXPECT_EQ(r.typical_m(), 4u);
  EXPECT_EQ(r.typical_k(), 20u);

  p.c.layout = p.d.layout = p.aux.layout = Layout::col_major;
  r = resolved(p);
  EXPECT_TRUE(r.transposed);
  EXPECT_EQ(r.m, 6u);
  EXPECT_EQ(r.epilogue.bias, Bias::along_m);
  EXPECT_EQ(r.bias_bytes(), 5u * 6 * 4);
}

TEST(ResolveGrouped, GroupsThatCutRowsForbidVectors) {
  constexpr Layout row = Layout::row_major;
  constexpr Layout col = Layout::col_major;
  for (const Layout a : {row, col}) {
    for (const Layout b : {row, col}) {
      Problem p = of_rows(64, 64, 64, 5);
      p.a.layout = a;
      p.b.layout = b;
      EXPECT_EQ(resolved(p).a_allows_vectors(), a == row);
      EXPECT_TRUE(resolved(p).b_allows_vectors());
      p.grouping = {.groups = 5, .along = GroupAlong::k};
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
  Problem p = of_rows(4, 6, 8, 5);
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
                       "offsets span holds 47 bytes, the problem touches 48"));
  operands.offsets = {4 * mib + 4, 48};
  EXPECT_EQ(rules.check(operands).error().status, Status::misaligned);
  operands.offsets = {3 * mib, 48};
  EXPECT_EQ(rules.check(operands).error().status, Status::overlapping_operands);
}

// --- legality and what is lowered
// -----------------------------------------------------------------------------

const Config khr_config =
    test::config("khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4");

std::string reason(std::string_view parts, const Problem& problem) {
  const Config c = test::config(to_string(khr_config) + std::string(parts));
  const auto why = why_illegal(c, resolved(problem), test::h200());
  EXPECT_EQ(is_legal(c, resolved(problem), test::h200()), !why);
  return why.value_or("");
}

TEST(LegalityGrouped, NamesWhatDoesNotGoTogether) {
  const Problem rows = of_rows(500, 512, 512, 9);
  EXPECT_EQ(reason("", rows), "");
  EXPECT_EQ(reason(",schedule=persistent", rows), "");
  EXPECT_EQ(reason(",schedule=persistent,workgroups=7", rows), "");
  EXPECT_EQ(
      reason(",workgroups=7", rows),
      "workgroups is 7: only reduction_mode device_barrier and schedule persistent have a number "
      "of their own");
  EXPECT_EQ(reason(",slices=2", rows), "slices is 2: not built for grouped problems");
  EXPECT_EQ(reason(",pack=a", rows), "pack: not built for grouped problems");
  EXPECT_EQ(reason(",schedule=persistent", gemm(64, 64, 64)),
            "schedule is persistent: only grouped problems have it");
  const Problem depth = of_depth(1 << 20, 1 << 20, 64, 65535);
  EXPECT_EQ(reason(",schedule=persistent", depth),
            "schedule is persistent: 67108864 tiles in each of 65535 groups, at most 2147483647 "
            "can be numbered");
  EXPECT_TRUE(contains(reason("", of_rows(2147483647, 2147483647, 64, 1)), "can be numbered"));
}

TEST(LowerGrouped, Rows) {
  Problem p = of_rows(1024, 512, 512, 9);
  p.epilogue = {.bias = Bias::along_n, .bias_batch_stride = 512};
  const DispatchPlan kernel = lower(khr_config, resolved(p), test::h200());
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
  const DispatchPlan other = lower(khr_config, resolved(p), test::h200());
  EXPECT_EQ(other.workspace.bytes, 0u);
  EXPECT_EQ(other.product.key.constants[SPEC_OFFSETS_64], 1u);
  EXPECT_EQ(other.product.key.constants[SPEC_A_VECTOR], 0u);
  // Dense pipelines know nothing of it.
  const DispatchPlan dense = lower(khr_config, resolved(gemm(1024, 512, 512)), test::h200());
  for (const std::size_t id : {SPEC_GROUPED, SPEC_OFFSETS_64, SPEC_PERSISTENT}) {
    EXPECT_EQ(dense.product.key.constants[id], 0u);
  }
}

TEST(LowerGrouped, Depth) {
  const Problem p = of_depth(256, 128, 1024, 70000 / 2);
  const DispatchPlan kernel = lower(khr_config, resolved(p), test::h200());
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
  const std::uint32_t all = workgroups(of_rows(1 << 20, 4096, 64, 9), test::h200());
  EXPECT_GE(all, 132u);
  EXPECT_EQ(all % 132, 0u);
  EXPECT_EQ(workgroups(of_rows(128, 128, 64, 1), test::h200()), 2u) << "no more than tiles";
  EXPECT_EQ(workgroups(of_depth(256, 256, 64, 3), test::h200()), 12u);
  c.workgroups = 5;
  EXPECT_EQ(workgroups(of_rows(1 << 20, 4096, 64, 9), test::h200()), 5u);
  DeviceCaps small = test::h200();
  small.limits.max_workgroup_count[0] = 3;
  EXPECT_EQ(workgroups(of_rows(1 << 20, 4096, 64, 9), small), 3u);
}

// --- choose
// ---------------------------------------------------------------------------------------------------

Config best(const Problem& problem, const DeviceCaps& caps = test::h200()) {
  const auto ranked = rank(built_in_table(caps.architecture), resolved(problem), caps);
  EXPECT_FALSE(ranked.empty());
  return ranked.empty() ? Config{} : ranked.front().config;
}

TEST(ChooseGrouped, ByAnAverageGroup) {
  // Tokens of experts while decoding: B is read once, by the skinny loop.
  Problem decode = of_rows(256, 768, 2048, 128);
  decode.a.type = decode.b.type = decode.d.type = DataType::bf16;
  EXPECT_TRUE(best(decode).main_loop() == MainLoop::skinny) << to_string(best(decode));
  EXPECT_EQ(best(decode).schedule, Schedule::simple);
  // And while there are many of them.
  const Problem train = of_rows(64 * 512, 4096, 4096, 64);
  EXPECT_GE(best(train).tile_m * best(train).tile_n, 128u * 128) << to_string(best(train));
  EXPECT_EQ(best(train).schedule, Schedule::simple);
  const Problem small = of_rows(640, 128, 256, 4);
  EXPECT_LE(best(small).tile_m, 64u) << to_string(best(small));
  const Problem gradient = of_depth(4096, 4096, 64 * 512, 64);
  EXPECT_EQ(best(gradient).schedule, Schedule::simple);
  // Dense products see none of the rows for groups.
  for (const ScoredRow& scored : rank(built_in_table("nvidia_sm90"),
                                      resolved(gemm(2, 768, 2048, DataType::bf16)), test::h200())) {
    EXPECT_EQ(scored.row->family, "gemm") << to_string(scored);
  }
}

TEST(ChooseGrouped, SomethingIsLegalOnEveryDevice) {
  for (const DeviceCaps& caps : test::all_devices()) {
    for (const std::uint32_t groups : {1u, 100u, 65535u}) {
      for (const std::uint64_t size : {1u, 5000u}) {
        for (const Problem& p : {of_rows(size, 100, 50, groups), of_depth(100, 50, size, groups)}) {
          const auto ranked = rank(built_in_table("generic"), resolved(p), caps);
          ASSERT_FALSE(ranked.empty()) << caps.name;
          for (const ScoredRow& scored : ranked) {
            ASSERT_TRUE(is_legal(scored.config, resolved(p), caps));
            EXPECT_EQ(scored.config.slices, 1u);
          }
        }
      }
    }
  }
}

// --- the reference
// --------------------------------------------------------------------------------------------

// Against sums written down here.
TEST(ReferenceGrouped, RowsAndDepth) {
  for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
    const bool rows = along == GroupAlong::m;
    Problem p = rows ? of_rows(7, 2, 3, 4) : of_depth(2, 3, 7, 4);
    p.grouping->offsets = OffsetType::int64;
    for (Matrix* matrix : {&p.a, &p.b, &p.c, &p.d}) matrix->type = DataType::f32;
    p.a.layout = Layout::col_major;
    p.epilogue.bias = Bias::along_n;
    p.epilogue.bias_batch_stride = 4;
    const std::vector<std::int64_t> offsets{1, 3, 3, 4, 9};  // the last one ends at 7
    const auto encoded = support::encode_offsets(offsets, OffsetType::int64);
    const support::OperandBytes bytes = support::operand_bytes(p);
    const auto fill = [](std::uint64_t size, int factor) {
      std::vector<float> values(size / 4);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(static_cast<int>(i) * factor % 11 - 5);
      }
      return values;
    };
    const auto a = fill(bytes.a, 3), b = fill(bytes.b, 5), bias = fill(bytes.bias, 7);
    std::vector<float> d(bytes.d / 4, 77.0f), expected = d;
    const support::HostOperands operands{
        .a = a.data(), .b = b.data(), .bias = bias.data(), .offsets = encoded.data()};
    support::compute_reference(p, operands, d.data(), nullptr);
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
    EXPECT_TRUE(support::verify(p, operands, d.data(), nullptr).passed());
    d[rows ? 6 * 2 : 3 * 6] += 1.0f;
    const auto report = support::verify(p, operands, d.data(), nullptr);
    EXPECT_EQ(report.failures, 1u);
    EXPECT_TRUE(contains(report.first_failure, "d[batch 3, ")) << report.first_failure;
  }
}

}  // namespace
}  // namespace vkgemm
