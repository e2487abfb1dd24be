#include "support/supervisor.hpp"

#if __has_include(<sys/wait.h>)
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<sys/prctl.h>)
#include <sys/prctl.h>
#endif

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace vkgemm::support {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int tick_ms = 100;
constexpr auto time_to_die = std::chrono::seconds(5);

enum ChildExit : int { good = 0, bad = 1 };

void write_line(int pipe, std::string line) {
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = write(pipe, line.data() + done, line.size() - done);
    if (written > 0) done += static_cast<std::size_t>(written);
    if (written < 0 && errno != EINTR) _exit(bad);  // nobody listens
  }
}

[[noreturn]] void run_child(
    const std::function<bool(const std::function<void(std::string)>&)>& work, int pipe,
    pid_t parent) {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
#ifdef PR_SET_PDEATHSIG
  // A device is not to stay busy for a parent that was killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(bad);
  int code = bad;
  try {
    code = work([pipe](std::string line) { write_line(pipe, std::move(line)); }) ? good : bad;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vkgemm: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "vkgemm: unknown exception\n");
  }
  std::fflush(nullptr);
  _exit(code);  // destructors and handlers are the parent's
}

WorkerEnd describe(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return {Ending::died, "signal " + std::to_string(number) + " (" + strsignal(number) + ")"};
  }
  const int code = WEXITSTATUS(status);
  if (code == good) return {};
  return {Ending::died, "exit code " + std::to_string(code)};
}

// The child, and the pipe that its lines come through. Neither is left behind, whatever is thrown.
class Child {
 public:
  Child(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    end();
    close(pipe_);
  }

  // True if it has ended by itself.
  bool wait(std::chrono::duration<double> patience) {
    const auto begin = Clock::now();
    while (!has_ended()) {
      if (Clock::now() - begin > patience) return false;
      poll(nullptr, 0, 10);
    }
    return true;
  }

  // Ends it, with a moment to release its device. False if it is still there: a process that is
  // stuck in a driver isn't killed before the driver lets it go.
  bool end() {
    if (gave_up_) return false;
    for (const int signal_number : {SIGTERM, SIGKILL}) {
      if (has_ended()) return true;
      kill(pid_, signal_number);
      if (wait(time_to_die)) return true;
    }
    gave_up_ = true;
    return false;
  }

  // Once it has ended by itself.
  WorkerEnd how() const {
    return unseen_.empty() ? describe(status_) : WorkerEnd{Ending::died, unseen_};
  }

 private:
  bool has_ended() {
    if (ended_) return true;
    const pid_t waited = waitpid(pid_, &status_, WNOHANG);
    if (waited < 0 && errno != EINTR) unseen_ = std::string("waitpid: ") + std::strerror(errno);
    ended_ = waited == pid_ || !unseen_.empty();
    return ended_;
  }

  pid_t pid_;
  int pipe_;
  int status_ = 0;
  std::string unseen_;  // why nobody knows how it ended
  bool ended_ = false;
  bool gave_up_ = false;
};

}  // namespace

bool can_supervise() noexcept { return true; }

WorkerEnd supervise(const std::function<bool(const std::function<void(std::string)>&)>& work,
                    const Supervision& supervision) {
  int pipes[2] = {-1, -1};
  if (pipe(pipes) != 0) return {Ending::died, std::string("pipe: ") + std::strerror(errno)};
  std::fflush(nullptr);  // or the child would print it again
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    const std::string reason = std::strerror(errno);
    close(pipes[0]);
    close(pipes[1]);
    return {Ending::died, "fork: " + reason};
  }
  if (child == 0) {
    close(pipes[0]);
    run_child(work, pipes[1], parent);
  }
  close(pipes[1]);
  Child process(child, pipes[0]);
  if (supervision.on_start) supervision.on_start(child);

  std::string text;
  auto last_line = Clock::now();
  auto last_tick = last_line;
  Ending ending = Ending::finished;
  while (true) {
    pollfd events{.fd = pipes[0], .events = POLLIN, .revents = 0};
    const int ready = poll(&events, 1, tick_ms);
    if (supervision.stop != nullptr && *supervision.stop != 0) {
      ending = Ending::stopped;
      break;
    }
    const auto now = Clock::now();
    if (supervision.on_tick && now - last_tick > std::chrono::milliseconds(tick_ms)) {
      supervision.on_tick();
      last_tick = now;
    }
    if (ready <= 0) {
      if (std::chrono::duration<double>(now - last_line).count() > supervision.patience_s) {
        ending = Ending::hung;
        break;
      }
      continue;
    }
    char buffer[4096];
    const ssize_t got = read(pipes[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // the other end is closed
    text.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end_of_line = text.find('\n'); end_of_line != std::string::npos;
         end_of_line = text.find('\n')) {
      const std::string line = text.substr(0, end_of_line);
      text.erase(0, end_of_line + 1);
      supervision.on_line(line);
      last_line = now;
    }
  }
  // A process that says no more is about to end, but may be stuck in a driver as well.
  if (ending == Ending::finished) {
    if (process.wait(std::chrono::duration<double>(supervision.patience_s))) {
      return process.how();
    }
    ending = Ending::hung;
  }
  WorkerEnd end{.ending = ending, .reason = "stopped"};
  if (ending == Ending::hung) {
    end.reason =
        "no answer for " + std::to_string(static_cast<int>(supervision.patience_s)) + " seconds";
  }
  if (!process.end()) end.left_behind = child;
  return end;
}

}  // namespace vkgemm::support

#else

namespace vkgemm::support {

bool can_supervise() noexcept { return false; }

WorkerEnd supervise(const std::function<bool(const std::function<void(std::string)>&)>&,
                    const Supervision&) {
  return {Ending::died, "this system has no fork()"};
}

}  // namespace vkgemm::support

#endif
