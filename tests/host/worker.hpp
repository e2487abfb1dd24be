// worker.hpp: what a host test has done in a process of its own, which is this program once more.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headless/supervisor.hpp"

namespace vkgemm::test {

// One for each piece of work, outside all functions: the other process, too, must know it.
class Worker {
 public:
  using Work = std::function<bool(const std::string& input, const headless::Say& say)>;
  Worker(std::string name, Work work);

  headless::WorkerEnd run(const headless::Supervision& supervision,
                          const std::string& input = {}) const {
    return headless::supervise({std::string(option), name_}, input, supervision);
  }

  static constexpr std::string_view option = "--worker";
  // What main() of the other process does.
  [[noreturn]] static void work(std::string_view name);

 private:
  std::string name_;
};

// Why this program cannot be started once more, if it cannot: an emulator of one program starts no
// other.
std::optional<std::string> why_no_worker();

// A driver's misdeed. By what the process is said to have been ended.
[[noreturn]] void crash();
extern const std::string_view crash_reason;

[[noreturn]] void hang();

// True if there is a process with this id.
bool is_running(long process);

}  // namespace vkgemm::test
