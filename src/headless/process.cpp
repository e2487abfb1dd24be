#include "headless/process.hpp"

#include <algorithm>

namespace vkgemm::headless {

Result<Ended> run_self(const std::vector<std::string>& arguments, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point over = Clock::now() + limit;
  const auto left = [&] {
    return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(over - Clock::now()),
                    std::chrono::milliseconds(0));
  };
  Result<Process> process = Process::start(arguments);
  if (!process) return process.error();
  Ended ended;
  for (std::optional<std::string> text; (text = process->read(left())) && !text->empty();) {
    ended.output += *text;
    if (left().count() == 0) break;
  }
  if (const std::optional<ProcessEnd> end = process->wait(left())) {
    ended.end = *end;
    return ended;
  }
  ended.timed_out = true;
  if (!process->end()) ended.left = process->id();
  return ended;
}

}  // namespace vkgemm::headless
