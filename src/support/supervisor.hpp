// supervisor.hpp: work that may crash, hang or lose its device, in a process of its own.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <string_view>

namespace vkgemm::support {

enum class Ending {
  finished,  // the work returned true
  stopped,   // by `stop`
  died,      // a signal, or it returned false
  hung,      // not a line for too long
};

struct WorkerEnd {
  Ending ending = Ending::finished;
  std::string reason;    // "signal 9 (Killed)"
  long left_behind = 0;  // the process, if it is there even after SIGKILL: a driver holds it
};

struct Supervision {
  std::function<void(std::string_view)> on_line;
  std::function<void(long pid)> on_start = {};
  std::function<void()> on_tick = {};  // a few times a second
  double patience_s = 120.0;           // for the next line
  const volatile std::sig_atomic_t* stop = nullptr;
};

// Runs `work` in a child process that begins as a copy of this one (fork), so this one must have no
// other threads, and no device. The work's messages come to on_line, line by line. Returns when it
// has ended, or throws what on_line does; no process is left behind, but one that can't be killed.
// The child ignores SIGINT: who asks for an end asks here.
WorkerEnd supervise(const std::function<bool(const std::function<void(std::string)>& say)>& work,
                    const Supervision& supervision);

// True if there is fork().
bool can_supervise() noexcept;

}  // namespace vkgemm::support
