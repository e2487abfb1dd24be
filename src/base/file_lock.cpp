#include "base/file_lock.hpp"

#include <system_error>
#include <thread>
#include <utility>

#include "base/paths.hpp"

namespace vkgemm {

Result<LockFile> LockFile::open(const std::filesystem::path& path) {
  std::error_code error;
  const os::LockHandle file = os::open_lock_file(path, error);
  if (file != os::no_lock_handle) return LockFile(file);
  const bool has_none = error == std::errc::not_supported;
  return Error{has_none ? Status::unsupported : Status::io_error,
               utf8(path) + ": cannot be locked: " + error.message()};
}

LockFile::LockFile(LockFile&& other) noexcept
    : file_(std::exchange(other.file_, os::no_lock_handle)) {}

LockFile::~LockFile() {
  if (file_ != os::no_lock_handle) os::close_lock_file(file_);
}

bool LockFile::lock(std::uint64_t byte, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  os::Locked locked = os::Locked::no;
  while ((locked = os::lock_byte(file_, byte)) == os::Locked::busy) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return locked == os::Locked::yes;
}

void LockFile::unlock(std::uint64_t byte) { os::unlock_byte(file_, byte); }

bool LockFile::is_held_by_another(std::uint64_t byte) const {
  return os::is_locked_elsewhere(file_, byte);
}

}  // namespace vkgemm
