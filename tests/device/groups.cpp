#include "groups.hpp"

#include <algorithm>
#include <cmath>

#include "harness.hpp"

namespace vkgemm::test {
namespace {

struct BadOffsets {
  const char* name;
  Offsets offsets;
  std::uint32_t bad_group;
  bool in_order;  // once they are clamped: results are those of the clamped offsets
};

const BadOffsets bad_offsets[] = {
    {"negative", {-5, 10, 20, 40}, 0, true},
    {"the first group before the first row", {-20, -10, 20, 40}, 0, true},
    {"beyond the capacity", {0, 10, 20, 41}, 2, true},
    {"groups beyond the capacity", {0, 50, 60, 70}, 0, true},
    {"decreasing", {0, 30, 20, 40}, 1, false},
    {"decreasing at the end", {0, 10, 40, 0}, 2, false},
    {"backwards", {40, 30, 20, 0}, 0, false},
};

constexpr std::uint64_t capacity = 40;

// The group whose result a row holds is not specified, or whether it holds one, but rows of no
// group hold none. B is one for all.
void expect_rows_of_groups(const Trial& trial, const Problem& problem, const Config& config,
                           const Offsets& offsets) {
  Problem whole = problem;
  whole.grouping->groups = 1;
  Trial every_row(whole, Fill::integers, {.offsets = {0, capacity}});
  ASSERT_TRUE(every_row.run(config));
  const auto clamped = [](std::int64_t offset) {
    return std::clamp<std::int64_t>(offset, 0, capacity);
  };
  std::vector<bool> in_a_group(capacity, false);
  for (std::size_t g = 0; g + 1 < offsets.size(); ++g) {
    for (std::int64_t row = clamped(offsets[g]); row < clamped(offsets[g + 1]); ++row) {
      in_a_group[static_cast<std::size_t>(row)] = true;
    }
  }
  for (std::uint64_t row = 0; row < capacity; ++row) {
    const bool is_stored = !std::isnan(trial.d(row, 0));
    EXPECT_TRUE(in_a_group[row] || !is_stored) << "row " << row;
    for (std::uint64_t col = 0; col < problem.n && is_stored; ++col) {
      EXPECT_EQ(trial.d(row, col), every_row.d(row, col)) << "row " << row << ", column " << col;
    }
  }
}

}  // namespace

Offsets offsets_of(const std::vector<std::uint64_t>& sizes, std::int64_t first) {
  Offsets offsets{first};
  for (const std::uint64_t size : sizes) {
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(size));
  }
  return offsets;
}

Problem grouped(Problem problem, const Offsets& offsets, GroupAlong along) {
  problem.grouping = {.groups = static_cast<std::uint32_t>(offsets.size() - 1), .along = along};
  (along == GroupAlong::m ? problem.m : problem.k) = static_cast<std::uint64_t>(offsets.back());
  return problem;
}

Config persistent(Config config, std::uint32_t workgroups) {
  config.schedule = Schedule::persistent;
  config.workgroups = workgroups;
  return config;
}

std::vector<std::uint64_t> awkward_sizes(std::uint64_t tile) {
  return {0, tile, tile - 1, tile + 1, 0, 0, 1, 5 * tile + 3, 2, 0};
}

testing::AssertionResult passes_on_both(const Config& config, const Problem& problem,
                                        const TrialOptions& options) {
  if (auto simple = passes_gates(config, problem, options); !simple) return simple;
  return passes_gates(persistent(config), problem, options);
}

void clamps_and_tells(const Config& config, DataType input, GroupAlong along) {
  for (const BadOffsets& bad : bad_offsets) {
    SCOPED_TRACE(bad.name);
    Problem problem = grouped(gemm({23, 21, 19}, input), bad.offsets, along);
    (along == GroupAlong::m ? problem.m : problem.k) = capacity;
    problem = with_padding(problem);
    if (is_left_out(config, problem)) continue;
    SCOPED_TRACE(describe(config, problem));
    Trial trial(problem, Fill::integers, {.offsets = bad.offsets});
    ASSERT_TRUE(trial.run(config));
    EXPECT_EQ(trial.bad_group(), bad.bad_group);
    if (bad.in_order) {
      EXPECT_TRUE(trial.is_exact());
    } else if (along == GroupAlong::m) {
      expect_rows_of_groups(trial, problem, config, bad.offsets);
    } else if (!config.pack_a) {  // else what D holds is unspecified
      EXPECT_TRUE(trial.is_exact());
    }
  }
}

}  // namespace vkgemm::test
