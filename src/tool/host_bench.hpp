// host_bench.hpp: what the library costs the host: plan() and record().
#pragma once

#include <cstdint>
#include <optional>

#include "headless/runner.hpp"

namespace vkgemm::tool {

struct HostTimes {
  double cold_plan_us = 0.0;   // the pipeline is compiled
  double other_plan_us = 0.0;  // another problem that uses the same pipeline
  double warm_plan_us = 0.0;   // median
  double record_us = 0.0;      // median over batches of recordings
  double record_max_us = 0.0;  // the slowest batch
  std::uint64_t recordings = 0;
  // Calls of operator new in all recordings together; nothing under a sanitizer.
  std::optional<std::uint64_t> record_allocations;
};

// On a small f16 problem with the whole epilogue.
HostTimes measure_host(headless::Runner& runner);

void print_host_times(const HostTimes& times);

}  // namespace vkgemm::tool
