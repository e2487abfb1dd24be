// file.hpp: files read whole and replaced whole, whatever others do to them meanwhile.
//
// Files that somebody names (matrices, tables, logs) may be symbolic links, and are then what these
// lead to. The library's own (verdicts, pipeline caches) are never: whoever put a link there wants
// another file read or replaced (Links::refuse). Folders on the way may be links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/system.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// Reads a file, opened once: if another process replaces it meanwhile, this is the old one. Empty
// if there is none; io_error if it cannot be read or has more bytes than `max_bytes`.
Result<std::vector<std::byte>> read_file(const std::filesystem::path& path, std::uint64_t max_bytes,
                                         os::Links links = os::Links::follow);

// A file that is going to be written. A symbolic link is followed. A regular file, or one that does
// not exist yet, is replaced at once: readers see the old content or the new, never a part. It
// keeps its permissions. Anything else (a device, a pipe) stays what it is and is written into.
class OutputFile {
 public:
  // Opens what must stay open, and tries whether the file could be replaced, so that what would
  // fail fails before anything is computed for it. Nothing is left behind.
  static Result<OutputFile> open(const std::filesystem::path& path);

  // The pieces, one behind the other, are the file's new content. Once.
  Result<void> write(std::initializer_list<std::span<const std::byte>> pieces);

 private:
  OutputFile() = default;
  // Opens what must stay open; of anything else finds the file that is going to be replaced.
  static Result<OutputFile> locate(const std::filesystem::path& path, os::Links links);
  friend Result<void> write_file(const std::filesystem::path& path,
                                 std::span<const std::byte> content, os::Links links);

  std::filesystem::path target_;
  os::File stream_;  // if it is written into
};

Result<void> write_file(const std::filesystem::path& path, std::span<const std::byte> content,
                        os::Links links = os::Links::follow);

}  // namespace vkgemm
