// Operands that are copied into the workspace before they are multiplied.
#include "harness.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

class Pack : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam(), DataType::f16)); }

  static Config packing(Config config, Packs packs) {
    config.pack_a = packs.a;
    config.pack_b = packs.b;
    return config;
  }
  Config config(Packs packs, DataType type = DataType::f16) const {
    return packing(small_configs(GetParam(), type).front(), packs);
  }
};
VKGEMM_ON_EACH_PATH(Pack);

// Copies of one tile and of several, whole and cut, of aligned operands and of others. All that
// stands beside the operands is NaN.
TEST_P(Pack, EveryLayout) {
  for (const Packs packs : all_packs) {
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        for (const bool aligned : {false, true}) {
          Problem problem = gemm({75, 131, 70}, DataType::f16);
          problem.a.layout = a;
          problem.b.layout = b;
          EXPECT_TRUE(passes_gates(config(packs), with_padding(problem, 8, aligned)));
        }
      }
    }
  }
}

TEST_P(Pack, EveryConfiguration) {
  for (const DataType type : inputs_of(GetParam())) {
    if (type == DataType::f32) continue;
    std::size_t turn = 0;
    for (const Config& plain : small_configs(GetParam(), type)) {
      // Where compiling is slow, every second one; some of the others stand beside guards.
      if (++turn % 2 == 0 && on_cpu() && GetParam() == Path::khr) continue;
      EXPECT_TRUE(
          passes_gates(packing(plain, {true, true}), with_padding(gemm({33, 35, 77}, type))));
    }
  }
}

TEST_P(Pack, TinyAndEmpty) {
  for (const Packs packs : all_packs) {
    EXPECT_TRUE(passes_gates(config(packs), gemm({1, 1, 1}, DataType::f16)));
    EXPECT_TRUE(passes_gates(config(packs), gemm({9, 7, 0}, DataType::f16)));
  }
}

// A column-major D swaps what is A and what is B.
TEST_P(Pack, ColumnMajorD) {
  for (const Packs packs : all_packs) {
    Problem problem = gemm({34, 21, 67}, DataType::f16);
    problem.b.layout = problem.c.layout = problem.d.layout = Layout::col_major;
    problem.epilogue.beta = 0.5f;
    EXPECT_TRUE(passes_gates(config(packs), with_padding(problem)));
  }
}

// Each matrix of a batch is copied, but one that all share only once; partial results stand behind.
TEST_P(Pack, BatchesAndSlices) {
  for (const Packs packs : all_packs) {
    for (const std::uint32_t slices : {1u, 3u}) {
      Problem problem = with_padding([] {
        Problem p = gemm({20, 17, 90}, DataType::f16);
        p.batch = 3;
        return p;
      }());
      Config c = config(packs);
      c.slices = slices;
      EXPECT_TRUE(passes_gates(c, problem));
      problem.b.batch_stride = 0;
      EXPECT_TRUE(passes_gates(c, problem));
    }
  }
}

TEST_P(Pack, IsRefusedForF32AndExplained) {
  const auto plan = context().plan(gemm({64, 64, 64}, DataType::f16), config({true, false}));
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(plan->workspace_bytes(), 64u * 64 * 2);
  EXPECT_NE(plan->explain().find("a: f16 row_major, ld 64, packed"), std::string::npos)
      << plan->explain();
  if (GetParam() != Path::fma) return;
  EXPECT_TRUE(fails_with(
      context().plan(gemm({64, 64, 64}, DataType::f32),
                     packing(small_configs(Path::fma, DataType::f32).front(), {false, true})),
      Status::unsupported, {"pack is b", "f32"}));
}

}  // namespace
}  // namespace vkgemm::test
