#include "worker.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

#ifdef _WIN32
#include <windows.h>
#endif

namespace vkgemm::test {
namespace {

std::map<std::string, Worker::Work, std::less<>>& works() {
  static std::map<std::string, Worker::Work, std::less<>> all;
  return all;
}

const Worker nothing("nothing", [](const std::string&, const headless::Say&) { return true; });

}  // namespace

std::optional<std::string> why_no_worker() {
  static const headless::WorkerEnd end = nothing.run({.on_line = [](std::string_view) {}});
  if (end.ending == headless::Ending::finished) return std::nullopt;
  return "the program cannot be started once more: " + end.reason;
}

Worker::Worker(std::string name, Work work) : name_(std::move(name)) {
  works().emplace(name_, std::move(work));
}

void Worker::work(std::string_view name) {
  headless::work_for_supervisor(works().find(name)->second);
}

void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

#ifdef _WIN32

const std::string_view crash_reason = "exception 0xc0000005";

void crash() {
  RaiseException(EXCEPTION_ACCESS_VIOLATION, EXCEPTION_NONCONTINUABLE, 0, nullptr);
  std::abort();
}

bool is_running(long process) {
  const HANDLE handle = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(process));
  if (handle == nullptr) return false;
  const bool runs = WaitForSingleObject(handle, 0) == WAIT_TIMEOUT;
  CloseHandle(handle);
  return runs;
}

#else

const std::string_view crash_reason = "signal 9";

void crash() {
  std::raise(SIGKILL);
  std::abort();
}

bool is_running(long process) { return kill(static_cast<pid_t>(process), 0) == 0; }

#endif

}  // namespace vkgemm::test
