// row_sums.hpp: rows of a product that are added up to rows of D (Grouping::d_terms). Pure.
#pragma once

#include "problem/resolved_problem.hpp"

namespace vkgemm {

// The f32 matrix in the workspace that the product stores in place of D.
ResolvedMatrix row_sum_values(const ResolvedProblem& problem);

}  // namespace vkgemm
