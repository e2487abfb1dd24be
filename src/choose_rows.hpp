// choose_rows.hpp: which strategies for a row reduction are worth considering, and what each costs
// beside its product. Pure; legality is asked elsewhere.
#pragma once

#include <optional>
#include <vector>

#include "resolved_problem.hpp"
#include "tuning.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// A configuration with a strategy, and how its main loop's rate compares with that of the
// configuration that it was made from.
struct RowVariant {
  Config config;
  double rate_factor = 1.0;
};

// What loads of a tile cost for each product, by its perimeter and those of its subgroups: the port
// to shared memory is what binds the main loop (bench/NOTES.md).
double perimeter(const Config& config);

// Slices of khr's epilogue so small that they need no more memory than the main loop, if they can
// be.
void cut_epilogue(Config& config, const ResolvedProblem& problem, const DeviceCaps& caps);

// The tile reshaped so that it is as wide as n, with as many accumulators for every invocation,
// slabs that fit the shared memory, and subgroups as square as can be. Nothing if there is no such
// tile.
std::optional<RowVariant> resident_variant(const Config& config, const ResolvedProblem& problem,
                                           const DeviceCaps& caps);

// All of them; without a row reduction the configuration as it is.
std::vector<RowVariant> row_variants(const Config& config, const ResolvedProblem& problem,
                                     const DeviceCaps& caps);

// Microseconds beside those of the product that the configuration is for, which takes `product`, in
// `rounds` of `resident` workgroups on each compute unit.
double row_cost(const Config& config, const ResolvedProblem& problem, const TimingModel& timing,
                double product, double rounds, double resident);

}  // namespace vkgemm
