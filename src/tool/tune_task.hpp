// tune_task.hpp: what `vkgemm tune` was asked for: its problems, limits and tables, and how one of
// its processes hands them to the next.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tool/planning.hpp"
#include "tool/tune_problems.hpp"
#include "tool/tune_session.hpp"
#include "tuning/table.hpp"

namespace vkgemm::tool {

struct TuneLimits {
  std::size_t per_problem = 48;  // configurations that the search begins with
  double within = 2.5;           // of estimates
  std::uint64_t repeat = 0;      // timings of a round; 0: as many as are sensible
  bool warm_l2 = false;
  bool static_shapes = false;
  std::optional<Path> path;
  std::uint32_t threads = 0;  // that build ahead
  double context_ms = 0.0;    // the budget of Context::tune(), whose choice is timed, too; 0: none
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
  std::string table_text, before_text;  // that these two were parsed from
  std::chrono::steady_clock::time_point deadline;
};

// Reads the table at `out`, if it exists, so that tuning continues it. A Failure if `may_exist` is
// false, or if the table holds parts that tune does not write.
void go_on_with(TuneTask& task, const std::string& out, bool may_exist);

// Reads the table to compare with: `file` or, if that is empty, the one that VKGEMM_TUNING names.
// The latter is ignored if it can't be used, because it may be the table to be written.
void compare_with(TuneTask& task, const std::string& file);

// A session that has measured nothing yet.
TuneSession session_of(const TuneTask& task);

// What a process must be told of the task, beside the options that it is started with: a line.
std::string handed_on(const TuneTask& task);
void take_over(TuneTask& task, std::string_view line);

}  // namespace vkgemm::tool
