// nearest.hpp: what shapes that were tuned say of those between them. Pure and printable.
//
// The rule: among the tuned shapes of the same family, input type, layouts and alignment whose
// configuration is legal for the problem, the nearest one speaks, if it is within reach. The
// distance is that of (log2 M, log2 N, log2 K, log2 count); of equally near ones the first whose
// epilogue moves the same matrices, with D of the same type and layout, else the first. At distance
// 0 its configuration is chosen. Elsewhere the estimate may object, corrected by what it got wrong
// there: the configuration is chosen unless estimate(configuration) > 1.02 · error · estimate(the
// table's best), where `error` is estimate(configuration) / estimate(the table's best) at the tuned
// shape, and at least 1.
#pragma once

#include <functional>
#include <optional>

#include "tuning/rank.hpp"
#include "tuning/table.hpp"

namespace vkgemm {

// Less than one doubling in all: between shapes that double, all are within reach.
inline constexpr double nearest_reach = 1.0;

// The factor by which estimates of one table differ without saying anything.
inline constexpr double nearest_tolerance = 1.02;

// 0 for shapes that are equal; infinity where one says nothing of the other.
double shape_distance(const TunedProblem& a, const TunedProblem& b) noexcept;

// A problem of another shape: what changes its distance and nothing else.
ResolvedProblem with_shape_of(const ResolvedProblem& problem, const TunedProblem& shape);

struct Nearest {
  const TunedShape* shape = nullptr;
  double distance = 0.0;
  const TuningTable* table = nullptr;  // whose it is
};

// The one that speaks for the problem. `usable` says which configurations may be chosen for it.
std::optional<Nearest> nearest_shape(const TuningTable& table, const ResolvedProblem& problem,
                                     const std::function<bool(const Config&)>& usable);

// The estimates, here and at the tuned shape, of the tuned configuration and of the best of a
// table.
struct Opinion {
  double here = 0.0, best_here = 0.0, there = 0.0, best_there = 0.0;

  bool objects() const noexcept;

  // An opinion that objects without best_there objects with any that is not below this.
  double best_there_below() const noexcept;
};

// True if the configuration may be chosen for the problem: it is legal, with the slices that the
// caller wants, and a workspace that he allows.
bool is_usable(const Config& config, const ResolvedProblem& problem, const Target& target);

// The rate of a configuration that the table has no row for: that of the most similar row, by what
// loads of its tiles cost. Nothing if no row of its path is for such types and layouts.
std::optional<double> similar_rate(const TuningTable& table, const Config& config,
                                   const ResolvedProblem& problem);

}  // namespace vkgemm
