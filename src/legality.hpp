// legality.hpp: can this configuration compute this problem on this device? Pure; no preference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Shared memory of one workgroup, as the shaders of this configuration declare it, and for nv what
// the driver reserves. More than the device has is not refused by every driver: on one it loses
// the device (NVIDIA H200, driver 580.159.04), so it is counted here, before anything is built.
std::uint64_t shared_memory_bytes(const Config& config, const ResolvedProblem& problem,
                                  const DeviceCaps& caps);

// Nothing if legal, else the first reason against it, with the field and the figures:
// "tile 256x256x64 needs 69632 bytes of shared memory, the device has 49152".
std::optional<std::string> why_illegal(const Config& config, const ResolvedProblem& problem,
                                       const DeviceCaps& caps);

// The same without the words, and without allocating: asked for every row whenever a plan is made.
bool is_legal(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps);

// Whether every part of the configuration is one that its path takes: before that is known nothing
// may divide by a part, or count up to it. Implied by is_legal().
bool has_legal_ranges(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps);

}  // namespace vkgemm
