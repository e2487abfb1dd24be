// The main loop that takes fragments straight from memory: tiles, depths, layouts and families that
// its operands in fragment order meet.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "direct.hpp"
#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

TEST_F(Direct, EveryLayout) {
  for (const Case& c : configs_) {
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        for (const bool aligned : {false, true}) {
          Problem problem = gemm({75, 131, 70}, c.input);
          problem.a.layout = a;
          problem.b.layout = b;
          EXPECT_TRUE(passes_gates(c.config, with_padding(problem, 8, aligned)));
        }
      }
    }
  }
}

// None, and as many iterations as loads that are ahead can begin and end in; the last one may be
// zeros in part.
TEST_F(Direct, EveryDepth) {
  for (const Case& c : configs_) {
    const std::uint64_t tile_k = c.config.tile_k;
    for (const std::uint64_t k :
         {std::uint64_t{0}, std::uint64_t{1}, tile_k - 1, tile_k, tile_k + 1, 2 * tile_k,
          3 * tile_k - 7, 5 * tile_k, 9 * tile_k + 8}) {
      EXPECT_TRUE(
          passes_gates(c.config, gemm({c.config.tile_m + 1u, c.config.tile_n, k}, c.input)));
    }
  }
}

// Matrices that end anywhere in the last tile, which is read beyond the copy.
TEST_F(Direct, EveryEdge) {
  for (const Case& c : configs_) {
    for (const std::uint64_t m : {1u, 7u, 8u, 17u, 63u, 64u, 65u}) {
      for (const std::uint64_t n : {1u, 9u, 64u, 129u}) {
        EXPECT_TRUE(passes_gates(c.config, gemm({m, n, 40}, c.input)));
      }
    }
  }
}

// D in 16 bits and lines of 16 bytes, with no epilogue: stored from slices of its own type.
TEST_F(Direct, NarrowSlices) {
  for (const Case& c : configs_) {
    for (const DataType type : {DataType::f16, DataType::bf16}) {
      for (const std::uint64_t m : {1u, 37u, 128u}) {
        for (const std::uint64_t n : {8u, 64u, 136u}) {
          Problem problem = gemm({m, n, 70}, c.input, type);
          problem.batch = 2;
          EXPECT_TRUE(passes_gates(c.config, problem));
          problem.epilogue.alpha = -0.75f;
          EXPECT_TRUE(passes_gates(c.config, problem));
        }
      }
    }
  }
}

TEST_F(Direct, NarrowSlicesKeepNanAndInf) {
  for (const Case& c : configs_) {
    for (const DataType type : {DataType::f16, DataType::bf16}) {
      const Problem problem = gemm({33, 40, 70}, c.input, type);
      Trial trial(problem, Fill::integers, {.poison = std::byte{0x3a}});
      trial.set(OperandId::a, 2, 69, nan);
      trial.set(OperandId::a, 32, 0, infinity);
      for (std::uint64_t j = 0; j < problem.n; ++j)
        trial.set(OperandId::b, 0, j, j % 2 == 0 ? 1.0 : -1.0);
      ASSERT_TRUE(trial.run(c.config));
      for (std::uint64_t i = 0; i < problem.m; ++i) {
        for (std::uint64_t j = 0; j < problem.n; ++j) {
          const double d = trial.d(i, j);
          ASSERT_EQ(std::isnan(d), i == 2) << i << ", " << j;
          ASSERT_EQ(std::isinf(d), i == 32) << i << ", " << j;
        }
      }
      for (std::uint64_t j = 0; j < problem.n; ++j) {
        ASSERT_EQ(std::signbit(trial.d(32, j)), j % 2 != 0) << j;
      }
    }
  }
}

TEST_F(Direct, BatchesAndSlicesInEveryMode) {
  for (const Case& c : configs_) {
    Problem problem = with_padding([&] {
      Problem p = gemm({35, 37, 190}, c.input);
      p.batch = 2;
      return p;
    }());
    EXPECT_TRUE(passes_gates(c.config, problem));
    for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver,
                                     ReductionMode::device_barrier}) {
      EXPECT_TRUE(passes_gates(sliced(c.config, 3, mode), problem));
    }
    problem.b.batch_stride = 0;
    EXPECT_TRUE(passes_gates(c.config, problem));
  }
}

