#ifndef _WIN32

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "headless/process.hpp"

extern char** environ;

namespace vkgemm::headless {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto time_to_die = std::chrono::seconds(5);

struct CommandLine {
  std::string program;               // the file to execute
  std::vector<std::string> leading;  // its arguments up to this program's own name
  std::vector<std::string> own;      // those behind that
};
CommandLine& command_line() {
  static CommandLine line;
  return line;
}

std::string reason(std::string_view what, int error) {
  return std::string(what) + ": " + std::strerror(error);
}

// Two ends that are connected; the second is the child's. Not a pipe: to write where nobody reads
// any more is to be an error, not a signal.
class Connection {
 public:
  Connection() {
    // A process that another thread starts meanwhile must not get them.
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) error_ = errno;
  }
  Connection(Connection&& other) noexcept
      : ends_(std::exchange(other.ends_, {-1, -1})), error_(other.error_) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  int error() const noexcept { return error_; }
  int own() const noexcept { return ends_[0]; }
  int childs() const noexcept { return ends_[1]; }
  void leave_to_child() noexcept { close(std::exchange(ends_[1], -1)); }

 private:
  std::array<int, 2> ends_{-1, -1};
  int error_ = 0;
};

// A user, a shutdown, a system without memory: a driver causes none of these.
bool is_interruption(int signal) noexcept {
  return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGKILL ||
         signal == SIGTERM;
}

ProcessEnd describe(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return {is_interruption(number) ? ProcessEnd::How::interrupted : ProcessEnd::How::crashed,
            "signal " + std::to_string(number) + " (" + strsignal(number) + ")"};
  }
  const int code = WEXITSTATUS(status);
  if (code == 0) return {};
  return {ProcessEnd::How::bad, "exit code " + std::to_string(code)};
}

}  // namespace

struct Process::Impl {
  Connection input, output;
  std::string unsent = {};  // of the input
  pid_t child = -1;
  std::optional<ProcessEnd> ended = {};
  bool gave_up = false;

  void send_input() {
    const ssize_t sent =
        send(input.own(), unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) unsent.erase(0, static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) unsent.clear();  // nobody reads it
  }
};

Process::Process(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Process::Process(Process&&) noexcept = default;
Process::~Process() {
  if (impl_ != nullptr) end();
}

// If a dynamic loader was told to start this program, the loader is the file that runs, and its
// arguments come first.
void remember_command_line(int argc, char** argv) {
  // Whoever ignores it leaves that to the programs that he starts, and waitpid() then finds nobody.
  std::signal(SIGCHLD, SIG_DFL);
  CommandLine& line = command_line();
  line.program = argv[0];
  line.leading = {argv[0]};
  line.own.assign(argv + 1, argv + argc);
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

const std::vector<std::string>& own_arguments() { return command_line().own; }

Result<Process> Process::start(const std::vector<std::string>& arguments, std::string input) {
  auto impl = std::make_unique<Impl>();
  for (const Connection* connection : {&impl->input, &impl->output}) {
    if (connection->error() != 0) {
      return Error{Status::io_error, reason("socketpair", connection->error())};
    }
  }
  std::vector<std::string> all = command_line().leading;
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(all.size() + 1);
  for (std::string& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, impl->input.childs(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, impl->output.childs(), STDOUT_FILENO);
  const std::string& program = command_line().program;
  const int error =
      posix_spawnp(&impl->child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Error{Status::io_error, reason(program, error)};
  impl->input.leave_to_child();
  impl->output.leave_to_child();
  impl->unsent = std::move(input);
  return Process(std::move(impl));
}

long Process::id() const noexcept { return impl_->child; }

std::optional<std::string> Process::read(std::chrono::milliseconds patience) {
  const auto over = Clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(over - Clock::now());
    std::array<pollfd, 2> ends{{{.fd = impl_->output.own(), .events = POLLIN, .revents = 0},
                                {.fd = impl_->input.own(), .events = POLLOUT, .revents = 0}}};
    const int ready = poll(ends.data(), impl_->unsent.empty() ? 1 : 2,
                           static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0 && ends[1].revents != 0) impl_->send_input();
    if (ready > 0 && ends[0].revents != 0) {
      std::array<char, 4096> buffer{};
      const ssize_t bytes = recv(impl_->output.own(), buffer.data(), buffer.size(), 0);
      if (bytes >= 0) return std::string(buffer.data(), static_cast<std::size_t>(bytes));
      if (errno != EINTR) return std::string();
    }
    if (left.count() <= 0) return std::nullopt;
  }
}

std::optional<ProcessEnd> Process::wait(std::chrono::duration<double> patience) {
  const auto begin = Clock::now();
  while (!impl_->ended) {
    int status = 0;
    const pid_t waited = waitpid(impl_->child, &status, WNOHANG);
    if (waited == impl_->child) impl_->ended = describe(status);
    if (waited < 0 && errno != EINTR) {
      impl_->ended = {ProcessEnd::How::unknown, reason("waitpid", errno)};
    }
    if (impl_->ended || Clock::now() - begin >= patience) break;
    poll(nullptr, 0, 5);
  }
  return impl_->ended;
}

bool Process::end() {
  if (impl_->gave_up) return false;
  for (const int signal_number : {SIGTERM, SIGKILL}) {
    if (wait(std::chrono::seconds(0))) return true;
    kill(impl_->child, signal_number);
    if (wait(time_to_die)) return true;
  }
  impl_->gave_up = true;
  return false;
}

os::File take_output() {
  std::fflush(stdout);
  const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return os::File(copy >= 0 ? fdopen(copy, "w") : nullptr);
}

}  // namespace vkgemm::headless

#endif
