// Files are read whole and replaced whole; what is no regular file stays what it is.
#include "base/file.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>

#ifndef _WIN32
#include <sys/stat.h>
#endif

#include "base/file_lock.hpp"
#include "expectations.hpp"

namespace vkgemm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = 1 << 20;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / ("vkgemm-files-" + std::to_string(std::random_device{}()));
    fs::create_directories(folder_);
    file_ = folder_ / "file";
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::span<const std::byte> bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  static Result<void> write(const fs::path& path, const std::string& text) {
    return write_file(path, bytes(text));
  }
  static std::string read(const fs::path& path) {
    const auto content = read_file(path, most_bytes);
    if (!content) return content.error().message;
    return {reinterpret_cast<const char*>(content->data()), content->size()};
  }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  fs::path folder_, file_;
};

TEST_F(Files, AreReplacedAndRead) {
  EXPECT_EQ(read(file_), "") << "there is none";
  for (const std::string& text : {std::string(3'000'000, 'x'), std::string("short")}) {
    ASSERT_TRUE(write(file_, text));
    const auto content = read_file(file_, 3'000'000);
    ASSERT_TRUE(content) << content.error().message;
    EXPECT_TRUE(std::ranges::equal(*content, bytes(text)));
  }
  EXPECT_EQ(count(), 1u) << "a temporary file stayed";
}

TEST_F(Files, ArePiecedTogether) {
  auto file = OutputFile::open(file_);
  ASSERT_TRUE(file);
  EXPECT_EQ(count(), 0u) << "to open is not to write";
  ASSERT_TRUE(file->write({bytes("one "), {}, bytes("two")}));
  EXPECT_EQ(read(file_), "one two");
}

TEST_F(Files, SayWhatCannotBeRead) {
  const auto expect_error = [](const fs::path& path, std::string_view reason) {
    const auto content = read_file(path, most_bytes);
    ASSERT_FALSE(content);
    EXPECT_EQ(content.error().status, Status::io_error);
    EXPECT_TRUE(test::contains(content.error().message, reason)) << content.error().message;
  };
  expect_error(folder_, "cannot be read");
  std::ofstream(file_).put('x');
  fs::resize_file(file_, most_bytes);
  EXPECT_TRUE(read_file(file_, most_bytes));
  fs::resize_file(file_, most_bytes + 1);
  expect_error(file_, "more than 1048576 bytes");
}

TEST_F(Files, SayWhatCannotBeWritten) {
  const auto expect_error = [](const fs::path& path, std::string_view reason) {
    const auto opened = OutputFile::open(path);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().status, Status::io_error);
    EXPECT_TRUE(test::contains(opened.error().message, reason)) << opened.error().message;
  };
  expect_error(folder_, "is a directory");
  expect_error(folder_ / "no such folder" / "file", "no such folder");
  EXPECT_EQ(count(), 0u);
}

// One who reads while another writes sees one of the two contents. A size that is asked for by
// name, and a file that is opened by name afterwards, may be those of different files.
TEST_F(Files, AreNeverTorn) {
  const std::string contents[] = {std::string(100, 'a'), std::string(70'000, 'b')};
  ASSERT_TRUE(write(file_, contents[0]));
  std::atomic<bool> over = false;
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) EXPECT_TRUE(write(file_, contents[i % 2]));
    over = true;
  });
  std::uint64_t torn = 0;
  while (!over) {
    const std::string text = read(file_);
    torn += text != contents[0] && text != contents[1] ? 1 : 0;
  }
  writer.join();
  EXPECT_EQ(torn, 0u);
}

#ifndef _WIN32

TEST_F(Files, FollowLinks) {
  const fs::path link = folder_ / "link", to_link = folder_ / "to link";
  fs::create_directory(folder_ / "inner");
  fs::create_symlink("inner/file", link);
  fs::create_symlink(link, to_link);
  for (const char* text : {"the link dangles", "it leads to a file"}) {
    ASSERT_TRUE(write(to_link, text));
    EXPECT_EQ(read(folder_ / "inner" / "file"), text);
    EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(to_link));
  }
  fs::create_symlink(folder_ / "circle", folder_ / "circle");
  EXPECT_FALSE(write(folder_ / "circle", "x"));
}

// Nor a pipe, at which a reader would wait for ever.
TEST_F(Files, FollowNoLinksThatMustNotBeThere) {
  constexpr auto refuse = os::Links::refuse;
  const fs::path link = folder_ / "link", other = folder_ / "other";
  ASSERT_TRUE(write(other, "another's"));
  fs::create_symlink(other, link);
  for (const Error& error : {read_file(link, most_bytes, refuse).error(),
                             write_file(link, bytes("x"), refuse).error()}) {
    EXPECT_EQ(error.status, Status::io_error);
    EXPECT_TRUE(test::contains(error.message, "is a symbolic link")) << error.message;
  }
  EXPECT_EQ(read(other), "another's");
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_FALSE(read_file(file_, most_bytes, refuse));
  EXPECT_FALSE(write_file(file_, bytes("x"), refuse));
  fs::remove(file_);
  ASSERT_TRUE(write_file(file_, bytes("own"), refuse));
  EXPECT_EQ(read_file(file_, most_bytes, refuse)->size(), 3u);
  EXPECT_FALSE(LockFile::open(link));
  // Of the way only the end counts.
  fs::create_directory_symlink(folder_, folder_ / "folder");
  EXPECT_TRUE(read_file(folder_ / "folder" / "file", most_bytes, refuse));
}

TEST_F(Files, NewOnesReplaceNothing) {
  std::error_code error;
  EXPECT_TRUE(os::create_file(file_, false, error));
  EXPECT_FALSE(os::create_file(file_, false, error));
  EXPECT_EQ(error, std::errc::file_exists);
  fs::create_symlink("nothing", folder_ / "link");
  EXPECT_FALSE(os::create_file(folder_ / "link", false, error));
  EXPECT_EQ(error, std::errc::file_exists);
}

TEST_F(Files, HavePrivateFolders) {
  const mode_t before = umask(022);
  fs::create_directory(folder_ / "open");
  EXPECT_FALSE(os::create_private_folders(folder_ / "open" / "one" / "two"));
  EXPECT_FALSE(os::create_private_folders(folder_ / "open" / "one" / "two")) << "there already";
  umask(before);
  EXPECT_EQ(fs::status(folder_ / "open" / "one").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(folder_ / "open" / "one" / "two").permissions(), fs::perms::owner_all);
  EXPECT_NE(fs::status(folder_ / "open").permissions(), fs::perms::owner_all) << "was there";
  ASSERT_TRUE(write(file_, "no folder"));
  EXPECT_TRUE(os::create_private_folders(file_ / "folder"));
}

TEST_F(Files, KeepTheirPermissions) {
  ASSERT_TRUE(write(file_, "old"));
  constexpr auto own = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(file_, own);
  ASSERT_TRUE(write(file_, "new"));
  EXPECT_EQ(fs::status(file_).permissions(), own);
}

// Root, too, would otherwise have a regular file where /dev/null was.
TEST_F(Files, AreWrittenIntoUnlessRegular) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  std::string read_back;
  std::thread reader([&] { std::getline(std::ifstream(file_), read_back); });
  const auto written = write(file_, "through the pipe");
  reader.join();
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(read_back, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(file_));
  const fs::path null = folder_ / "null";
  fs::create_symlink("/dev/null", null);
  ASSERT_TRUE(write(null, "x"));
  EXPECT_TRUE(fs::is_character_file(null));
  EXPECT_EQ(count(), 2u);
}

#endif

}  // namespace
}  // namespace vkgemm