TEST_F(Direct, WholeRows) {
  for (const Case& c : configs_) {
    Config config = c.config;
    config.tile_n = 32;
    for (const RowOp op : {RowOp::softmax, RowOp::layer_norm}) {
      for (const RowStrategy rows :
           {RowStrategy::resident, RowStrategy::recompute, RowStrategy::panel}) {
        if (rows == RowStrategy::panel && on_cpu()) continue;  // its workgroups may starve
        Problem problem = gemm({50, rows == RowStrategy::resident ? 30u : 70u, 96}, c.input);
        problem.row_reduction = RowReduction{.op = op};
        config.rows = rows;
        EXPECT_TRUE(passes_gates(config, problem));
      }
    }
  }
}

// Both halves of B in one subgroup, and in neighbouring ones.
TEST_F(Direct, Gates) {
  for (const Case& c : configs_) {
    for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
      for (const Layout layout : {Layout::row_major, Layout::col_major}) {
        Problem problem = gemm({35, 37, 72}, c.input);
        problem.gated = Gated{.gate = Gate::reglu, .b = b};
        problem.b.layout = layout;
        problem.batch = 2;
        problem.epilogue.aux = true;
        problem.epilogue.bias = Bias::along_n;
        problem = with_padding(problem, 8, layout == Layout::row_major);
        if (!is_legal(c.config, resolve(problem).value(), target())) continue;
        EXPECT_TRUE(passes_gates(c.config, problem));
        EXPECT_TRUE(passes_gates(sliced(c.config, 2), problem));
      }
    }
  }
}

// Slices of K, and rows that are cut into parts with a small workspace.
TEST_F(Direct, RowsInTwoPasses) {
  for (const Case& c : configs_) {
    for (const std::uint32_t slices : {1u, 2u}) {
      Problem problem = gemm({50, 70, 96}, c.input, DataType::f16);
      problem.batch = 2;
      problem.row_reduction = RowReduction{.op = RowOp::softmax};
      Config config = c.config;
      config.rows = RowStrategy::two_pass;
      config.slices = slices;
      EXPECT_TRUE(passes_gates(config, problem));
      if (slices != 1) continue;
      problem.max_workspace_bytes = 8 << 10;
      EXPECT_TRUE(passes_gates(config, problem));
    }
  }
}

// Parts of the rows, and of the batch, of which the last one is smaller.
TEST_F(Direct, CopiesInParts) {
  for (const Case& c : configs_) {
    Config config = c.config;
    const auto passes_in_parts = [&](Problem problem, std::uint64_t kibibytes) {
      problem = with_padding(problem);
      problem.max_workspace_bytes = kibibytes << 10;
      const auto plan = context().plan(problem, config);
      ASSERT_TRUE(succeeds(plan));
      EXPECT_LE(plan->workspace_bytes(), problem.max_workspace_bytes);
      EXPECT_NE(plan->explain().find(" parts of "), std::string::npos) << plan->explain();
      EXPECT_TRUE(passes_gates(config, problem));
    };
    Problem rows = gemm({333, 40, 70}, c.input);
    rows.epilogue = oracle::heavy_epilogue();
    rows.epilogue.bias = Bias::along_m;
    passes_in_parts(rows, 48);
    rows.epilogue = {};
    rows.gated = Gated{.gate = Gate::reglu, .b = GatedB::separate};
    if (is_legal(config, resolve(rows).value(), target())) passes_in_parts(rows, 64);
    // The last part's copy is narrower, and several tiles deep.
    passes_in_parts(gemm({300, 33, 200}, c.input), 128);
    Problem batch = gemm({70, 33, 50}, c.input);
    batch.batch = 5;
    batch.epilogue.bias = Bias::along_n;
    batch.epilogue.bias_batch_stride = 40;
    passes_in_parts(batch, 64);
    passes_in_parts(batch, 24);
    batch.b.batch_stride = 0;
    passes_in_parts(batch, 32);
    // Sums of columns and amax are of all parts.
    for (Problem steps : {gemm({333, 40, 70}, c.input), batch}) {
      steps.epilogue.tensors = {TensorShape::along_n, TensorShape::scalar, TensorShape::mask};
      steps.epilogue.steps = {EpilogueStep{.op = StepOp::sum_columns, .operand = StepOperand::t0},
                              EpilogueStep{.op = StepOp::amax, .operand = StepOperand::t1},
                              EpilogueStep{.op = StepOp::store, .operand = StepOperand::t2}};
      steps.t0.type = steps.t1.type = DataType::f32;
      steps.t2.type = DataType::u8;
      passes_in_parts(steps, 64);
    }
    Problem reduced = gemm({210, 30, 64}, c.input);
    reduced.row_reduction = RowReduction{.op = RowOp::layer_norm};
    config.tile_n = 32;
    reduced.epilogue.tensors[0] = TensorShape::scalar;
    reduced.epilogue.steps[0] = {.op = StepOp::amax, .operand = StepOperand::t0};
    reduced.t0.type = DataType::f32;
    for (const RowStrategy strategy :
         {RowStrategy::resident, RowStrategy::recompute, RowStrategy::panel}) {
      config.rows = strategy;
      if (strategy == RowStrategy::panel && !is_legal(config, resolve(reduced).value(), target())) {
        continue;
      }
      passes_in_parts(reduced, 40);
    }
  }
}

