// choose.hpp: which legal configuration to prefer. Pure and printable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "resolved_problem.hpp"
#include "tuning.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

struct ScoredRow {
  const TuningRow* row = nullptr;
  double cost = 0.0;  // estimated, arbitrary unit: lower is better
};

// What the row's configuration would cost. Relative to other rows of the same table only.
double estimate_cost(const TuningRow& row, const ResolvedProblem& problem, const DeviceCaps& caps);

// Rows of the table that match and are legal here, best first; ties keep the table's order.
std::vector<ScoredRow> rank(const TuningTable& table, const ResolvedProblem& problem,
                            const DeviceCaps& caps);

// "khr:tile=… cost 1.5e+09, rate 276, derived: …"
std::string to_string(const ScoredRow& scored);

// Why nothing is legal: one line a row that matched. For error messages.
std::string why_nothing_is_legal(const TuningTable& table, const ResolvedProblem& problem,
                                 const DeviceCaps& caps);

}  // namespace vkgemm
