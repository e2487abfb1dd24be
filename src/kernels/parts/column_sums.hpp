// column_sums.hpp: the place of a chunk's column sums in the workspace (StepOp::sum_columns). Pure.
#pragma once

#include "kernels/computed_problem.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"

namespace vkgemm {

// Sets the pitches of Addresses::extra. One dispatch adds the sums of all chunks.
void set_sum_pitches(RowChunks& chunks, const Config& config, const ResolvedProblem& problem);

}  // namespace vkgemm
