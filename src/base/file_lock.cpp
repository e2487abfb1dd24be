#include "base/file_lock.hpp"

#include <string>
#include <utility>

#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif

#ifdef F_OFD_SETLK  // Linux 3.15, POSIX.1-2024

#include <cerrno>
#include <system_error>
#include <thread>

namespace vkgemm {
namespace {

struct flock lock_on(short type, std::uint64_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

}  // namespace

Result<LockFile> LockFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return Error{Status::io_error,
                 path.string() + ": cannot be opened: " + std::generic_category().message(errno)};
  }
  return LockFile(descriptor);
}

LockFile::LockFile(LockFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

LockFile::~LockFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool LockFile::lock(std::uint64_t byte, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  struct flock lock = lock_on(F_WRLCK, byte);
  while (fcntl(descriptor_, F_OFD_SETLK, &lock) != 0) {
    const bool is_busy = errno == EAGAIN || errno == EACCES;
    if (!is_busy || std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void LockFile::unlock(std::uint64_t byte) {
  struct flock lock = lock_on(F_UNLCK, byte);
  (void)fcntl(descriptor_, F_OFD_SETLK, &lock);
}

bool LockFile::is_held_by_another(std::uint64_t byte) const {
  struct flock lock = lock_on(F_WRLCK, byte);
  return fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace vkgemm

#else

namespace vkgemm {

Result<LockFile> LockFile::open(const std::filesystem::path& path) {
  return Error{Status::unsupported, path.string() + ": this system has no locks on open files"};
}
LockFile::LockFile(LockFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
LockFile::~LockFile() = default;
bool LockFile::lock(std::uint64_t, std::chrono::milliseconds) { return false; }
void LockFile::unlock(std::uint64_t) {}
bool LockFile::is_held_by_another(std::uint64_t) const { return true; }

}  // namespace vkgemm

#endif
