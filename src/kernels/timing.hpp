// timing.hpp: how long a device takes for what is not a product, and what its workgroups share.
// Pure.
#pragma once

#include <limits>
#include <string>

namespace vkgemm {

inline constexpr double kilobyte = 1024.0;  // bytes

// The times of everything but products: the other half of the estimate that rank() orders by.
// Microseconds, kilobytes per microsecond. The defaults are the generic table's.
struct TimingModel {
  double compute_units = 132;   // of the device that the table's rates were measured on
  double launch = 0.7;          // of a dispatch
  double tile = 1.8;            // of a tile: its first loads, which nothing hides
  double tile_values = 0;       // more of it for each value of an invocation that comes or goes
  double store = 150;           // results, of one compute unit
  double latency = 0.51;        // from the load of a k-tile to its product, at least
  double first_latency = 0.21;  // more, while operands come from memory rather than from a cache
  double ring_latency = 0.68;   // of both with a ring of stages: a factor
  double direct_latency = 1.0;  // of both with fragments straight from memory: a factor
  double load = 77;             // k-tiles, into one compute unit
  double memory = 4100;         // operands and results, from and to memory
  double sum = 5.2;             // split-K's second dispatch, and the barrier before it
  double workspace = 6250;      // its partial results, written and read
  double copy = 3700;           // operands that are packed first, read and written
  // Elements a microsecond that come to or leave one compute unit one by one.
  double single_loads = std::numeric_limits<double>::infinity();
  double single_stores = std::numeric_limits<double>::infinity();
  // The resources that the workgroups of one compute unit share, besides time.
  double shared_memory_bytes = 51200;
  double shared_memory_overhead_bytes = 1024;  // of each workgroup, beside its own
  double registers = 65536;
  std::string provenance = "derived: the generic table's";
};

}  // namespace vkgemm