// --- groups, which are copied by slots

// The first group begins behind row 0, the last one ends before the capacity.
TEST_F(Direct, GroupsOfRowsOfAnySize) {
  for (const Case& c : configs_) {
    const Offsets offsets = offsets_of(awkward_sizes(c.config.tile_m), 3);
    for (const GroupedB b : {GroupedB::shared, GroupedB::per_group}) {
      Problem problem = grouped(gemm({0, 21, 37}, c.input), offsets);
      problem.m += 2 * c.config.tile_m + 1;
      problem.grouping->b = b;
      EXPECT_TRUE(
          passes_on_both(c.config, with_padding(problem), {.shift = 1, .offsets = offsets}));
    }
  }
}

TEST_F(Direct, GroupsOfRowsInEveryLayout) {
  for (const Case& c : configs_) {
    const Offsets offsets = offsets_of(awkward_sizes(c.config.tile_m));
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        for (const bool aligned : {false, true}) {
          Problem problem = grouped(gemm({0, 24, 40}, c.input), offsets);
          problem.grouping->b = aligned ? GroupedB::per_group : GroupedB::shared;
          problem.grouping->offsets = aligned ? OffsetType::int64 : OffsetType::int32;
          problem.a.layout = a;
          problem.b.layout = b;
          EXPECT_TRUE(
              passes_gates(c.config, with_padding(problem, 8, aligned), {.offsets = offsets}));
        }
      }
    }
  }
}

// More than a workgroup looks at at once, and several in each tile of the kernel that copies.
TEST_F(Direct, ManySmallGroupsOfRows) {
  std::vector<std::uint64_t> sizes(700);
  for (std::size_t g = 0; g < sizes.size(); ++g) sizes[g] = g * g % 7 % 4;
  const Offsets offsets = offsets_of(sizes);
  for (const Case& c : configs_) {
    Problem problem = grouped(gemm({0, 8, 8}, c.input), offsets);
    problem.grouping->b = GroupedB::per_group;
    EXPECT_TRUE(passes_on_both(c.config, problem, {.offsets = offsets}));
  }
}

TEST_F(Direct, OneGroupAndNoDepth) {
  for (const Case& c : configs_) {
    for (const Offsets& offsets : {Offsets{0, 50}, Offsets{0, 0}, Offsets{7, 7}, Offsets{3, 50}}) {
      for (const std::uint64_t k : {0u, 10u}) {
        EXPECT_TRUE(passes_on_both(c.config, grouped(gemm({0, 9, k}, c.input), offsets),
                                   {.offsets = offsets}));
      }
    }
  }
}

// Rows of other groups, or of none, are not rows of this one, also where they are NaN.
TEST_F(Direct, GroupsOfRowsDoNotMeet) {
  const Offsets offsets{2, 9, 10, 45};
  for (const Case& c : configs_) {
    Problem problem = grouped(gemm({0, 20, 24}, c.input), offsets);
    problem.m = 50;
    Trial trial(problem, Fill::integers, {.offsets = offsets});
    for (const std::uint64_t row : {1u, 45u, 49u}) trial.set(OperandId::a, row, 0, nan);
    ASSERT_TRUE(trial.run(c.config));
    EXPECT_TRUE(trial.is_exact());
    EXPECT_EQ(trial.bad_group(), UINT32_MAX);
    trial.set(OperandId::a, 9, 3, nan);  // the only one of its group
    ASSERT_TRUE(trial.run(c.config));
    for (std::uint64_t row = 2; row < 45; ++row) {
      EXPECT_EQ(std::isnan(trial.d(row, 0)), row == 9) << "row " << row;
    }
  }
}

