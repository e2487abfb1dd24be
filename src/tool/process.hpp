// process.hpp: this program once more, with other arguments, in a process that may crash or hang.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace vkgemm::tool {

struct Ended {
  bool timed_out = false;     // and was killed
  std::optional<int> left;    // its id, if that did not end it
  std::optional<int> signal;  // that ended it
  int code = 0;               // else
  std::string output;         // what it printed
};

// Before anything else, from main(): how the program was started is how it is started again.
void remember_command_line(int argc, char** argv);

// Waits at most `limit`. Throws a Failure if no process can be started or waited for.
Ended run_self(const std::vector<std::string>& arguments, std::chrono::milliseconds limit);

// True for signals that a driver does not cause.
bool is_interruption(int signal) noexcept;

}  // namespace vkgemm::tool
