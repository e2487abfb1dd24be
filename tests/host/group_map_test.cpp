// The map from slots to groups, which is the shader's own text: every row of every group is in one
// slot's tile, whatever the groups' sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/tiling.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

namespace shader {

using uint = std::uint32_t;
uint SLOT_SIZE = 1;
std::vector<std::int64_t> offsets;
std::int64_t capacity = 0;

uint group_begin(uint group) {
  return static_cast<uint>(std::clamp<std::int64_t>(offsets.at(group), 0, capacity));
}
uint group_end(uint group) { return group_begin(group + 1); }

#include "lib/schedule/group_map.glsl"

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
    const std::uint32_t end = shader::group_end(group);
    const std::uint32_t row =
        shader::group_begin(group) + (slot - shader::first_slot(group)) * shader::SLOT_SIZE;
    for (std::uint32_t i = row; i < std::min(row + shader::SLOT_SIZE, end); ++i) {
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
    shader::SLOT_SIZE = tile;
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
    shader::SLOT_SIZE = 1u << random() % 9;
    std::vector<std::uint32_t> sizes(1 + random() % 200);
    for (std::uint32_t& size : sizes) {
      size = random() % 2 == 0 ? 0 : random() % (3 * shader::SLOT_SIZE + 2);
    }
    expect_every_row_once(sizes, random() % 5, random() % 100);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// Whatever the offsets, the search ends, and with a group that exists.
TEST(GroupMap, NonsenseEnds) {
  std::mt19937_64 random(4);
  for (int turn = 0; turn < 1000; ++turn) {
    shader::SLOT_SIZE = 1u << random() % 9;
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
    shader::SLOT_SIZE = tile;
    Config c = test::config("fma:tile=128x64x16,fragment=8x8");
    c.tile_m = tile;
    for (const std::uint64_t m : {1u, 127u, 128u, 2147483647u}) {
      Problem p = test::gemm(m, 1, 1);
      p.grouping = Grouping{.groups = 9};
      EXPECT_EQ(tile_count(c, test::resolved(p)),
                shader::slot_count(static_cast<std::uint32_t>(m), 9));
    }
  }
}

}  // namespace
}  // namespace vkgemm
