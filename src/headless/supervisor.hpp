// supervisor.hpp: work that may crash, hang or lose its device, in a process of its own, which is
// this program with other arguments.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headless/process.hpp"

namespace vkgemm::headless {

enum class Ending {
  finished,  // the work returned true
  stopped,   // by `stop`
  died,      // of itself, or it returned false
  hung,      // not a line for too long
};

struct WorkerEnd {
  Ending ending = Ending::finished;
  ProcessEnd::How how = ProcessEnd::How::good;  // of a process that died
  std::string reason;                           // "signal 9 (Killed)"
  long left_behind = 0;  // the process, if it is there even after it was killed: a driver holds it
};

struct Supervision {
  std::function<void(std::string_view)> on_line;
  std::function<void(long pid)> on_start = {};
  std::function<void()> on_tick = {};  // a few times a second
  double patience_s = 120.0;           // for the next line
  const volatile std::sig_atomic_t* stop = nullptr;
};

// Starts this program with `arguments`, which make it call work_for_supervisor(), and hands it
// `input`. Its messages come to on_line, line by line. Returns when it has ended, or throws what
// on_line does; no process is left behind, but one that can't be killed.
WorkerEnd supervise(const std::vector<std::string>& arguments, const std::string& input,
                    const Supervision& supervision);

// The other side: `work` gets the input and says lines; then this process ends. It also ends with
// the one that supervises it, and ignores SIGINT: who asks for an end asks there.
using Say = std::function<void(const std::string& line)>;
[[noreturn]] void work_for_supervisor(
    const std::function<bool(const std::string& input, const Say& say)>& work);

}  // namespace vkgemm::headless
