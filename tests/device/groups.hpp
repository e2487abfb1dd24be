// groups.hpp: problems with groups of awkward sizes, and with offsets that are bad.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "trial.hpp"

namespace vkgemm::test {

using Offsets = std::vector<std::int64_t>;

Offsets offsets_of(const std::vector<std::uint64_t>& sizes, std::int64_t first = 0);

// A problem that just holds the groups; its m, or k, is not used.
Problem grouped(Problem problem, const Offsets& offsets, GroupAlong along = GroupAlong::m);

Config persistent(Config config, std::uint32_t workgroups = 3);

// Around the tile, empty at the beginning, in the middle and at the end.
std::vector<std::uint64_t> awkward_sizes(std::uint64_t tile);

// The three gates, on either schedule.
testing::AssertionResult passes_on_both(const Config& config, const Problem& problem,
                                        const TrialOptions& options);

// Runs problems with bad offsets, and expects what the header says of them.
void clamps_and_tells(const Config& config, DataType input, GroupAlong along);

}  // namespace vkgemm::test
