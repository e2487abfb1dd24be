// estimate.hpp: what a configuration would take. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/computation.hpp"
#include "kernels/timing.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Figures of a problem that are the same for every configuration.
struct ProblemFigures {
  ProblemFigures(const ResolvedProblem& problem, const TimingModel& timing);

  double m, n, k, batch;  // of the products
  bool a_vectors, b_vectors;
  double groups_of_rows = 0.0;  // that hold anything; 0: rows are in no groups
  double step_loads = 0.0;      // matrices that steps read beside C, and store beside D and aux
  double step_stores = 0.0;
  double result_matrices = 0.0;  // all of these, and what costs as much
  double memory = 0.0;           // microseconds for reading operands and writing results once
  double results = 0.0;          // microseconds for a slice's partial results
};

// The estimates for one problem on one device. Points at the arguments.
class Estimator {
 public:
  Estimator(const ResolvedProblem& problem, const TimingModel& timing, const DeviceCaps& caps);

  // A bound: no estimate is lower for a configuration that packs the same operands, with this
  // strategy for rows. `rate`: TFLOP/s on large shapes (TuningRow::rate).
  double least(const Config& config, RowStrategy rows, double rate) const;

 private:
  friend class Estimate;
  const ResolvedProblem& problem_;
  const TimingModel& timing_;
  const DeviceCaps& caps_;
  ProblemFigures figures_;
  double units_;
  bool cpu_;
  double work_;                   // of all products, at a rate of 1
  std::array<double, 4> copies_;  // by pack_a and pack_b
};

// The time of one configuration in any number of slices. Points at the arguments. The configuration
// may_be_legal() and has legal ranges.
class Estimate {
 public:
  // The configuration and its problem, but for the slices: worked out once a row.
  struct Shape {
    bool bound_by_memory;
    double units, tiles, k_tiles, resident;
    double k_tile_work;  // microseconds of products, alone on a compute unit
    double k_tile_load;  // and of loads
    double latency, first_latency;
    double tile;    // of one tile, whatever it computes
    double lone;    // how much longer a tile takes by itself than its share says
    double store;   // of one tile's results
    double single;  // and more where they are stored one by one
    double memory;  // as ProblemFigures
    double results;
    double idle;  // of workgroups without a group
  };

  Estimate(const Estimator& estimator, const Computation& computation, double rate);

  // With all parts of the problem.
  double microseconds(std::uint32_t slices) const;

  // A lower bound of microseconds() with this number of slices or more. CPUs have none.
  double least(std::uint32_t slices) const;

  // False if there are more than fit the device at once, or than k-tiles.
  bool has_use_for(std::uint32_t slices) const;

 private:
  const Computation& computation_;
  const TimingModel& timing_;
  bool cpu_;
  Shape shape_;
};

// The estimate for the configuration as it is. Good for comparing configurations of one table; on
// the H200 within 15 % of what was measured for half of those that are worth timing.
double estimate_cost(const Config& config, double rate, const TimingModel& timing,
                     const ResolvedProblem& problem, const DeviceCaps& caps);

}  // namespace vkgemm
