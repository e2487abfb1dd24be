// Shared memory: what legality believes that the shaders declare.
#include <gtest/gtest.h>

#include "kernels/footprint.hpp"
#include "kernels/legality.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::fma_config;
using test::gemm;
using test::khr_config;
using test::nv_config;
using test::resolved;

// The memory that the shaders declare, by hand: tiles of 2-byte elements with 8 of padding a row,
// or slices of floats with 4 of padding a row; whichever is larger.
TEST(Legality, SharedMemoryByLayout) {
  struct Layouts {
    Layout a, b;
    std::uint64_t bytes;
  };
  // For workgroups that talk to each other; declared in all kernels.
  constexpr std::uint64_t words = 16;
  constexpr Layout row = Layout::row_major;
  constexpr Layout col = Layout::col_major;
  Config c = khr_config;  // 128x64x32, so that all differ; slices of 16 rows are smaller
  c.tile_n = 64;
  const Layouts cases[] = {{row, row, (128 * 40 + 32 * 72) * 2},
                           {col, row, (32 * 136 + 32 * 72) * 2},
                           {row, col, (128 * 40 + 64 * 40) * 2},
                           {col, col, (32 * 136 + 64 * 40) * 2}};
  for (const Layouts& layouts : cases) {
    Problem p = gemm(512, 512, 512);
    p.a.layout = layouts.a;
    p.b.layout = layouts.b;
    EXPECT_EQ(shared_memory_bytes(c, resolved(p), test::h200()), layouts.bytes + words);
  }
  test::set(c, "subtiles", 1);
  EXPECT_EQ(shared_memory_bytes(c, resolved(gemm(8, 8, 8)), test::h200()), 128u * 68 * 4 + words);
  // Three stages of A 128x(16+8) and B 16x(256+8), and 32 bytes between them.
  c = test::config(
      "khr_ring:tile=128x256x32,fragment=16x16x16,subgroups=2x4,subgroup_size=32,subtiles=4");
  EXPECT_EQ(shared_memory_bytes(c, resolved(gemm(8, 8, 8)), test::h200()),
            3u * (128 * 24 * 2 + 16 * 264 * 2 + 32) + words);
  EXPECT_EQ(shared_memory_bytes(fma_config, resolved(gemm(8, 8, 8)), test::h200()),
            (68u + 68) * 16 * 4 + words);
  EXPECT_EQ(shared_memory_bytes(nv_config, resolved(gemm(8, 8, 8)), test::h200()), 8192u + words);
}

// Tiles of exactly the device's memory leave no room for the words: such a pipeline is built by
// NVIDIA's driver, and may be what lost an H200.
TEST(Legality, TilesLeaveRoomForWords) {
  const Config c =
      test::config("khr:tile=16x64x256,fragment=16x16x16,subgroups=1x4,subgroup_size=32");
  Problem p = gemm(24, 136, 264);
  p.a.layout = Layout::col_major;
  DeviceCaps caps = test::h200();
  caps.architecture = "generic";  // where it is not refused
  EXPECT_EQ(shared_memory_bytes(c, resolved(p), caps), 49152u + 16);
  EXPECT_FALSE(is_legal(c, resolved(p), caps));
  caps.limits.max_shared_memory_bytes += 16;
  EXPECT_TRUE(is_legal(c, resolved(p), caps));
}

// Over the budget by one step is illegal, at it is legal: for each path and reason to need memory.
TEST(Legality, SharedMemoryBudgetIsExact) {
  const Config configs[] = {
      khr_config,
      test::config("khr:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32"),
      test::config("khr_ring:tile=128x256x32,fragment=16x16x16,subgroups=2x4,subgroup_size=32,"
                   "subtiles=4"),
      fma_config, nv_config};
  for (const Config& config : configs) {
    const ResolvedProblem r = resolved(gemm(512, 512, 512));
    DeviceCaps caps = test::h200();
    const auto needed = static_cast<std::uint32_t>(shared_memory_bytes(config, r, caps));
    caps.limits.max_shared_memory_bytes = needed;
    EXPECT_EQ(why_illegal(config, r, caps), std::nullopt) << to_string(config);
    caps.limits.max_shared_memory_bytes = needed - 1;
    const auto reason = why_illegal(config, r, caps);
    ASSERT_TRUE(reason) << to_string(config);
    EXPECT_TRUE(contains(*reason, std::to_string(needed))) << *reason;
    EXPECT_TRUE(contains(*reason, std::to_string(needed - 1))) << *reason;
  }
  // One step of tile_k beyond 48 KiB: 128x128 takes 64 but not 128, and 32 KiB takes 32 but not 64.
  const ResolvedProblem r = resolved(gemm(512, 512, 512));
  Config c = khr_config;
  c.tile_k = 64;
  EXPECT_TRUE(is_legal(c, r, test::h200()));
  c.tile_k = 96;
  EXPECT_FALSE(is_legal(c, r, test::h200()));
  c.tile_k = 80;
  EXPECT_TRUE(is_legal(c, r, test::h200())) << "loads that don't divide the workgroup are allowed";
  // An epilogue that doesn't fit: without subtiles a 128x128 tile needs 67584 bytes.
  c = khr_config;
  test::set(c, "subtiles", 1);
  const auto reason = why_illegal(c, r, test::h200());
  ASSERT_TRUE(reason);
  EXPECT_EQ(*reason, "tile 128x128x32 needs 67600 bytes of shared memory, the device has 49152");
}

}  // namespace
}  // namespace vkgemm
