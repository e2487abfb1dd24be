// log.hpp: where messages go: the application's callback, and what VKGEMM_LOG names.
#pragma once

#include <cstdio>
#include <memory>
#include <string_view>

#include "base/system.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// Silent, unless there is a callback or the environment variable VKGEMM_LOG is set: to "stderr",
// or to the path of a file that is appended to. May be called from several threads at once.
class Log {
 public:
  explicit Log(LogCallback callback);

  // Ask before a message is put together: a warm plan() must not pay for one that nobody reads.
  bool enabled() const noexcept { return callback_ || stream_ != nullptr; }

  void write(LogLevel level, std::string_view message) const;

 private:
  LogCallback callback_;
  os::File file_;
  std::FILE* stream_ = nullptr;  // file_ or stderr
};

}  // namespace vkgemm
