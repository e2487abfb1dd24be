// tool.hpp: what the commands of the tool share: exit codes and how failures become them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "vkgemm/result.hpp"

namespace vkgemm::tool {

enum ExitCode : int {
  success = 0,
  verification_failed = 1,
  usage_error = 2,   // options, input files, problems that cannot be computed as asked
  device_error = 3,  // no loader, no device, no memory, a driver's failure
  regression = 4,    // slower than a baseline
};

// Thrown anywhere in the tool, printed and turned into the exit code by main().
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  explicit Failure(const Error& error) : Failure(code_for(error.status), error.message) {
    status_ = error.status;
  }
  ExitCode code() const noexcept { return code_; }
  // The status of the library's error that it was, if it was one.
  std::optional<Status> status() const noexcept { return status_; }

 private:
  static ExitCode code_for(Status status) noexcept {
    switch (status) {
      case Status::missing_feature:
      case Status::out_of_device_memory:
      case Status::device_lost:
      case Status::driver_error:
        return device_error;
      default:
        return usage_error;
    }
  }
  ExitCode code_;
  std::optional<Status> status_;
};

[[noreturn]] inline void usage(const std::string& message) { throw Failure(usage_error, message); }

template <class T>
T unwrap(Result<T> result) {
  if (!result) throw Failure(result.error());
  return std::move(*result);
}
inline void unwrap(const Result<void>& result) {
  if (!result) throw Failure(result.error());
}

// Each adds its subcommand; what the subcommand does, it does in its callback. `exit_code` is what
// main() returns if nothing is thrown.
void add_run(CLI::App& app, int& exit_code);
void add_pack(CLI::App& app);
void add_quantise(CLI::App& app);
void add_quantise_rows(CLI::App& app);
void add_make(CLI::App& app);
void add_info(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_tune(CLI::App& app, int& exit_code);

}  // namespace vkgemm::tool
