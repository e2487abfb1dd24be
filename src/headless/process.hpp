// process.hpp: this program once more, with other arguments, in a process that may crash or hang.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm::headless {

// Before anything else, from main(): how the program was started is how it is started again.
void remember_command_line(int argc, char** argv);

// The arguments that it was started with, as UTF-8, without its name.
const std::vector<std::string>& own_arguments();

// How a process ended by itself.
struct ProcessEnd {
  enum class How {
    good,         // exit code 0
    bad,          // another one
    crashed,      // a signal or an exception
    interrupted,  // by a user, a shutdown or a system without memory: not by a driver
    unknown,
  };
  How how = How::good;
  std::string reason;  // "signal 11 (Segmentation fault)", "exit code 2"; empty if it is good
};

// What can be asked of a process has one body for each system: process_posix.cpp,
// process_windows.cpp. The process is ended with its object, if it can be.
class Process {
 public:
  // io_error if it cannot be started. It reads `input`, and then the end of it only when its object
  // is gone, or this process is.
  static Result<Process> start(const std::vector<std::string>& arguments, std::string input = {});

  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  long id() const noexcept;

  // What it has printed; empty once it will print no more; nothing if there is nothing yet, after
  // this long.
  std::optional<std::string> read(std::chrono::milliseconds patience);

  // How it ended; nothing if it runs even after this long.
  std::optional<ProcessEnd> wait(std::chrono::duration<double> patience);

  // Ends it, with a moment to release its device where the system has a word for that. False if it
  // is still there: a process that is stuck in a driver isn't ended before the driver lets it go.
  bool end();

 private:
  struct Impl;
  explicit Process(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

// Standard output, for who asks. What anyone else prints goes to standard error from then on.
os::File take_output();

}  // namespace vkgemm::headless
