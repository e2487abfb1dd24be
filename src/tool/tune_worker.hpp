// tune_worker.hpp: the part of `vkgemm tune` that has a device, in a process that may die of it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/tune_session.hpp"
#include "tool/planning.hpp"
#include "tool/tune_problems.hpp"

namespace vkgemm::tool {

struct TuneLimits {
  std::size_t per_problem = 48;  // configurations that the search begins with
  double within = 2.5;           // of estimates
  std::uint64_t repeat = 0;      // timings of a round; 0: as many as are sensible
  bool warm_l2 = false;
  bool static_shapes = false;
  std::optional<Path> path;
  std::uint32_t threads = 0;  // that build ahead
};

struct TuneTask {
  std::vector<TuneProblem> problems;  // of the session's cases
  DeviceOptions device;
  TuneLimits limits;
  bool from_generic = false;
  bool compare = false;               // what tables choose, and what they would by estimates alone
  std::optional<TuningTable> table;   // to compare with
  bool table_is_optional = false;     // left out if it is for another device
  std::optional<TuningTable> before;  // to go on with
  std::chrono::steady_clock::time_point deadline;
};

// Measures what the session lacks, and says so (support/tune_session.hpp). True if there is nothing
// left to do, or nothing can be done.
bool tune_work(const TuneTask& task, support::TuneSession session,
               const std::function<void(std::string)>& say);

}  // namespace vkgemm::tool
