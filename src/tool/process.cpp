#include "tool/process.hpp"

#include "tool/tool.hpp"

#ifdef _WIN32

namespace vkgemm::tool {

void remember_command_line(int, char**) {}

Ended run_self(const std::vector<std::string>&, std::chrono::milliseconds) {
  throw Failure(usage_error,
                "--self-test starts processes, which is not built for Windows: use "
                "ContextCreateInfo::self_test");
}

bool is_interruption(int) noexcept { return false; }

}  // namespace vkgemm::tool

#else

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

extern char** environ;

namespace vkgemm::tool {
namespace {

using Clock = std::chrono::steady_clock;

struct CommandLine {
  std::string program;               // the file to execute
  std::vector<std::string> leading;  // its arguments up to this program's own name
};
CommandLine& command_line() {
  static CommandLine line;
  return line;
}

class Pipe {
 public:
  Pipe() {
    if (pipe(ends_.data()) != 0) {
      throw Failure(device_error, std::string("pipe: ") + std::strerror(errno));
    }
    for (const int end : ends_) fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const noexcept { return ends_[0]; }
  int writer() const noexcept { return ends_[1]; }
  void close_writer() noexcept {
    close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

pid_t start(const std::vector<std::string>& arguments, int output) {
  std::vector<char*> argv;
  std::vector<std::string> all = command_line().leading;
  all.insert(all.end(), arguments.begin(), arguments.end());
  argv.reserve(all.size() + 1);
  for (std::string& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, command_line().program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw Failure(device_error, command_line().program + ": " + std::strerror(error));
  }
  return child;
}

// Until it closes its output, which it does at its end, or time is over.
std::string read_until(int from, Clock::time_point end) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return text;
    pollfd waiting{.fd = from, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return text;
    const ssize_t bytes = read(from, buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
}

// As waitpid(): 0 if it still runs then.
pid_t wait_until(pid_t child, int& status, Clock::time_point end) {
  pid_t waited = 0;
  while ((waited = waitpid(child, &status, WNOHANG)) == 0 && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return waited;
}

}  // namespace

// If a dynamic loader was told to start this program, the loader is the file that runs, and its
// arguments come first.
void remember_command_line(int argc, char** argv) {
  // Whoever ignores it leaves that to the programs that he starts, and waitpid() then finds nobody.
  std::signal(SIGCHLD, SIG_DFL);
  CommandLine& line = command_line();
  line.program = argv[0];
  line.leading = {argv[0]};
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    all.emplace_back(text.c_str() + at);
    at += all.back().size() + 1;
  }
  const auto own = static_cast<std::size_t>(argc);
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (all.size() < own || length <= 0) return;
  line.program = path.data();
  line.leading.assign(all.begin(), all.end() - static_cast<std::ptrdiff_t>(own) + 1);
}

Ended run_self(const std::vector<std::string>& arguments, std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  Pipe pipe;
  const pid_t child = start(arguments, pipe.writer());
  pipe.close_writer();
  Ended ended;
  ended.output = read_until(pipe.reader(), end);
  int status = 0;
  const pid_t waited = wait_until(child, status, end);
  if (waited < 0) throw Failure(device_error, std::string("waitpid: ") + std::strerror(errno));
  if (waited == 0) {
    ended.timed_out = true;
    kill(child, SIGKILL);
    // Not for ever: one that is inside a driver of the kernel may never end.
    if (wait_until(child, status, Clock::now() + std::chrono::seconds(5)) == 0) ended.left = child;
    return ended;
  }
  if (WIFSIGNALED(status)) {
    ended.signal = WTERMSIG(status);
  } else {
    ended.code = WEXITSTATUS(status);
  }
  return ended;
}

bool is_interruption(int signal) noexcept {
  return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGKILL ||
         signal == SIGTERM;
}

}  // namespace vkgemm::tool

#endif
