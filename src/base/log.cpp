#include "base/log.hpp"

#include <array>
#include <atomic>
#include <string>
#include <system_error>
#include <utility>

#include "base/enum_names.hpp"
#include "base/environment.hpp"
#include "base/paths.hpp"

namespace vkgemm {

namespace {

constexpr auto level_names = std::to_array<std::string_view>({"info", "warning", "error"});

}  // namespace

Log::Log(LogCallback callback) : callback_(std::move(callback)) {
  const std::string target = environment_variable("VKGEMM_LOG");
  if (target.empty()) return;
  if (target == "stderr") {
    stream_ = stderr;
    return;
  }
  std::error_code error;
  file_ = os::open_to_append(path_of(target), error);
  stream_ = file_.get();
  if (stream_ == nullptr) {
    // Without a callback stderr is told, once in a process: a context makes several logs.
    static std::atomic_flag told;
    if (!callback_ && !told.test_and_set()) stream_ = stderr;
    write(LogLevel::warning, "VKGEMM_LOG: cannot append to " + target);
    stream_ = nullptr;
  }
}

void Log::write(LogLevel level, std::string_view message) const {
  if (callback_) callback_(level, message);
  if (stream_ != nullptr) {
    // One call a line: stdio locks each, so lines of several threads stay whole.
    std::string line = "vkgemm ";
    line.append(name_of(level_names, level)).append(": ").append(message).append("\n");
    std::fwrite(line.data(), 1, line.size(), stream_);
    std::fflush(stream_);
  }
}

}  // namespace vkgemm
