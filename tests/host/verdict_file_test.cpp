// Files of verdicts: what is kept, for whom, and what becomes of attempts.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "self_test/self_test.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

class VerdictFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("vkgemm-verdicts-" + std::to_string(std::random_device{}()));
    file_ = folder_ / "made" / "verdicts.json";
    caps_.vendor_id = 0x10de;
    caps_.device_id = 0x2335;
    caps_.driver_version = 7;
    caps_.pipeline_cache_uuid[3] = 9;
    for (const KernelKind& kind : kernel_kinds(caps_)) {
      verdicts_.push_back({.kind = kind, .outcome = Outcome::passed, .config = "khr:…"});
    }
    verdicts_[2].outcome = Outcome::wrong_result;
    verdicts_[2].detail = "expected 1, got \"2\"\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string read() const {
    std::ifstream stream(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& text) const { std::ofstream(file_, std::ios::binary) << text; }

  std::filesystem::path folder_, file_;
  DeviceCaps caps_ = test::h200();
  std::vector<Verdict> verdicts_;
};

TEST_F(VerdictFiles, RoundTrip) {
  const auto none = load_verdicts(file_, caps_);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  ASSERT_TRUE(save_verdicts(file_, caps_, verdicts_));
  const auto read = load_verdicts(file_, caps_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, verdicts_);
}

TEST_F(VerdictFiles, KeepsAttempts) {
  verdicts_.pop_back();
  const KernelKind kind = kernel_kinds(caps_).back();
  VerdictFile content{.verdicts = verdicts_,
                      .attempts = {{.kind = kind, .process = own_process()}}};
  ASSERT_TRUE(write_verdict_file(file_, caps_, content));
  const auto once = read_verdict_file(file_, caps_);
  ASSERT_TRUE(once) << once.error().message;
  EXPECT_EQ(*once, content);
  EXPECT_EQ(*load_verdicts(file_, caps_), verdicts_) << "an attempt is no verdict";
  // Twice: by a process that runs, and by one that had its number.
  content.attempts[0].count = 2;
  ASSERT_TRUE(write_verdict_file(file_, caps_, content));
  EXPECT_EQ(*read_verdict_file(file_, caps_, is_running), content);
  const auto loaded = load_verdicts(file_, caps_);
  ASSERT_EQ(loaded->size(), verdicts_.size() + 1);
  EXPECT_EQ(loaded->back().kind, kind);
  EXPECT_EQ(loaded->back().outcome, Outcome::crashed);
  std::string text = read();
  text.replace(text.find("\"count\": 2"), 10, "\"count\": x");
  write(text);
  EXPECT_FALSE(load_verdicts(file_, caps_));
}

TEST_F(VerdictFiles, IsMerged) {
  const std::vector<KernelKind> kinds = kernel_kinds(caps_);
  const Attempt others{.kind = kinds[3], .process = 2};
  VerdictFile content{
      .verdicts = {{.kind = kinds[0], .outcome = Outcome::passed},
                   {.kind = kinds[1], .outcome = Outcome::passed}},
      .attempts = {{.kind = kinds[1], .process = 1}, {.kind = kinds[2], .process = 2}, others}};
  const std::vector<Verdict> found = {{.kind = kinds[1], .outcome = Outcome::wrong_result},
                                      {.kind = kinds[2], .outcome = Outcome::passed}};
  const Attempt own{.kind = kinds[4], .process = 1};
  merge(content, found, 1, own);
  EXPECT_EQ(content.verdicts, (std::vector{Verdict{.kind = kinds[0], .outcome = Outcome::passed},
                                           found[0], found[1]}));
  EXPECT_EQ(content.attempts, (std::vector{others, own}));
  const std::vector<Verdict> untested = {{.kind = kinds[1]}, {.kind = kinds[4]}};
  VerdictFile unchanged = content;
  unchanged.attempts = {others};
  merge(content, untested, 1, std::nullopt);
  EXPECT_EQ(content, unchanged);
  merge(content, found, 1, std::nullopt);
  EXPECT_EQ(content.attempts, std::vector{others});
  // A process before this one had its number, and tried another kind for the second time.
  const Attempt once{.kind = kinds[5], .process = 1};
  content.attempts = {{.kind = kinds[6], .process = 1, .count = 2}, once};
  merge(content, {}, 1, own);
  EXPECT_EQ(content.verdicts.back().kind, kinds[6]);
  EXPECT_EQ(content.verdicts.back().outcome, Outcome::crashed);
  EXPECT_EQ(content.attempts, (std::vector{once, own}));
}

