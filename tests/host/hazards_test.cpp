// The checker of hazards on lists of events; where regions meet; which kernels it knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <set>
#include <vector>

#include "embedded/embedded.hpp"
#include "hazards.hpp"
#include "kernel_accesses.hpp"

namespace vkgemm::test {
namespace {

constexpr VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkPipelineStageFlags host = VK_PIPELINE_STAGE_HOST_BIT;
constexpr VkAccessFlags shader_read = VK_ACCESS_SHADER_READ_BIT;
constexpr VkAccessFlags shader_write = VK_ACCESS_SHADER_WRITE_BIT;

constexpr Region memory{.address = 4096, .bytes = 256};
constexpr Region other{.address = 4096 + 256, .bytes = 256};

Access reading(const Region& region = memory) {
  return {.what = "a", .region = region, .reads = true};
}
Access writing(const Region& region = memory) {
  return {.what = "d", .region = region, .writes = true};
}
Command reader(const Region& region = memory) {
  return {.name = "reader", .accesses = {reading(region)}};
}
Command writer(const Region& region = memory) {
  return {.name = "writer", .accesses = {writing(region)}};
}
Command filler() { return {.name = "fill", .stage = transfer, .accesses = {writing()}}; }
Command copier() { return {.name = "copy", .stage = transfer, .accesses = {reading()}}; }
// As record() records it.
Barrier barrier(VkAccessFlags src = shader_write, VkAccessFlags dst = shader_read | shader_write) {
  return {compute, compute, src, dst};
}

std::size_t hazards(std::initializer_list<Event> events) {
  return find_hazards(std::vector<Event>(events)).size();
}

TEST(Hazards, SayWhoDoesWhatWhere) {
  const std::vector<Event> events{writer(), reader()};
  const auto found = find_hazards(events);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0],
            "command 2 (reader) reads a [0x1000, 0x1100), which command 1 (writer) writes as "
            "d [0x1000, 0x1100): no barrier makes it wait");
}

TEST(Hazards, OfAllKinds) {
  EXPECT_EQ(hazards({writer(), reader()}), 1u) << "read after write";
  EXPECT_EQ(hazards({reader(), writer()}), 1u) << "write after read";
  EXPECT_EQ(hazards({writer(), writer()}), 1u) << "write after write";
  EXPECT_EQ(hazards({reader(), reader()}), 0u);
  EXPECT_EQ(hazards({writer(), reader(other)}), 0u);
  EXPECT_EQ(hazards({writer(), reader(), writer()}), 3u) << "each two of them";
}

TEST(Hazards, ABarrierOrdersWhatIsBeforeAndBehind) {
  EXPECT_EQ(hazards({writer(), barrier(), reader()}), 0u);
  EXPECT_EQ(hazards({writer(), barrier(), writer()}), 0u);
  EXPECT_EQ(hazards({reader(), barrier(), writer()}), 0u);
  EXPECT_EQ(hazards({writer(), writer(other), barrier(), reader(), reader(other)}), 0u);
  EXPECT_EQ(hazards({barrier(), writer(), reader()}), 1u) << "too early";
  EXPECT_EQ(hazards({writer(), reader(), barrier()}), 1u) << "too late";
}

TEST(Hazards, AccessesMustBeNamed) {
  EXPECT_EQ(hazards({writer(), barrier(0, 0), reader()}), 1u);
  EXPECT_EQ(hazards({writer(), barrier(0), reader()}), 1u) << "not made available";
  EXPECT_EQ(hazards({writer(), barrier(shader_read), reader()}), 1u);
  EXPECT_EQ(hazards({writer(), barrier(shader_write, shader_read), reader()}), 0u);
  EXPECT_EQ(hazards({writer(), barrier(shader_write, shader_read), writer()}), 1u);
  EXPECT_EQ(hazards({writer(), barrier(shader_write, shader_write), reader()}), 1u);
  EXPECT_EQ(hazards({reader(), barrier(0, 0), writer()}), 0u) << "a read has nothing to show";
  EXPECT_EQ(
      hazards({writer(), barrier(VK_ACCESS_MEMORY_WRITE_BIT, VK_ACCESS_MEMORY_READ_BIT), reader()}),
      0u);
  // What was made available stays so.
  EXPECT_EQ(hazards({writer(), barrier(shader_write, 0), barrier(0, shader_read), reader()}), 0u);
}

