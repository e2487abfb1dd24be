// occupancy.hpp: how many workgroups a device has running at a time, by an estimate. Pure.
#pragma once

#include <cstdint>

#include "kernels/timing.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Or a guess where the driver doesn't tell.
double compute_units(const DeviceCaps& caps);

// The workgroups that fit one compute unit.
double workgroups_that_fit(const Config& config, const TimingModel& timing,
                           const ResolvedProblem& problem, const DeviceCaps& caps);

// The workgroups that are resident on the device at a time.
std::uint32_t resident_workgroups(const Config& config, const TimingModel& timing,
                                  const ResolvedProblem& problem, const DeviceCaps& caps);

}  // namespace vkgemm
