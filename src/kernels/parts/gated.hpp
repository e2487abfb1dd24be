// gated.hpp: two products in one pass over A.
#pragma once

#include "kernels/part.hpp"

namespace vkgemm {

// The constants of a gate, if there is one.
void set_gate(Constants& constants, const ResolvedProblem& problem);

}  // namespace vkgemm
