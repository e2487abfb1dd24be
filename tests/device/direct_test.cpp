// The main loop that takes fragments straight from memory: tiles, depths, layouts and families that
// its operands in fragment order meet.
#include <gtest/gtest.h>

#include "harness.hpp"
#include "kernels/legality.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

class Direct : public testing::Test {
 protected:
  void SetUp() override {
    for (const DataType input : {DataType::f16, DataType::bf16}) {
      for (const Config& config : small_configs(Path::khr, input)) {
        if (config.main_loop() == MainLoop::khr_direct) configs_.push_back({config, input});
      }
    }
    if (configs_.empty()) GTEST_SKIP() << "khr_direct computes nothing on " << caps().name;
  }

  struct Case {
    Config config;
    DataType input;
  };
  std::vector<Case> configs_;
};

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
      Config config = c.config;
      config.slices = 3;
      config.reduction_mode = mode;
      EXPECT_TRUE(passes_gates(config, problem));
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
        Config sliced = c.config;
        sliced.slices = 2;
        EXPECT_TRUE(passes_gates(sliced, problem));
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
      problem.max_workspace_bytes = 8 << 10;
      if (slices == 1) EXPECT_TRUE(passes_gates(config, problem));
    }
  }
}

TEST_F(Direct, RefusesWhatItIsNotBuiltFor) {
  const Case& c = configs_.front();
  Config plain = c.config;
  plain.pack_a = false;
  EXPECT_TRUE(fails_with(context().plan(gemm({32, 32, 32}, c.input), plain), Status::unsupported,
                         {"pack is b", "khr_direct"}));
}

}  // namespace
}  // namespace vkgemm::test
