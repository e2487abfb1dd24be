// rank.hpp: which legal configuration to prefer. Pure and printable.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/target.hpp"
#include "problem/resolved_problem.hpp"
#include "tuning/estimate.hpp"
#include "tuning/table.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

struct ScoredRow {
  const TuningRow* row = nullptr;
  Config config = {};                 // the row's, perhaps with more slices, or packing operands
  double cost = 0.0;                  // estimated microseconds: lower is better
  double unsplit_cost = 0.0;          // the same without more slices
  const TunedShape* tuned = nullptr;  // whose row it is, if it was not estimated (nearest.hpp)
  double distance = 0.0;              // from that shape
  bool timed = false;  // the cost is that shape's own time, on this device: distance 0
};

// Rows of the table that match and are legal here, best first; ties keep the table's order. A row
// appears once more with as many slices of K as pay, and with operands packed where that pays. None
// wants more workspace than the problem allows.
std::vector<ScoredRow> rank(const TuningTable& table, const ResolvedProblem& problem,
                            const Target& target);

// The first row of rank() whose configuration is choosable and whose cost is below a limit. Takes a
// fraction of rank()'s time: it skips estimates and legality of rows that cannot be the first.
std::optional<ScoredRow> best(const TuningTable& table, const ResolvedProblem& problem,
                              const Target& target,
                              const std::function<bool(const Config&)>& choosable,
                              double below = std::numeric_limits<double>::infinity());

// An estimate for people: "18.7 us".
std::string microseconds(double time);

// "khr:tile=…, estimated 18.7 us, rate 276, derived: …"
std::string to_string(const ScoredRow& scored);

// A row that matches and cannot be used, in whatever workspace, and why.
struct Objection {
  Config config;
  std::string reason;
};
std::vector<Objection> objections(const TuningTable& table, const ResolvedProblem& problem,
                                  const Target& target);

}  // namespace vkgemm
