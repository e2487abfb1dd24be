// row_reference.hpp: what a row reduction makes of a row in double precision, and how far a correct
// f32 kernel may be off. Internal to the reference.
#pragma once

#include <span>
#include <vector>

#include "oracle/verification.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

// A value of the elementwise epilogue, and how far a correct kernel's may be off.
struct RowValue {
  double v = 0.0;
  double bound = 0.0;
  bool unpredictable = false;  // may exceed f32's range in between
};

struct ReducedRow {
  std::vector<double> d, d_bound;  // one a column
  double value = 0.0;              // of reductions that give a number
  double value_bound = 0.0;
  bool unpredictable = false;
};

// `row` holds all N values of a row.
void reduce_row(const Problem& problem, const HostOperands& operands, std::span<const RowValue> row,
                ReducedRow& out);

}  // namespace vkgemm::oracle
