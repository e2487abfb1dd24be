#include "vkgemm/config.hpp"

#include <gtest/gtest.h>

#include <random>

#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::contains;

TEST(Config, PrintsWithoutDefaults) {
  const Config khr{.path = Path::khr,
                   .tile_m = 128,
                   .tile_n = 64,
                   .tile_k = 32,
                   .fragment_m = 16,
                   .fragment_n = 8,
                   .fragment_k = 16,
                   .subgroups_m = 2,
                   .subgroups_n = 1,
                   .subgroup_size = 32,
                   .invocations = 64,
                   .subtiles = 4,
                   .swizzle = 3};
  EXPECT_EQ(to_string(khr),
            "khr:tile=128x64x32,fragment=16x8x16,subgroups=2x1,subgroup_size=32,subtiles=4,"
            "swizzle=3");
  const Config nv{.path = Path::nv,
                  .tile_m = 128,
                  .tile_n = 256,
                  .tile_k = 32,
                  .invocations = 256,
                  .unroll_k = 8,
                  .static_shape = true};
  EXPECT_EQ(to_string(nv), "nv:tile=128x256x32,invocations=256,unroll_k=8,static_shape=1");
}

TEST(Config, ImpliesInvocations) {
  const Config fma = test::config("fma:tile=64x32x16,fragment=8x4");
  EXPECT_EQ(fma.invocations, 64u);
  EXPECT_EQ(fma.fragment_k, 1u);
  EXPECT_EQ(fma.swizzle, Config{}.swizzle);
  EXPECT_EQ(test::config("khr:tile=8x8x8,subgroups=3x5,subgroup_size=8").invocations, 120u);
  // Explicit wins, even against sense: legality says what is wrong with it.
  EXPECT_EQ(test::config("fma:tile=64x64x16,fragment=8x8,invocations=7").invocations, 7u);
  // Saturated rather than wrapped to something small.
  EXPECT_EQ(test::config("khr:tile=8x8x8,subgroups=65536x65536,subgroup_size=32").invocations,
            4294967295u);
}

TEST(Config, EveryConfigurationSurvivesPrintingAndParsing) {
  std::mt19937 random(1);
  const std::uint32_t values[] = {0, 1, 2, 4, 8, 16, 31, 32, 64, 128, 256, 65536, 4294967295u};
  const auto any = [&] { return values[random() % std::size(values)]; };
  for (int i = 0; i < 20000; ++i) {
    const Config c{.path = static_cast<Path>(random() % 3),
                   .tile_m = any(),
                   .tile_n = any(),
                   .tile_k = any(),
                   .fragment_m = any(),
                   .fragment_n = any(),
                   .fragment_k = any(),
                   .subgroups_m = any(),
                   .subgroups_n = any(),
                   .subgroup_size = any(),
                   .invocations = any(),
                   .subtiles = any(),
                   .stages = any(),
                   .swizzle = any(),
                   .unroll_k = any(),
                   .peel = random() % 2 == 0,
                   .slices = any(),
                   .tier = static_cast<SplitTier>(random() % 3),
                   .workgroups = any(),
                   .spin_limit = any(),
                   .pack_a = random() % 2 == 0,
                   .pack_b = random() % 2 == 0,
                   .static_shape = random() % 2 == 0,
                   .schedule = static_cast<Schedule>(random() % 2)};
    const auto parsed = parse_config(to_string(c));
    ASSERT_TRUE(parsed) << to_string(c) << ": " << parsed.error().message;
    ASSERT_EQ(*parsed, c) << to_string(c) << " became " << to_string(*parsed);
  }
}

TEST(Config, ErrorsNameThePart) {
  struct Case {
    std::string_view text, expected;
  };
  const Case cases[] = {
      {"", "path ''"},
      {"cuda:tile=1x1x1", "path 'cuda' is none of nv, khr, fma"},
      {"NV:tile=1x1x1", "path 'NV'"},
      {"khr", "part 'tile' is missing"},
      {"khr:", "part 'tile' is missing"},
      {"khr:fragment=16x16x16", "part 'tile' is missing"},
      {"khr:tile=1x1x1,", "a part is empty"},
      {"khr:,tile=1x1x1", "a part is empty"},
      {"khr:tile=1x1x1,,swizzle=2", "a part is empty"},
      {"khr:tile=128x128", "'tile=128x128': expected tile=MxNxK"},
      {"khr:tile=128x128x32x1", "'tile=128x128x32x1'"},
      {"khr:tile=128x128x32x", "'tile=128x128x32x'"},
      {"khr:tile=128xx32", "'tile=128xx32'"},
      {"khr:tile=x1x1", "'tile=x1x1'"},
      {"khr:tile=", "'tile='"},
      {"khr:tile", "'tile'"},
      {"khr:tile=-1x1x1", "'tile=-1x1x1'"},
      {"khr:tile=+1x1x1", "'tile=+1x1x1'"},
      {"khr:tile= 1x1x1", "'tile= 1x1x1'"},
      {"khr:tile=1x1x4294967296", "'tile=1x1x4294967296'"},
      {"khr:tile=0x10x1x1", "'tile=0x10x1x1'"},
      {"khr:tile=1x1x1,tile=1x1x1", "part 'tile' appears twice"},
      {"khr:tile=1x1x1,fragment=16x16", "expected fragment=MxNxK"},
      {"fma:tile=1x1x1,fragment=16", "expected fragment=MxN"},
      {"khr:tile=1x1x1,swizzle=2.5", "'swizzle=2.5': expected a number"},
      {"khr:tile=1x1x1,swizzle=", "'swizzle='"},
      {"khr:tile=1x1x1,pipelines=2", "unknown part 'pipelines=2'"},
      {"khr:tile=1x1x1,static_shape", "'static_shape'"},
      {"khr:tile=1x1x1,schedule=dynamic", "expected schedule=simple or persistent"},
      {"khr:tile=1x1x1,static_shape=yes", "expected static_shape=0 or 1"},
      {"khr:tile=1x1x1,\x1b[31m=2", "unknown part '?[31m=2'"},
  };
  for (const Case& c : cases) {
    const auto parsed = parse_config(c.text);
    ASSERT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error().status, Status::invalid_argument);
    EXPECT_TRUE(contains(parsed.error().message, c.expected))
        << c.text << ": " << parsed.error().message;
  }
}

TEST(Config, HostileLengthGivesShortMessage) {
  const auto parsed = parse_config("khr:" + std::string(1 << 20, 'x'));
  ASSERT_FALSE(parsed);
  EXPECT_LT(parsed.error().message.size(), 300u);
}

}  // namespace
}  // namespace vkgemm
