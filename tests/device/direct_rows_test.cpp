// The main loop that takes fragments straight from memory, where A lies in rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "direct.hpp"
#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

// The configurations that load A as it lies: fragment by fragment, or with K interleaved. Then rows
// may end in a tile.
class ARows : public Direct {
 protected:
  void SetUp() override {
    Direct::SetUp();
    for (Case c : configs_) {
      auto& direct = std::get<KhrDirectLoop>(c.config.loop);
      c.config.pack_a = direct.swap_a = false;
      for (const bool interleave_k : {false, true}) {
        if (interleave_k && direct.subgroup_size != 32) continue;
        direct.interleave_k = interleave_k;
        if (interleave_k) c.config.tile_k = 32;
        rows_.push_back(c);
      }
    }
  }
  // M of about so many, that the configuration takes.
  static std::uint64_t m(const Case& c, std::uint64_t about) {
    const std::uint64_t tile = c.config.tile_m;
    return std::get<KhrDirectLoop>(c.config.loop).interleave_k ? about
                                                               : (about + tile - 1) / tile * tile;
  }
  std::vector<Case> rows_;
};

TEST_F(ARows, EveryShape) {
  for (const Case& c : rows_) {
    for (const std::uint64_t m : {m(c, 1), m(c, 40), m(c, 131)}) {
      for (const std::uint64_t k_tiles : {0u, 1u, 2u, 3u, 8u}) {
        for (const Layout b : {Layout::row_major, Layout::col_major}) {
          Problem problem = gemm({m, 37, k_tiles * c.config.tile_k}, c.input);
          problem.b.layout = b;
          EXPECT_TRUE(passes_gates(c.config, problem));
          EXPECT_TRUE(passes_gates(c.config, with_padding(problem, 8, true)));
        }
      }
    }
  }
}

// What stands behind the last row and the last column of A is not multiplied.
TEST_F(ARows, MultipliesNothingElse) {
  for (const Case& c : rows_) {
    Problem problem = gemm({m(c, 50), 24, 4u * c.config.tile_k}, c.input);
    problem.a.ld = problem.k + 8;
    Trial trial(problem, Fill::integers, {.poison = std::byte{0xff}});  // NaN
    ASSERT_TRUE(trial.run(c.config));
    EXPECT_TRUE(trial.is_exact());
    trial.set(OperandId::a, 3, problem.k - 1, nan);
    ASSERT_TRUE(trial.run(c.config));
    for (std::uint64_t i = 0; i < problem.m; ++i) EXPECT_EQ(std::isnan(trial.d(i, 7)), i == 3) << i;
  }
}

TEST_F(ARows, EveryFamily) {
  bool gates = false;
  for (const Case& c : rows_) {
    Problem problem = gemm({m(c, 70), 40, 6u * c.config.tile_k}, c.input, DataType::f16);
    problem.batch = 2;
    EXPECT_TRUE(passes_gates(c.config, problem));
    problem.b.batch_stride = 0;
    problem.epilogue = oracle::heavy_epilogue();
    problem.epilogue.bias = Bias::along_n;
    EXPECT_TRUE(passes_gates(c.config, problem));
    for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver,
                                     ReductionMode::device_barrier}) {
      EXPECT_TRUE(passes_gates(sliced(c.config, 3, mode), problem));
    }
    Problem gated = gemm({m(c, 35), 37, 2u * c.config.tile_k}, c.input);
    gated.gated = Gated{.gate = Gate::reglu, .b = GatedB::interleaved};
    if (is_legal(c.config, resolve(gated).value(), target())) {
      EXPECT_TRUE(passes_gates(c.config, gated));
      gates = true;
    }
    Config config = c.config;
    config.tile_n = 32;
    for (const RowStrategy rows : {RowStrategy::resident, RowStrategy::recompute,
                                   RowStrategy::panel, RowStrategy::two_pass}) {
      if (rows == RowStrategy::panel && on_cpu()) continue;  // its workgroups may starve
      if (rows == RowStrategy::two_pass && !std::get<KhrDirectLoop>(config.loop).interleave_k) {
        continue;
      }
      const std::uint64_t n = rows == RowStrategy::resident ? 30 : 70;
      Problem reduced = gemm({m(c, 50), n, 2u * c.config.tile_k}, c.input);
      reduced.row_reduction = RowReduction{.op = RowOp::layer_norm};
      config.rows = rows;
      EXPECT_TRUE(passes_gates(config, reduced));
      if (rows != RowStrategy::two_pass) continue;
      reduced.d.type = DataType::f16;
      reduced.max_workspace_bytes = 8 << 10;  // in parts
      EXPECT_TRUE(passes_gates(config, reduced));
    }
  }
  EXPECT_TRUE(gates);
}

// Groups begin at any row, and the last one may end where A does.
TEST_F(ARows, GroupsOfRows) {
  bool tried = false;
  for (const Case& c : rows_) {
    if (!std::get<KhrDirectLoop>(c.config.loop).interleave_k) continue;
    tried = true;
    const Offsets offsets = offsets_of(awkward_sizes(c.config.tile_m), 3);
    for (const GroupedB b : {GroupedB::shared, GroupedB::per_group}) {
      Problem problem = grouped(gemm({0, 21, 2u * c.config.tile_k}, c.input), offsets);
      problem.grouping->b = b;
      EXPECT_TRUE(passes_on_both(c.config, problem, {.offsets = offsets}));
    }
  }
  if (!tried) GTEST_SKIP() << "no fragments of 16x16 for subgroups of 32 here";
}

TEST_F(ARows, RefusesOtherRows) {
  for (const Case& c : rows_) {
    const std::uint64_t k = c.config.tile_k;
    const auto refuses = [&](const Problem& problem, std::string_view why, char name = 'a') {
      const std::string begin = concat("pack is b: main loop khr_direct takes ", name);
      EXPECT_TRUE(fails_with(context().plan(problem, c.config), Status::unsupported,
                             {begin + " as it lies ", why}));
    };
    const Problem fits = gemm({m(c, 32), 96, 2 * k}, c.input);
    EXPECT_TRUE(succeeds(context().plan(fits, c.config)));
    Problem problem = fits;
    problem.a.layout = Layout::col_major;
    refuses(problem, "only with K as the inner direction: its layout is col_major");
    problem.a.layout = problem.b.layout = Layout::row_major;
    problem.d.layout = Layout::col_major;
    refuses(problem, "only with K as the inner direction: its layout is row_major", 'b');
    problem = fits;
    problem.a.ld = 2 * k + 1;
    refuses(problem, concat("ld ", 2 * k + 1));
    problem = fits;
    problem.k += 8;
    if (k > 8) refuses(problem, "only where tile_k divides K");
    if (std::get<KhrDirectLoop>(c.config.loop).interleave_k) continue;
    problem = fits;
    ++problem.m;
    refuses(problem, "without interleave_k only where tile_m divides its rows");
  }
}

}  // namespace
}  // namespace vkgemm::test
