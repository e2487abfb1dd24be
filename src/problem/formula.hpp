// formula.hpp: an epilogue as a formula. Pure.
#pragma once

#include <string>

#include "vkgemm/problem.hpp"

namespace vkgemm {

// A line for each result that is not aux, as Plan::explain() prints them:
//   t1[i, j] = silu(a·b + bias[j])
//   d[i, j] = clamp(silu(a·b + bias[j]) · t0[i, j], 0, inf)
std::string formula(const Problem& problem);

}  // namespace vkgemm
