// plan_log.hpp: the problems that an application had, from its log.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace vkgemm::files {

struct PlanLog {
  // Arguments of `vkgemm run`, without --config, each once, in the order in which they came.
  std::vector<std::string> problems;
  std::vector<std::size_t> lines_of;  // the line where each of them stands first, from 1
  std::size_t lines = 0;
  std::size_t repeats = 0;  // lines with a problem that was there before
  std::size_t others = 0;   // lines without one
};

// Reads what VKGEMM_LOG, or an application's own log, has: anything, and somewhere in a line
// "vkgemm run …" up to its end, which Plan::command_line() gives.
PlanLog read_plan_log(std::istream& stream);

}  // namespace vkgemm::files
