// pack.hpp: operands that are copied into the workspace before they are multiplied, in the form
// that the main loops load best: K is the outer direction, rows begin at cache lines, and the
// padding may be read.
#pragma once

#include "kernels/part.hpp"

namespace vkgemm {

// The problem as the kernel of this configuration sees it: the same if nothing is packed.
ResolvedProblem packed(const ResolvedProblem& problem, const Config& config);

}  // namespace vkgemm
