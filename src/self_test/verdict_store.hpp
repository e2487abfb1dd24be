// verdict_store.hpp: a file of verdicts that processes share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "base/file_lock.hpp"
#include "device/caps.hpp"
#include "self_test/self_test.hpp"

namespace vkgemm {

// Beside the file there is a lock file, "<file>.lock". Its byte 0 is locked by who changes the
// file, and one byte more, at a random place, by each who notes attempts, for as long as the store
// lives. So a process that ended is known as such, in whatever container it was.
class VerdictStore {
 public:
  VerdictStore(std::filesystem::path file, const DeviceCaps& caps);

  // What is known. Empty, with or without `other`, if that is nothing; io_error if the file cannot
  // be read, or is no file of verdicts.
  Result<VerdictFile> read();

  // Adds what was found. A file that cannot be read stays as it is.
  Result<void> add(std::span<const Verdict> found);

  // Notes that the kind is going to be on the device. Returns how often it was there without a
  // verdict, this time included. Where the system has no locks nothing is noted.
  Result<std::uint32_t> begin_attempt(const KernelKind& kind);

 private:
  LockFile* lock_file();
  AttemptView view();
  Result<VerdictFile> read_with(const AttemptView& view);
  template <class Change>
  Result<void> change(const Change& change);

  std::filesystem::path file_;
  const DeviceCaps& caps_;
  std::optional<LockFile> lock_file_;
  bool has_lock_ = true;     // as far as is known
  std::uint64_t owner_ = 0;  // 0: none yet
};

}  // namespace vkgemm
