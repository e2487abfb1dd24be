// estimate.hpp: what a configuration would take. Pure.
#pragma once

#include <cstdint>

#include "kernels/computation.hpp"
#include "kernels/timing.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// The time of one configuration in any number of slices. `rate`: TFLOP/s on large shapes
// (TuningRow::rate). Points at the arguments.
class Estimate {
 public:
  // The configuration and its problem, but for the slices: worked out once a row.
  struct Shape {
    bool bound_by_memory;
    double units, tiles, k_tiles, resident;
    double k_tile_work;  // microseconds of products, alone on a compute unit
    double k_tile_load;  // and of loads
    double latency, first_latency;
    double tile;     // of one tile, whatever it computes
    double lone;     // how much longer a tile takes by itself than its share says
    double store;    // of one tile's results
    double single;   // and more where they are stored one by one
    double memory;   // microseconds for reading operands and writing results once
    double results;  // of a slice's partial results
    double idle;     // of workgroups without a group
  };

  Estimate(const Computation& computation, double rate, const TimingModel& timing,
           const DeviceCaps& caps);

  // With all parts of the problem.
  double microseconds(std::uint32_t slices) const;

  // False if there are more than fit the device at once, or than k-tiles.
  bool has_use_for(std::uint32_t slices) const;

 private:
  const Config& config_;
  const TimingModel& timing_;
  const ResolvedProblem& problem_;
  bool cpu_;
  Shape shape_;
};

// The estimate for the configuration as it is. Good for comparing configurations of one table; on
// the H200 within 15 % of what was measured for half of those that are worth timing.
double estimate_cost(const Config& config, double rate, const TimingModel& timing,
                     const ResolvedProblem& problem, const DeviceCaps& caps);

}  // namespace vkgemm
