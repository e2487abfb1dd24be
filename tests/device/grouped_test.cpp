// Grouped products: groups of rows and of K, of any sizes, on both schedules.
#include <algorithm>
#include <numeric>
#include <random>

#include "harness.hpp"
#include "support/heavy_epilogue.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using Offsets = std::vector<std::int64_t>;

Offsets offsets_of(const std::vector<std::uint64_t>& sizes, std::int64_t first = 0) {
  Offsets offsets{first};
  for (const std::uint64_t size : sizes) {
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(size));
  }
  return offsets;
}

// A problem that holds the groups exactly; m, or k, of the shape is not used.
Problem grouped(Problem problem, const Offsets& offsets, GroupAlong along = GroupAlong::m) {
  problem.grouping = {.groups = static_cast<std::uint32_t>(offsets.size() - 1), .along = along};
  (along == GroupAlong::m ? problem.m : problem.k) = static_cast<std::uint64_t>(offsets.back());
  return problem;
}

Config persistent(Config config, std::uint32_t workgroups = 3) {
  config.schedule = Schedule::persistent;
  config.workgroups = workgroups;
  return config;
}

class Grouped : public EachPath {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_skip(GetParam())); }

  DataType input() const { return inputs_of(GetParam()).front(); }
  Config config() const { return small_configs(GetParam(), input()).front(); }
};
VKGEMM_ON_EACH_PATH(Grouped);

// Around the tile, empty at the beginning, in the middle and at the end.
std::vector<std::uint64_t> awkward_sizes(std::uint64_t tile) {
  return {0, tile, tile - 1, tile + 1, 0, 0, 1, 5 * tile + 3, 2, 0};
}

testing::AssertionResult passes_both(const Config& config, const Problem& problem,
                                     const Offsets& offsets, std::uint64_t shift = 0) {
  const TrialOptions options{.shift = shift, .offsets = offsets};
  if (auto simple = passes_gates(config, problem, options); !simple) return simple;
  return passes_gates(persistent(config), problem, options);
}

TEST_P(Grouped, RowsOfAnySize) {
  const Offsets offsets = offsets_of(awkward_sizes(config().tile_m));
  for (const GroupedB b : {GroupedB::shared, GroupedB::per_group}) {
    Problem problem = grouped(gemm({0, 21, 37}, input()), offsets);
    problem.grouping->b = b;
    EXPECT_TRUE(passes_both(config(), with_padding(problem), offsets, 1));
  }
}

}  // namespace
}  // namespace vkgemm::test
