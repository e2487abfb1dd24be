// row_variants.hpp: which strategies for a row reduction are worth considering, and what each costs
// beside its product. Pure; legality is asked elsewhere.
#pragma once

#include <optional>
#include <vector>

#include "problem/resolved_problem.hpp"
#include "tuning/table.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// A configuration with a strategy, and how its main loop's rate compares with that of the
// configuration that it was made from.
struct RowVariant {
  Config config;
  double rate_factor = 1.0;
};

// The tile reshaped so that it is as wide as n, with as many accumulators for every invocation,
// k-tiles that fit the shared memory, and subgroups as square as can be. Nothing if there is no
// such tile.
std::optional<RowVariant> resident_variant(const Config& config, const ResolvedProblem& problem,
                                           const DeviceCaps& caps);

// True if a variant may have a better rate than its row.
bool may_gain_rate(const ResolvedProblem& problem);

// All of them; without a row reduction the configuration as it is.
std::vector<RowVariant> row_variants(const Config& config, const ResolvedProblem& problem,
                                     const DeviceCaps& caps);

}  // namespace vkgemm
