// epilogue.hpp: what kernels are told of the operands and functions of an elementwise epilogue.
// Pure.
#pragma once

#include "kernels/constants.hpp"
#include "lib/abi.h"
#include "problem/resolved_problem.hpp"

namespace vkgemm {

// Strides and leading dimensions.
void set_strides(gpu::GemmParams& params, const ResolvedProblem& problem);

// The row scales for each group of K. The product applies them to its sums, and the epilogue does
// not. Call this after set_epilogue().
void set_group_scales(Constants& constants, const ResolvedProblem& problem);

// The constants of an elementwise epilogue. `x4`: it works on four elements at once, where they
// allow it.
void set_epilogue(Constants& constants, const ResolvedProblem& problem, bool x4);

// True if an epilogue may access C, D or aux in pieces of four neighbours of a row.
inline bool allows_epilogue_vectors(const ResolvedMatrix& matrix) {
  return matrix.layout == Layout::row_major &&
         matrix.allows_vectors(4 * size_in_bytes(matrix.type));
}

}  // namespace vkgemm