TEST(Processes, AreAskedFor) {
#ifndef _WIN32
  EXPECT_TRUE(is_running(own_process()));
#endif
  EXPECT_FALSE(another_is_running(own_process()));
  EXPECT_FALSE(is_running(0));
  EXPECT_FALSE(is_running(0xffffffffu));
}

TEST_F(VerdictFiles, HoldsForOneDeviceAndDriver) {
  ASSERT_TRUE(save_verdicts(file_, caps_, verdicts_));
  const auto expect_refused = [&](const char* field, const DeviceCaps& other) {
    const auto read = load_verdicts(file_, other);
    ASSERT_FALSE(read) << field;
    EXPECT_EQ(read.error().status, Status::io_error);
    EXPECT_TRUE(test::contains(read.error().message, field)) << read.error().message;
  };
  DeviceCaps other = caps_;
  other.driver_version = 8;
  expect_refused("driver_version", other);
  other = caps_;
  other.device_id = 1;
  expect_refused("device_id", other);
  other = caps_;
  other.vendor_id = 1;
  expect_refused("vendor_id", other);
  other = caps_;
  other.pipeline_cache_uuid[15] = 1;
  expect_refused("pipeline_cache_uuid", other);
  std::string text = read();
  const std::size_t kernels = text.find("\"kernels\": \"") + 12;
  text[kernels] = text[kernels] == '0' ? '1' : '0';
  write(text);
  expect_refused("kernels", caps_);
}

TEST_F(VerdictFiles, RefusesAnythingElse) {
  ASSERT_TRUE(save_verdicts(file_, caps_, verdicts_));
  const std::string good = read();
  for (std::size_t bytes = 1; bytes + 1 < good.size(); bytes += 7) {
    write(good.substr(0, bytes));
    EXPECT_FALSE(load_verdicts(file_, caps_)) << bytes;
  }
  const auto refused = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write(text);
    EXPECT_FALSE(load_verdicts(file_, caps_)) << to;
  };
  refused("\"outcome\": \"passed\"", "\"outcome\": \"fine\"");
  refused("\"loop\": \"fma\"", "\"loop\": \"cpu\"");
  refused("\"loop\": \"fma\"", "\"loop\": \"khr_ring\"");  // khr's kinds speak for it
  refused("\"input\": \"f16\"", "\"input\": 16");
  refused("\"k\": 0,", "\"k\": -1,");
  refused("\"k\": 0,", "\"k\": 4294967296,");
  refused("\"k\": 0,", "");
  refused("\"version\": 2", "\"version\": " + std::string(200000, '[') + std::string(200000, ']'));
  write("[]");
  EXPECT_FALSE(load_verdicts(file_, caps_));
  write(std::string(2 << 20, ' '));
  EXPECT_FALSE(load_verdicts(file_, caps_));
}

TEST_F(VerdictFiles, CannotBeWritten) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "made") << "a file, no folder";
  const auto saved = save_verdicts(file_, caps_, verdicts_);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().status, Status::io_error);
}

TEST_F(VerdictFiles, HasADefaultName) {
  caps_.driver_id = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  EXPECT_EQ(default_verdict_file(caps_).filename(), "self-test-10de-2335-4.json");
  EXPECT_EQ(default_verdict_file(caps_).parent_path().filename(), "vkgemm");
}

}  // namespace
}  // namespace vkgemm
