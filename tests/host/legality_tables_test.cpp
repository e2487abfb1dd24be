// Tests of what tables may say: configurations that are refused on an architecture, and nonsense.
#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "kernels/legality.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::resolved;

TEST(Legality, RefusedByATable) {
  const ResolvedProblem r = resolved(gemm(64, 64, 64));
  for (const std::string_view swizzle : {"", ",swizzle=1"}) {
    const Config spills = test::config(
        std::string(
            "khr:tile=64x64x32,fragment=8x16x16,subgroups=2x2,subgroup_size=16,subtiles=2") +
        std::string(swizzle));
    const DeviceCaps caps = test::battlemage();
    const DeviceTables tables(caps);
    const auto reason = why_illegal(spills, r, tables.target(caps));
    ASSERT_TRUE(reason);
    EXPECT_TRUE(contains(*reason, "refused on intel_xe2")) << *reason;
    DeviceCaps other = test::battlemage();
    other.architecture = "generic";
    const DeviceTables generic(other);
    EXPECT_EQ(why_illegal(spills, r, generic.target(other)), std::nullopt);
  }
}

// Whatever a table says, the answer comes without overflow or division by zero (sanitizers watch).
TEST(Legality, SurvivesEveryConfiguration) {
  const std::uint32_t values[] = {0, 1, 8, 16, 32, 1024, 65536, 0x80000000u, 0xffffffffu};
  const ResolvedProblem r = resolved(gemm(2147483647, 1, 2147483647));
  const DeviceCaps caps = test::h200();
  std::uint32_t state = 1;
  const auto any = [&] {
    state = state * 1664525u + 1013904223u;
    return values[(state >> 16) % std::size(values)];
  };
  for (int i = 0; i < 100000; ++i) {
    const Config c = test::any_config(any);
    const auto reason = why_illegal(c, r, caps);
    if (reason) {
      ASSERT_FALSE(reason->empty());
    }
  }
}

}  // namespace
}  // namespace vkgemm
