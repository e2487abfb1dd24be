// column_sums.hpp: what chunks of a problem need to know of sums of columns (StepOp::sum_columns).
// Pure.
#pragma once

#include "kernels/computed_problem.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"

namespace vkgemm {

// The place of a chunk's sums among those of all chunks, which one dispatch adds at the end.
void set_sum_pitches(RowChunks& chunks, const Config& config, const ResolvedProblem& problem);

}  // namespace vkgemm
