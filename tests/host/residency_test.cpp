// How many workgroups share a compute unit.
#include "kernels/occupancy.hpp"

#include <gtest/gtest.h>

#include "kernels/legality.hpp"
#include "test_devices.hpp"
#include "tuning/table.hpp"

namespace vkgemm {
namespace {

// khr tiles of 16896 to 32768 bytes with few enough invocations that registers don't decide.
double fit(const std::string& config, Layout a, Layout b, RowStrategy rows = RowStrategy::none,
           RowOp op = RowOp::softmax) {
  Problem problem = test::gemm(4096, 4096, 4096);
  problem.a.layout = a;
  problem.b.layout = b;
  Config c = test::config(config);
  c.rows = rows;
  if (rows != RowStrategy::none) problem.row_reduction = RowReduction{.op = op};
  return workgroups_that_fit(c, built_in_table("nvidia_sm90").timing, test::resolved(problem),
                             test::h200());
}

// As it was seen on an H200 (bench/NOTES.md): two of 23056 bytes share an SM, two of 24592 do not.
TEST(Residency, CountsWhatADeviceReserves) {
  const std::string square =
      "khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4";
  const std::string wide =
      "khr:tile=64x256x32,fragment=16x16x16,subgroups=1x4,subgroup_size=32,subtiles=4";
  constexpr Layout row = Layout::row_major, column = Layout::col_major;
  EXPECT_EQ(fit(square, row, row), 2.0);
  EXPECT_EQ(fit(square, row, column), 2.0);
  EXPECT_EQ(fit(square, row, row, RowStrategy::panel), 2.0);
  EXPECT_EQ(fit(square, row, column, RowStrategy::panel), 1.0);
  // Derived: larger states leave fewer parts of a row.
  EXPECT_EQ(fit(square, row, row, RowStrategy::panel, RowOp::layer_norm), 2.0);
  EXPECT_EQ(fit(square, row, column, RowStrategy::two_pass), 2.0);
  EXPECT_EQ(fit(wide, row, row), 2.0);
  EXPECT_EQ(fit(wide, row, column), 1.0);
}

TEST(Residency, ATableMayReserveNothing) {
  const auto read = [](const std::string& reserve) {
    return parse_tuning_table(
        R"({"architecture":"x","rows":[],"timing":{"compute_units":1,"launch":1,"tile":1,"store":1,
        "latency":1,"first_latency":1,"ring_latency":1,"load":1,"memory":1,"sum":1,"workspace":1,
        "copy":1,"shared_memory_bytes":65536,"registers":65536,)" +
            reserve + R"("provenance":"derived: x"}})",
        "t.json");
  };
  const auto none = read("");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->timing.shared_memory_overhead_bytes, 0.0);
  const auto some = read(R"("shared_memory_overhead_bytes":512,)");
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->timing.shared_memory_overhead_bytes, 512.0);
  const auto wrong = read(R"("shared_memory_overhead_bytes":-1,)");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(test::contains(wrong.error().message, "timing.shared_memory_overhead_bytes is"))
      << wrong.error().message;
}

}  // namespace
}  // namespace vkgemm
