// resolve.hpp: the checks of a problem that need no device, and the second dimension of its batch.
// Kernels take one batch dimension. The other one repeats the whole problem with advanced
// addresses. Pure.
#pragma once

#include "problem/resolved_problem.hpp"

namespace vkgemm {

// Checks everything that needs no device: sizes, leading dimensions, strides, alignments, types.
// Messages name the caller's field and value ("b.ld is 12: a row of N = 16 needs at least 16").
Result<ResolvedProblem> resolve(const Problem& problem);

// The problem of the first outer batch index.
Problem inner_part(const Problem& problem);

}  // namespace vkgemm
