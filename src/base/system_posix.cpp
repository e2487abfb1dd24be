#ifndef _WIN32

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/system.hpp"

#ifdef __linux__
#include <sys/auxv.h>
#endif

namespace vkgemm::os {
namespace {

namespace fs = std::filesystem;

std::error_code last_error() noexcept { return {errno, std::generic_category()}; }

File stream_of(int descriptor, const char* mode, std::error_code& error) {
  File file(descriptor >= 0 ? fdopen(descriptor, mode) : nullptr);
  if (!file) error = last_error();
  if (!file && descriptor >= 0) close(descriptor);
  return file;
}

}  // namespace

bool has_more_rights() noexcept {
#ifdef __linux__
  return getauxval(AT_SECURE) != 0;  // by which secure_getenv() goes
#else
  return issetugid() != 0;
#endif
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

File open_to_read(const fs::path& path, Links links, std::error_code& error) {
  if (links == Links::follow)
    return stream_of(open(path.c_str(), O_RDONLY | O_CLOEXEC), "r", error);
  // Without waiting: a pipe that somebody put there must not hold anyone up.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat status {};
  if (descriptor >= 0 && (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))) {
    error = std::make_error_code(S_ISDIR(status.st_mode) ? std::errc::is_a_directory
                                                         : std::errc::operation_not_supported);
    close(descriptor);
    return nullptr;
  }
  return stream_of(descriptor, "r", error);
}

File open_to_write(const fs::path& path, std::error_code& error) {
  return stream_of(open(path.c_str(), O_WRONLY | O_CLOEXEC), "w", error);
}

File open_to_append(const fs::path& path, std::error_code& error) {
  return stream_of(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666), "a", error);
}

File create_file(const fs::path& path, bool owner_only, std::error_code& error) {
  return stream_of(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, owner_only ? 0600 : 0666), "w",
      error);
}

std::error_code replace_file(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  return error;
}

std::error_code create_private_folders(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return {};
  if (folder.has_relative_path()) error = create_private_folders(folder.parent_path());
  if (error) return error;
  return mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST ? std::error_code() : last_error();
}

#ifdef F_OFD_SETLK  // Linux 3.15, POSIX.1-2024
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

LockHandle open_lock_file(const fs::path& path, std::error_code& error) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (file < 0) error = last_error();
  return file;
}

void close_lock_file(LockHandle file) noexcept { close(static_cast<int>(file)); }

Locked lock_byte(LockHandle file, std::uint64_t byte) noexcept {
  struct flock lock = lock_on(F_WRLCK, byte);
  if (fcntl(static_cast<int>(file), F_OFD_SETLK, &lock) == 0) return Locked::yes;
  return errno == EAGAIN || errno == EACCES ? Locked::busy : Locked::no;
}

void unlock_byte(LockHandle file, std::uint64_t byte) noexcept {
  struct flock lock = lock_on(F_UNLCK, byte);
  (void)fcntl(static_cast<int>(file), F_OFD_SETLK, &lock);
}

bool is_locked_elsewhere(LockHandle file, std::uint64_t byte) noexcept {
  struct flock lock = lock_on(F_WRLCK, byte);
  return fcntl(static_cast<int>(file), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

#else

LockHandle open_lock_file(const fs::path&, std::error_code& error) {
  error = std::make_error_code(std::errc::not_supported);
  return no_lock_handle;
}
void close_lock_file(LockHandle) noexcept {}
Locked lock_byte(LockHandle, std::uint64_t) noexcept { return Locked::no; }
void unlock_byte(LockHandle, std::uint64_t) noexcept {}
bool is_locked_elsewhere(LockHandle, std::uint64_t) noexcept { return true; }

#endif

bool is_terminal(std::FILE* stream) noexcept { return isatty(fileno(stream)) == 1; }

void prepare_output() noexcept { std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); }

}  // namespace vkgemm::os

#endif
