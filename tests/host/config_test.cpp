#include "vkgemm/config.hpp"

#include <gtest/gtest.h>

#include <random>

#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::contains;

TEST(Config, PrintsWithoutDefaults) {
  const Config khr{.loop = KhrLoop{.fragment_m = 16,
                                   .fragment_n = 8,
                                   .fragment_k = 16,
                                   .subgroups_m = 2,
                                   .subgroups_n = 1,
                                   .subgroup_size = 32,
                                   .subtiles = 4},
                   .tile_m = 128,
                   .tile_n = 64,
                   .tile_k = 32,
                   .swizzle = 3};
  EXPECT_EQ(to_string(khr),
            "khr:tile=128x64x32,fragment=16x8x16,subgroups=2x1,subgroup_size=32,subtiles=4,"
            "swizzle=3");
  const Config nv{.loop = NvLoop{.invocations = 256, .unroll_k = 8},
                  .tile_m = 128,
                  .tile_n = 256,
                  .tile_k = 32,
                  .static_shape = true};
  EXPECT_EQ(to_string(nv), "nv:tile=128x256x32,invocations=256,unroll_k=8,static_shape=1");
  const Config skinny{.loop = SkinnyLoop{}, .tile_m = 4, .tile_n = 64, .tile_k = 256};
  EXPECT_EQ(to_string(skinny), "skinny:tile=4x64x256");
}

TEST(Config, NamesItsMainLoop) {
  for (const LoopDescriptor* loop : main_loops()) {
    EXPECT_EQ(without_values(loop->loop).main_loop(), loop->loop) << loop->name;
    EXPECT_EQ(parse_main_loop(loop->name), loop->loop);
    EXPECT_EQ(to_string(loop->loop), loop->name);
    EXPECT_EQ(&descriptor(loop->loop), loop);
    EXPECT_EQ(descriptor(loop->kin).kin, loop->kin) << loop->name;
  }
  EXPECT_EQ(test::config("khr_ring:tile=1x1x1").path(), Path::khr);
  EXPECT_EQ(test::config("skinny:tile=1x1x1").path(), Path::fma);
}

TEST(Config, ImpliesInvocations) {
  EXPECT_EQ(invocations(test::config("fma:tile=64x32x16,fragment=8x4")), 64u);
  EXPECT_EQ(invocations(test::config("khr:tile=8x8x8,subgroups=3x5,subgroup_size=8")), 120u);
  EXPECT_EQ(invocations(test::config("skinny:tile=4x64x256")), 256u);
  // Saturated rather than wrapped to something small.
  EXPECT_EQ(invocations(test::config("khr:tile=8x8x8,subgroups=65536x65536,subgroup_size=32")),
            4294967295u);
}

TEST(Config, EveryConfigurationSurvivesPrintingAndParsing) {
  std::mt19937 random(1);
  const std::uint32_t values[] = {0, 1, 2, 4, 8, 16, 31, 32, 64, 128, 256, 65536, 4294967295u};
  const auto any = [&] { return values[random() % std::size(values)]; };
  for (int i = 0; i < 20000; ++i) {
    const Config c = test::any_config(any);
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
      {"", "main loop ''"},
      {"cuda:tile=1x1x1", "main loop 'cuda' is none of nv, khr, khr_ring, khr_direct, fma, skinny"},
      {"NV:tile=1x1x1", "main loop 'NV'"},
      {"khr:tile=1x1x1,unroll_k=2", "unknown part 'unroll_k=2'"},
      {"skinny:tile=1x1x1,fragment=1x8x8", "unknown part 'fragment=1x8x8'"},
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