// All waits, but what was written elsewhere is not shown.
TEST(Hazards, ABarrierMayBeForSomeMemory) {
  const auto of = [](const Region& region) {
    return Barrier{compute, compute, shader_write, shader_read | shader_write, region};
  };
  const Region both{.address = memory.address, .bytes = 512};
  EXPECT_EQ(hazards({writer(), of(memory), reader()}), 0u);
  EXPECT_EQ(hazards({writer(), of(both), writer()}), 0u);
  EXPECT_EQ(hazards({writer(), of(other), reader()}), 1u);
  EXPECT_EQ(hazards({reader(), of(other), writer()}), 0u);
  EXPECT_EQ(hazards({writer(both), of(memory), reader(both)}), 1u) << "the half of it";
  EXPECT_EQ(hazards({writer(both), of(memory), reader(), reader(other)}), 1u);
  const Barrier available{compute, compute, shader_write, 0, memory};
  EXPECT_EQ(hazards({writer(), available, barrier(0, shader_read), reader()}), 0u);
  EXPECT_EQ(hazards({writer(), barrier(shader_write, 0),
                     Barrier{compute, compute, 0, shader_read, memory}, reader()}),
            0u);
}

TEST(Hazards, StagesMustBeNamed) {
  const VkAccessFlags both = shader_read | shader_write;
  EXPECT_EQ(hazards({writer(), Barrier{transfer, compute, shader_write, both}, reader()}), 1u);
  EXPECT_EQ(hazards({writer(), Barrier{compute, transfer, shader_write, both}, reader()}), 1u);
  const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  EXPECT_EQ(hazards({writer(), Barrier{all, all, shader_write, both}, reader()}), 0u);
  // The top of the pipe waits for nothing, and nothing waits at its bottom.
  const VkPipelineStageFlags top = VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT;
  const VkPipelineStageFlags bottom = VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
  EXPECT_EQ(hazards({reader(), Barrier{bottom, top}, writer()}), 0u);
  EXPECT_EQ(hazards({reader(), Barrier{top, top}, writer()}), 1u);
  EXPECT_EQ(hazards({reader(), Barrier{bottom, bottom}, writer()}), 1u);
}

TEST(Hazards, BarriersMakeChains) {
  const Barrier out{compute, transfer, shader_write, VK_ACCESS_TRANSFER_READ_BIT};
  const Barrier back{transfer, compute, 0, shader_read};
  EXPECT_EQ(hazards({writer(), out, copier(), back, reader()}), 0u);
  EXPECT_EQ(hazards({writer(), back, out, reader()}), 1u) << "the other way round it is none";
  // A write is made available by a barrier that waits for its own stage.
  const Barrier late{transfer, compute, shader_write, shader_read};
  EXPECT_EQ(hazards({writer(), Barrier{compute, transfer}, late, reader()}), 1u);
}

TEST(Hazards, CopiesAndFillsCount) {
  const VkAccessFlags write = VK_ACCESS_TRANSFER_WRITE_BIT;
  EXPECT_EQ(hazards({filler(), reader()}), 1u);
  EXPECT_EQ(hazards({filler(), barrier(), reader()}), 1u);
  EXPECT_EQ(hazards({filler(), Barrier{transfer, compute, write, shader_read}, reader()}), 0u);
  EXPECT_EQ(hazards({writer(), copier()}), 1u);
  EXPECT_EQ(hazards({copier(), barrier(), writer()}), 1u);
}

TEST(Hazards, SubmissionsOrderNothingAndTheHostDoes) {
  EXPECT_EQ(hazards({Submission{}, writer(), Submission{}, reader()}), 1u);
  EXPECT_EQ(hazards({Submission{}, writer(), Submission{}, barrier(), reader()}), 0u);
  EXPECT_EQ(hazards({Submission{}, writer(), HostWait{1}, Submission{}, reader()}), 0u);
  EXPECT_EQ(hazards({Submission{}, writer(), Submission{}, writer(other), HostWait{1}, reader(),
                     reader(other)}),
            1u)
      << "the second one may still run";
}

TEST(Hazards, WhatTheHostLooksAtIsMadeVisibleToIt) {
  Command counter = writer();
  counter.accesses[0].host_reads = true;
  const Barrier to_host{compute, compute | host, shader_write,
                        shader_read | shader_write | VK_ACCESS_HOST_READ_BIT};
  EXPECT_EQ(hazards({counter, HostWait{}}), 1u);
  EXPECT_EQ(hazards({counter, barrier(), HostWait{}}), 1u);
  EXPECT_EQ(hazards({counter, to_host, HostWait{}}), 0u);
  EXPECT_EQ(hazards({counter, Barrier{compute, host, shader_write, shader_read}, HostWait{}}), 1u);
  EXPECT_EQ(hazards({writer(), HostWait{}}), 0u);
}

