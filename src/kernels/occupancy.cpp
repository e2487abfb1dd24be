#include "kernels/occupancy.hpp"

#include <algorithm>
#include <cmath>

#include "device/caps.hpp"
#include "kernels/footprint.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/quantised.hpp"

namespace vkgemm {
namespace {

// Compute units where the driver doesn't tell: few enough that large shapes are not split for
// nothing, enough that a small one is not given to a single workgroup.
constexpr double unknown_compute_units = 16.0;

// Registers of an invocation beside its accumulators, and what it can have at all. Estimates: only
// how many workgroups share a compute unit depends on them.
constexpr double other_registers = 90.0;
constexpr double registers_per_accumulator = 1.2;
constexpr double most_registers = 255.0;

}  // namespace

// A CPU runs tiles one by one as far as this model cares.
double compute_units(const DeviceCaps& caps) {
  if (caps.limits.compute_units != 0) return caps.limits.compute_units;
  return is_cpu(caps) ? 1.0 : unknown_compute_units;
}

double workgroups_that_fit(const Config& c, const TimingModel& timing,
                           const ResolvedProblem& problem, const DeviceCaps& caps) {
  const double accumulators = accumulator_count(c) * (keeps_sums(c, problem) ? 2.0 : 1.0);
  const double registers =
      std::min(registers_per_accumulator * accumulators + other_registers, most_registers);
  const double shared = static_cast<double>(shared_memory_bytes(c, problem, caps)) +
                        timing.shared_memory_overhead_bytes;
  const double fit = std::min(timing.shared_memory_bytes / std::max(shared, 1.0),
                              timing.registers / (invocations(c) * registers));
  return std::clamp(std::floor(fit), 1.0, 8.0);
}

std::uint32_t resident_workgroups(const Config& config, const TimingModel& timing,
                                  const ResolvedProblem& problem, const DeviceCaps& caps) {
  return static_cast<std::uint32_t>(compute_units(caps) *
                                    workgroups_that_fit(config, timing, problem, caps));
}

}  // namespace vkgemm