TEST_F(Direct, GroupsOfDepthDoNotMeet) {
  const Offsets offsets{2, 9, 10, 45};
  for (const Case& c : configs_) {
    Problem problem = grouped(gemm({20, 24, 0}, c.input), offsets, GroupAlong::k);
    problem.k = 50;
    Trial trial(problem, Fill::integers, {.offsets = offsets});
    for (const std::uint64_t k : {1u, 45u, 49u}) {
      trial.set(OperandId::a, 0, k, nan);
      trial.set(OperandId::b, k, 0, nan);
    }
    ASSERT_TRUE(trial.run(c.config));
    EXPECT_TRUE(trial.is_exact());
    trial.set(OperandId::a, 0, 9, nan);  // all that group 1 has
    ASSERT_TRUE(trial.run(c.config));
    for (std::uint64_t group = 0; group < 3; ++group) {
      EXPECT_EQ(std::isnan(trial.d(0, 0, group)), group == 1) << "group " << group;
    }
  }
}

TEST_F(Direct, GroupsOfDepthInEveryLayout) {
  for (const Case& c : configs_) {
    const Offsets offsets = offsets_of(awkward_sizes(c.config.tile_k), 2);
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        for (const Layout d : {Layout::row_major, Layout::col_major}) {
          Problem problem = grouped(gemm({24, 40, 0}, c.input), offsets, GroupAlong::k);
          problem.k += 5;
          problem.grouping->offsets =
              d == Layout::row_major ? OffsetType::int32 : OffsetType::int64;
          problem.a.layout = a;
          problem.b.layout = b;
          problem.c.layout = problem.d.layout = problem.aux.layout = d;
          EXPECT_TRUE(
              passes_on_both(c.config, with_padding(problem, 8, a == b), {.offsets = offsets}));
        }
      }
    }
  }
}

// Tiles at the edge, and more groups than there are elements of K.
TEST_F(Direct, ManySmallGroupsOfDepth) {
  std::vector<std::uint64_t> sizes(90);
  for (std::size_t g = 0; g < sizes.size(); ++g) sizes[g] = g * g % 7 % 3;
  const Offsets offsets = offsets_of(sizes);
  for (const Case& c : configs_) {
    const Problem problem = grouped(gemm({67, 35, 0}, c.input), offsets, GroupAlong::k);
    EXPECT_TRUE(passes_on_both(c.config, with_padding(problem), {.shift = 1, .offsets = offsets}));
  }
}

// Slots that are larger than what a workgroup copies, and some that don't divide it.
TEST_F(Direct, GroupsInLargeSlots) {
  std::set<DataType> seen;  // the configurations of a type become alike
  for (const Case& c : configs_) {
    if (!seen.insert(c.input).second) continue;
    Config config = c.config;
    auto& loop = std::get<KhrDirectLoop>(config.loop);
    config.tile_m = 128;
    config.tile_k = loop.interleave_k ? 96 : 5 * loop.fragment_k;
    loop.subgroups_m = 8;
    loop.subgroups_n = loop.subtiles = loop.subgroups_k = 1;
    loop.ahead = false;
    const Offsets rows = offsets_of(awkward_sizes(config.tile_m), 2);
    Problem problem = grouped(gemm({0, 19, 90}, c.input), rows);
    problem.a.layout = &c == &configs_.front() ? Layout::row_major : Layout::col_major;
    EXPECT_TRUE(passes_on_both(config, with_padding(problem, 8, true), {.offsets = rows}));
    const Offsets depth = offsets_of(awkward_sizes(config.tile_k), 2);
    problem = grouped(problem, depth, GroupAlong::k);
    problem.m = 131;
    EXPECT_TRUE(passes_on_both(config, with_padding(problem, 8, true), {.offsets = depth}));
  }
}

// An empty group's D is the epilogue of beta * C alone, also where alpha is not finite.
TEST_F(Direct, GroupsWithTheWholeEpilogue) {
  const Offsets rows = offsets_of({5, 0, 30, 1}), depth = offsets_of({5, 0, 70, 1, 0});
  for (const Case& c : configs_) {
    Problem problem = grouped(gemm({0, 24, 19}, c.input), rows);
    problem.epilogue = oracle::heavy_epilogue();
    problem.epilogue.bias_batch_stride = 26;
    EXPECT_TRUE(passes_on_both(c.config, with_padding(problem, 8, true), {.offsets = rows}));

    problem = grouped(gemm({11, 24, 0}, c.input), depth, GroupAlong::k);
    problem.epilogue = oracle::heavy_epilogue();
    problem.epilogue.bias_batch_stride = 30;
    EXPECT_TRUE(passes_on_both(c.config, with_padding(problem), {.offsets = depth}));

    problem.epilogue = {.alpha = std::numeric_limits<float>::infinity(), .beta = 2.0f};
    problem.c.batch_stride = 0;
    const Offsets empty{0, 0, 0};
    problem = grouped(problem, empty, GroupAlong::k);
    for (const std::uint64_t k : {0u, 9u}) {
      problem.k = k;
      EXPECT_TRUE(passes_on_both(c.config, problem, {.offsets = empty}));
    }
  }
}

