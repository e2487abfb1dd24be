// footprint.hpp: the shared memory that a workgroup takes. Pure.
#pragma once

#include <cstdint>

#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Shared memory of one workgroup, as the shaders of this configuration declare it, and for nv what
// the driver reserves. More than the device has is not refused by every driver: on one it loses
// the device (NVIDIA H200, driver 580.159.04), so it is counted here, before anything is built.
std::uint64_t shared_memory_bytes(const Config& config, const ResolvedProblem& problem,
                                  const DeviceCaps& caps);

}  // namespace vkgemm
