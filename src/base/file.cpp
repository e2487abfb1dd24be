#include "base/file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/random.hpp"

namespace vkgemm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;

Error failure(const fs::path& path, std::string_view what) {
  return Error{Status::io_error, path.string() + ": " + std::string(what)};
}

// `code`: errno, where a stream does not say why it failed.
Error failure(const fs::path& path, std::string_view what, int code) {
  return failure(path, std::string(what) + ": " + std::generic_category().message(code));
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

Result<void> write_pieces(std::ofstream& stream, const fs::path& path,
                          std::initializer_list<std::span<const std::byte>> pieces) {
  errno = 0;
  for (const std::span<const std::byte> piece : pieces) {
    for (std::uint64_t done = 0; done < piece.size() && stream;) {
      const std::uint64_t bytes = std::min<std::uint64_t>(piece_bytes, piece.size() - done);
      stream.write(reinterpret_cast<const char*>(piece.data() + done),
                   static_cast<std::streamsize>(bytes));
      done += bytes;
    }
  }
  stream.close();  // where some systems tell
  if (!stream) return failure(path, "cannot be written", errno);
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

  // With the permissions of the file that it is going to replace.
  Result<void> write(std::initializer_list<std::span<const std::byte>> pieces) const {
    errno = 0;
    std::ofstream stream(path_, std::ios::binary | std::ios::trunc);
    if (!stream) return failure(target_, "cannot be written", errno);
    std::error_code error;
    const fs::file_status before = fs::status(target_, error);
    if (fs::exists(before)) {
      fs::permissions(path_, before.permissions(), error);
      if (error) return failure(target_, "permissions cannot be kept: " + error.message());
    }
    return write_pieces(stream, target_, pieces);
  }

  Result<void> replace_target() {
    std::error_code error;
    fs::rename(path_, target_, error);
    if (error) return failure(target_, "cannot be replaced: " + error.message());
    path_.clear();
    return {};
  }

 private:
  const fs::path& target_;
  fs::path path_;
};

}  // namespace

Result<std::vector<std::byte>> read_file(const fs::path& path, std::uint64_t max_bytes) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    const int code = errno;
    if (code == ENOENT) return std::vector<std::byte>{};
    return failure(path, "cannot be opened", code);
  }
  std::vector<std::byte> content;
  while (stream) {
    const std::size_t before = content.size();
    const std::uint64_t bytes = std::min(piece_bytes - 1, max_bytes - before) + 1;
    content.resize(before + bytes);
    errno = 0;
    stream.read(reinterpret_cast<char*>(content.data() + before),
                static_cast<std::streamsize>(bytes));
    content.resize(before + static_cast<std::size_t>(stream.gcount()));
    if (content.size() > max_bytes) {
      return failure(path,
                     "more than " + std::to_string(max_bytes) + " bytes, which no such file has");
    }
  }
  if (stream.bad()) return failure(path, "cannot be read", errno);
  return content;
}

OutputFile::OutputFile() = default;
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::locate(const fs::path& path) {
  OutputFile file;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return failure(path, "is a directory");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    errno = 0;
    auto stream = std::make_unique<std::ofstream>(path, std::ios::binary);
    if (!*stream) return failure(path, "cannot be written", errno);
    file.target_ = path;
    file.stream_ = std::move(stream);
    return file;
  }
  Result<fs::path> target = behind_links(path);
  if (!target) return target.error();
  file.target_ = std::move(*target);
  errno = 0;
  if (fs::exists(status) && !std::ofstream(file.target_, std::ios::binary | std::ios::app)) {
    return failure(path, "cannot be written", errno);
  }
  return file;
}

Result<OutputFile> OutputFile::open(const fs::path& path) {
  Result<OutputFile> file = locate(path);
  if (!file || file->stream_ != nullptr) return file;
  if (auto tried = TemporaryFile(file->target_).write({}); !tried) return tried.error();
  return file;
}

Result<void> OutputFile::write(std::initializer_list<std::span<const std::byte>> pieces) {
  if (stream_ != nullptr) return write_pieces(*stream_, target_, pieces);
  TemporaryFile temporary(target_);
  if (auto written = temporary.write(pieces); !written) return written;
  return temporary.replace_target();
}

Result<void> write_file(const fs::path& path, std::span<const std::byte> content) {
  Result<OutputFile> file = OutputFile::locate(path);
  if (!file) return file.error();
  return file->write({content});
}

}  // namespace vkgemm
