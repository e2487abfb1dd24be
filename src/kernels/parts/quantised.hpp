// quantised.hpp: a B of codes: which loops take it, and the dispatch that packs it.
#pragma once

#include "kernels/dispatch_plan.hpp"
#include "problem/inputs/codes.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// The shared memory, in units, of the scales of sums over groups of K
// (shaders/lib/loops/staged_scales.glsl), 0 for other inputs; and the depth of a sum within a
// k-tile.
std::uint32_t staged_scales_units(const Config& config, const ResolvedProblem& problem);
std::uint32_t scaled_sum_depth(const Config& config, const ResolvedProblem& problem);
// True if sums stay in registers across k-tiles.
bool keeps_sums(const Config& config, const ResolvedProblem& problem);

// SCALES_OF_* of shaders/lib/quantised.h: what scales multiply in the product of a configuration.
std::uint32_t scales_of(const Config& config, const Quantisation& q, const Input& input);

// Elements are rounded to the input type where scales multiply codes, else not at all.
bool rounds_elements(const Config& config, const Quantisation& q, const Input& input);

// Packs B of the problem, in the order of shaders/lib/quantised.h, to `copy`.
Step pack_codes_step(const Problem& problem, const CodeSource& source, const ResolvedMatrix& copy,
                     std::uint64_t matrices, const Limits& limits);

}  // namespace vkgemm