TEST(Hazards, AtomicsNeedNoOrderAmongThemselves) {
  Command counter{
      .name = "counter",
      .accesses = {
          {.what = "word", .region = memory, .reads = true, .writes = true, .atomic = true}}};
  EXPECT_EQ(hazards({counter, counter}), 0u);
  EXPECT_EQ(hazards({counter, writer()}), 1u);
  EXPECT_EQ(hazards({reader(), counter}), 1u);
}

TEST(Hazards, PartsOfOneGridNeedNoOrder) {
  const auto part = [](std::uint32_t grid, std::uint32_t first_tile, std::uint32_t first_batch) {
    Command command = writer();
    command.part = GridPart{.grid = {grid},
                            .first_tile = first_tile,
                            .tiles = 8,
                            .first_batch = first_batch,
                            .batches = 2};
    return command;
  };
  EXPECT_EQ(hazards({part(1, 0, 0), part(1, 8, 0), part(1, 0, 2)}), 0u);
  EXPECT_EQ(hazards({part(1, 0, 0), part(1, 7, 1)}), 1u) << "a tile belongs to both";
  EXPECT_EQ(hazards({part(1, 0, 0), part(1, 0, 0)}), 1u) << "the same once more";
  EXPECT_EQ(hazards({part(1, 0, 0), part(2, 8, 0)}), 1u) << "of another grid";
}

TEST(Hazards, BetweenColumnsOfOneMatrix) {
  const Region left{.address = 0x1000, .bytes = 64, .lines = {256, 10}};
  Region right = left;
  right.address += 64;
  EXPECT_EQ(hazards({writer(left), writer(right)}), 0u);
  right.address -= 1;
  EXPECT_EQ(hazards({writer(left), writer(right)}), 1u);
  // A batch side by side within the lines, and one of another width between its members.
  const Region heads{.address = 0x1000, .bytes = 32, .lines = {256, 10}, .matrices = {64, 4}};
  Region between{.address = 0x1020, .bytes = 32, .lines = {256, 10}, .matrices = {64, 4}};
  EXPECT_EQ(hazards({writer(heads), writer(between)}), 0u);
  between.bytes = 33;
  EXPECT_EQ(hazards({writer(heads), writer(between)}), 1u);
}

// Against sets of bytes.
TEST(Regions, MeetWhereABytesIsInBoth) {
  std::mt19937 random(11);
  const auto pick = [&](std::uint64_t from, std::uint64_t to) {
    return from + random() % (to - from + 1);
  };
  const auto any_region = [&] {
    return Region{.address = 1000 + pick(0, 60),
                  .bytes = pick(0, 9),
                  .lines = {pick(0, 24), pick(0, 4)},
                  .matrices = {pick(0, 40), pick(0, 3)}};
  };
  const auto bytes_of = [](const Region& r) {
    std::set<std::uint64_t> bytes;
    for (std::uint64_t i = 0; i < r.matrices.count; ++i) {
      for (std::uint64_t j = 0; j < r.lines.count; ++j) {
        for (std::uint64_t k = 0; k < r.bytes; ++k) {
          bytes.insert(r.address + i * r.matrices.pitch + j * r.lines.pitch + k);
        }
      }
    }
    return bytes;
  };
  int met = 0, missed = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    const Region a = any_region(), b = any_region();
    const std::set<std::uint64_t> x = bytes_of(a), y = bytes_of(b);
    const bool meet = std::ranges::any_of(x, [&](std::uint64_t byte) { return y.contains(byte); });
    ASSERT_EQ(overlap(a, b), meet) << "turn " << turn;
    ASSERT_EQ(overlap(b, a), meet) << "turn " << turn;
    ASSERT_EQ(a.is_empty(), x.empty()) << "turn " << turn;
    if (!x.empty()) {
      ASSERT_EQ(a.end(), *x.rbegin() + 1) << "turn " << turn;
    }
    ++(meet ? met : missed);
  }
  EXPECT_GT(met, 1000);
  EXPECT_GT(missed, 1000);
}

// A new kernel declares what it touches.
TEST(KernelAccesses, OfEveryKernel) {
  std::array<std::uint32_t, SPEC_COUNT> constants{};
  constants.fill(1);
  constants[SPEC_TILE_N] = 32;
  const ParameterWords parameters{};
  for (const embedded::Module& module : embedded::modules()) {
    const bool yardstick = module.name.starts_with("ceiling") || module.name == "bandwidth";
    const auto accesses =
        kernel_accesses({.module = module.name, .constants = constants, .parameters = parameters});
    EXPECT_EQ(accesses.has_value(), !yardstick) << module.name;
    EXPECT_TRUE(!accesses || !accesses->empty()) << module.name;
  }
  EXPECT_FALSE(kernel_accesses({.module = "", .constants = constants, .parameters = parameters}));
}

}  // namespace
}  // namespace vkgemm::test
