// legality.hpp: can this configuration compute this problem on this device? Pure; no preference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/computation.hpp"
#include "kernels/target.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Nothing if legal, else the first reason against it, with the field and the figures:
// "tile 256x256x64 needs 69632 bytes of shared memory, the device has 49152".
std::optional<std::string> why_illegal(const Config& config, const ResolvedProblem& problem,
                                       const Target& target);

// The same without the words, and without allocating: asked for every row whenever a plan is made.
bool is_legal(const Config& config, const ResolvedProblem& problem, const Target& target);

// The same of a configuration that has legal ranges, as those of a table's rows have. False from
// may_be_legal(), which copies no problem, spares a Computation; true makes an Estimate safe.
bool is_legal_row(const Config& config, const ResolvedProblem& problem, const Target& target);
bool may_be_legal(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps);
bool is_legal(const Computation& computation, const Target& target);

// True if a main loop multiplies an input on a device. why_not_multiplied() gives the reason.
bool multiplies(MainLoop loop, const Input& input, const DeviceCaps& caps);
std::string why_not_multiplied(MainLoop loop, const Input& input, const DeviceCaps& caps);

// True if every parameter of the configuration is one that its main loop takes: before that is
// known nothing may divide by a parameter, or count up to it. Implied by is_legal().
bool has_legal_ranges(const Config& config, std::string* reason = nullptr);

}  // namespace vkgemm
