// file_lock.hpp: locks between processes, on single bytes of a file.
//
// A lock ends with the process that holds it, however that ends. It is seen from every PID
// namespace; on a network file system from other machines, too, as far as that supports locks.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "base/system.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// Two objects exclude each other even within one process. The file stays empty; it is made where
// there is none, and never removed: somebody may be about to lock it.
class LockFile {
 public:
  // io_error if the file cannot be opened for writing, or is a symbolic link; unsupported on
  // systems without such locks.
  static Result<LockFile> open(const std::filesystem::path& path);

  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

  // False if another object still holds the lock after that time.
  bool lock(std::uint64_t byte, std::chrono::milliseconds patience = {});
  void unlock(std::uint64_t byte);

  // True if another object holds the lock, or if that cannot be told. This one must not hold it.
  bool is_held_by_another(std::uint64_t byte) const;

 private:
  explicit LockFile(os::LockHandle file) : file_(file) {}
  os::LockHandle file_;
};

}  // namespace vkgemm
