#include "headless/supervisor.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <thread>

#include "base/text.hpp"

namespace vkgemm::headless {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds tick{100};

// Stands behind the input, in a line of its own.
constexpr std::string_view end_of_input = "vkgemm-end-of-input";

enum WorkerExit : int { good = 0, bad = 1 };

}  // namespace

WorkerEnd supervise(const std::vector<std::string>& arguments, const std::string& input,
                    const Supervision& supervision) {
  Result<Process> started = Process::start(arguments, concat(input, "\n", end_of_input, "\n"));
  if (!started) return {Ending::died, ProcessEnd::How::unknown, started.error().message};
  Process& process = *started;
  if (supervision.on_start) supervision.on_start(process.id());

  std::string text;
  auto last_line = Clock::now();
  auto last_tick = last_line;
  Ending ending = Ending::finished;
  while (true) {
    const std::optional<std::string> more = process.read(tick);
    if (supervision.stop != nullptr && *supervision.stop != 0) {
      ending = Ending::stopped;
      break;
    }
    const auto now = Clock::now();
    if (supervision.on_tick && now - last_tick > tick) {
      supervision.on_tick();
      last_tick = now;
    }
    if (!more) {
      if (std::chrono::duration<double>(now - last_line).count() > supervision.patience_s) {
        ending = Ending::hung;
        break;
      }
      continue;
    }
    if (more->empty()) break;
    text += *more;
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
    if (const auto end = process.wait(std::chrono::duration<double>(supervision.patience_s))) {
      if (end->how == ProcessEnd::How::good) return {};
      return {Ending::died, end->how, end->reason};
    }
    ending = Ending::hung;
  }
  WorkerEnd end{.ending = ending, .reason = "stopped"};
  if (ending == Ending::hung) {
    end.reason =
        "no answer for " + std::to_string(static_cast<int>(supervision.patience_s)) + " seconds";
  }
  if (!process.end()) end.left_behind = process.id();
  return end;
}

void work_for_supervisor(const std::function<bool(const std::string&, const Say&)>& work) {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  const os::File answers = take_output();
  if (answers == nullptr) std::_Exit(bad);
  std::string input;
  for (std::string line; std::getline(std::cin, line) && line != end_of_input;)
    input += line + '\n';
  // A device is not to stay busy for somebody who is gone.
  std::thread([] {
    std::string line;
    while (std::getline(std::cin, line)) {
    }
    std::_Exit(bad);
  }).detach();
  int code = bad;
  try {
    code = work(input,
                [&answers](const std::string& line) {
                  const std::string text = line + '\n';
                  if (std::fwrite(text.data(), 1, text.size(), answers.get()) != text.size() ||
                      std::fflush(answers.get()) != 0) {
                    std::_Exit(bad);  // nobody listens
                  }
                })
               ? good
               : bad;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vkgemm: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "vkgemm: unknown exception\n");
  }
  std::fflush(stdout);
  std::_Exit(code);  // the reader of the input never ends, and holds that
}

}  // namespace vkgemm::headless
