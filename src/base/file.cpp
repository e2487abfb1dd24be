#include "base/file.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/paths.hpp"
#include "base/random.hpp"

namespace vkgemm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

Error failure(const fs::path& path, std::string_view what) {
  return Error{Status::io_error, utf8(path) + ": " + std::string(what)};
}

Error failure(const fs::path& path, std::string_view what, const std::error_code& error) {
  return failure(path, std::string(what) + ": " + error.message());
}

// Where a stream does not say why it failed.
std::error_code stream_error() { return {errno, std::generic_category()}; }

Error is_link(const fs::path& path) {
  return failure(path, "is a symbolic link, which is not followed here");
}

// The file that a path names, or would name if it were there, behind all symbolic links.
Result<fs::path> behind_links(fs::path path) {
  constexpr int most_links = 40;  // as many as Linux follows
  std::error_code error;
  for (int i = 0; i < most_links; ++i) {
    if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
    const fs::path to = fs::read_symlink(path, error);
    if (error) return failure(path, error.message());
    path = path.parent_path() / to;
  }
  return failure(path, "more than 40 symbolic links");
}

Result<void> write_pieces(os::File stream, const fs::path& path,
                          std::initializer_list<std::span<const std::byte>> pieces) {
  errno = 0;
  bool written = true;
  for (const std::span<const std::byte> piece : pieces) {
    if (piece.empty()) continue;  // may point nowhere
    written = written && std::fwrite(piece.data(), 1, piece.size(), stream.get()) == piece.size();
  }
  if (std::fclose(stream.release()) != 0 || !written) {  // some systems tell at the end
    return failure(path, "cannot be written", stream_error());
  }
  return {};
}

// A file beside `target`, of a name that no other process writes into. Removed with its object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) : target_(target), path_(target) {
    path_ += "." + std::to_string(random_number()) + ".tmp";
  }
  ~TemporaryFile() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // With the permissions of the file that it is going to replace. Until then nobody else can open
  // it.
  Result<void> write(std::initializer_list<std::span<const std::byte>> pieces) const {
    std::error_code error;
    const fs::file_status before = fs::status(target_, error);
    os::File stream = os::create_file(path_, fs::exists(before), error);
    if (!stream) return failure(target_, "cannot be written", error);
    if (fs::exists(before)) {
      fs::permissions(path_, before.permissions(), error);
      if (error) return failure(target_, "permissions cannot be kept", error);
    }
    return write_pieces(std::move(stream), target_, pieces);
  }

  Result<void> replace_target() {
    if (const std::error_code error = os::replace_file(path_, target_); error) {
      return failure(target_, "cannot be replaced", error);
    }
    path_.clear();
    return {};
  }

 private:
  const fs::path& target_;
  fs::path path_;
};

}  // namespace

Result<std::vector<std::byte>> read_file(const fs::path& path, std::uint64_t max_bytes,
                                         os::Links links) {
  std::error_code error;
  const os::File stream = os::open_to_read(path, links, error);
  if (!stream) {
    if (error == std::errc::no_such_file_or_directory) return std::vector<std::byte>{};
    if (error == std::errc::too_many_symbolic_link_levels && links == os::Links::refuse) {
      return is_link(path);
    }
    return failure(path, "cannot be read", error);
  }
  std::vector<std::byte> content;
  for (bool more = true; more;) {
    const std::size_t before = content.size();
    const std::uint64_t bytes = std::min(piece_bytes - 1, max_bytes - before) + 1;
    content.resize(before + bytes);
    errno = 0;
    const std::size_t got = std::fread(content.data() + before, 1, bytes, stream.get());
    content.resize(before + got);
    if (content.size() > max_bytes) {
      return failure(path,
                     "more than " + std::to_string(max_bytes) + " bytes, which no such file has");
    }
    more = got == bytes;
  }
  if (std::ferror(stream.get()) != 0) return failure(path, "cannot be read", stream_error());
  return content;
}

Result<OutputFile> OutputFile::locate(const fs::path& path, os::Links links) {
  OutputFile file;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return failure(path, "is a directory");
  if (links == os::Links::refuse) {
    const fs::file_status own = fs::symlink_status(path, error);
    if (fs::is_symlink(own)) return is_link(path);
    if (fs::exists(own) && !fs::is_regular_file(own)) return failure(path, "is no regular file");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    os::File stream = os::open_to_write(path, error);
    if (!stream) return failure(path, "cannot be written", error);
    file.target_ = path;
    file.stream_ = std::move(stream);
    return file;
  }
  Result<fs::path> target = behind_links(path);
  if (!target) return target.error();
  file.target_ = std::move(*target);
  if (fs::exists(status) && !os::open_to_write(file.target_, error)) {
    return failure(path, "cannot be written", error);
  }
  return file;
}

Result<OutputFile> OutputFile::open(const fs::path& path) {
  Result<OutputFile> file = locate(path, os::Links::follow);
  if (!file || file->stream_ != nullptr) return file;
  if (auto tried = TemporaryFile(file->target_).write({}); !tried) return tried.error();
  return file;
}

Result<void> OutputFile::write(std::initializer_list<std::span<const std::byte>> pieces) {
  if (stream_ != nullptr) return write_pieces(std::move(stream_), target_, pieces);
  TemporaryFile temporary(target_);
  if (auto written = temporary.write(pieces); !written) return written;
  return temporary.replace_target();
}

Result<void> write_file(const fs::path& path, std::span<const std::byte> content, os::Links links) {
  Result<OutputFile> file = OutputFile::locate(path, links);
  if (!file) return file.error();
  return file->write({content});
}

}  // namespace vkgemm