// The guard pages of guard_test say that nothing is touched elsewhere.
TEST_F(Direct, BadOffsetsAreClampedAndTold) {
  for (const Case& c : configs_) {
    for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
      for (const Config& one : {c.config, persistent(c.config)}) {
        clamps_and_tells(one, c.input, along);
      }
    }
  }
}

TEST_F(Direct, GroupsInPiecesAndOfStaticShape) {
  const Offsets offsets = offsets_of({20, 0, 3, 19});
  for (const Case& c : configs_) {
    for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
      const Problem problem = grouped(gemm({40, 30, 50}, c.input), offsets, along);
      EXPECT_TRUE(passes_gates(c.config, problem, {.in_pieces = true, .offsets = offsets}));
      Config config = c.config;
      config.static_shape = true;
      EXPECT_TRUE(passes_gates(config, problem, {.offsets = offsets}));
    }
  }
}

TEST_F(Direct, GroupsWithGates) {
  const Offsets offsets = offsets_of({20, 0, 3, 19}, 2);
  for (const Case& c : configs_) {
    for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
      for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
        Problem problem = grouped(gemm({44, 37, 44}, c.input), offsets, along);
        if (along == GroupAlong::m) problem.grouping->b = GroupedB::per_group;
        problem.gated = Gated{.gate = Gate::swiglu, .b = b};
        if (along == GroupAlong::k) problem.b.layout = Layout::col_major;
        problem = with_padding(problem, 8, true);
        if (!is_legal(c.config, resolve(problem).value(), target())) continue;
        EXPECT_TRUE(passes_on_both(c.config, problem, {.offsets = offsets}));
      }
    }
  }
}

// The copy of A doesn't fit the workspace: parts of the rows begin and end within groups.
TEST_F(Direct, GroupsInParts) {
  const Offsets offsets = offsets_of({20, 0, 150, 3, 190, 0}, 5);
  for (const Case& c : configs_) {
    for (const GroupedB b : {GroupedB::shared, GroupedB::per_group}) {
      Problem problem = grouped(gemm({0, 24, 200}, c.input), offsets);
      problem.m += 9;
      problem.grouping->b = b;
      problem.a.layout = b == GroupedB::shared ? Layout::row_major : Layout::col_major;
      problem.epilogue = oracle::heavy_epilogue();
      problem.epilogue.bias_batch_stride = 26;
      problem = with_padding(problem, 8, true);
      const auto whole = context().plan(problem, c.config);
      ASSERT_TRUE(succeeds(whole));
      problem.max_workspace_bytes = whole->workspace_bytes() - 1;
      const auto plan = context().plan(problem, c.config);
      ASSERT_TRUE(succeeds(plan));
      EXPECT_NE(plan->explain().find(" parts of "), std::string::npos) << plan->explain();
      EXPECT_TRUE(passes_on_both(c.config, problem, {.offsets = offsets}));
    }
  }
}

TEST_F(Direct, GroupsExplainThemselves) {
  const Case& c = configs_.front();
  Problem problem = gemm({104, 64, 64}, c.input);
  problem.grouping = {.groups = 5, .b = GroupedB::per_group};
  problem.a.layout = Layout::col_major;
  const auto plan = context().plan(problem, c.config);
  ASSERT_TRUE(succeeds(plan));
  for (const char* const part :
       {"packing: 2 operands, by dispatches before", "grouped along m: 5 groups, b per_group",
        "  a: ", "packed in the workspace first, in fragment order, by a dispatch"}) {
    EXPECT_NE(plan->explain().find(part), std::string::npos) << part << "\n" << plan->explain();
  }
  EXPECT_EQ(plan->explain().find("element by element: groups"), std::string::npos);
  EXPECT_EQ(plan->dispatch_count(), 3u);
  EXPECT_EQ(plan->workspace_bytes() % 256, 0u);
}

TEST_F(Direct, RefusesWhatItIsNotBuiltFor) {
  const Case& c = configs_.front();
  Config plain = c.config;
  plain.pack_b = false;
  EXPECT_TRUE(fails_with(context().plan(gemm({32, 32, 32}, c.input), plain), Status::unsupported,
                         {"pack is a", "khr_direct"}));
}

}  // namespace
}  // namespace vkgemm::test
