// Files of verdicts: what is kept, for whom, and what becomes of attempts.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/paths.hpp"
#include "self_test/self_test.hpp"
#include "self_test/verdict_store.hpp"
#include "test_devices.hpp"
#include "worker.hpp"

namespace vkgemm {
namespace {

DeviceCaps caps_of_verdicts() {
  DeviceCaps caps = test::h200();
  caps.vendor_id = 0x10de;
  caps.device_id = 0x2335;
  caps.driver_version = 7;
  caps.pipeline_cache_uuid[3] = 9;
  return caps;
}

class VerdictFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("vkgemm-verdicts-" + std::to_string(std::random_device{}()));
    file_ = folder_ / "made" / "verdicts.json";
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
  DeviceCaps caps_ = caps_of_verdicts();
  std::vector<Verdict> verdicts_;
};

TEST_F(VerdictFiles, ReadWhatWasWritten) {
  const auto none = load_verdicts(file_, caps_);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  ASSERT_TRUE(save_verdicts(file_, caps_, verdicts_));
  const auto read = load_verdicts(file_, caps_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, verdicts_);
}

// --- attempts

constexpr std::int64_t now = 1'000'000;
const AttemptView nobody_runs{.now = now, .is_running = [](std::uint64_t) { return false; }};
const AttemptView even_ones_run{.now = now,
                                .is_running = [](std::uint64_t owner) { return owner % 2 == 0; }};

TEST_F(VerdictFiles, KeepAttempts) {
  verdicts_.pop_back();
  const VerdictFile content{.verdicts = verdicts_,
                            .attempts = {{.kind = kernel_kinds(caps_).back(),
                                          .owner = 0x3fff'ffff'ffff'ffff,
                                          .count = 2,
                                          .time = now}}};
  const std::string text = verdict_file_text(content, caps_);
  const auto parsed = parse_verdict_file(text, caps_);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, content);
  for (const auto& [good, wrong] :
       {std::pair("\"count\": 2", "\"count\": x"),
        std::pair("\"count\": 2", "\"count\": 4294967296"),
        std::pair("\"time\": 1", "\"time\": -1"), std::pair("\"owner\": 4", "\"owner\": 4.")}) {
    std::string other = text;
    other.replace(other.find(good), std::string_view(good).size(), wrong);
    EXPECT_FALSE(parse_verdict_file(other, caps_)) << wrong;
  }
}

TEST_F(VerdictFiles, TwoAttemptsWithinADayAreAVerdict) {
  const KernelKind kind = verdicts_[0].kind;
  const auto settled = [&](const Attempt& attempt, const AttemptView& view = nobody_runs) {
    VerdictFile file{.attempts = {attempt}};
    settle(file, view);
    return file;
  };
  const Attempt once{.kind = kind, .owner = 2, .count = 1, .time = now - 60};
  EXPECT_EQ(settled(once).attempts, std::vector{once}) << "once says too little";
  Attempt twice = once;
  twice.count = 2;
  EXPECT_EQ(settled(twice, even_ones_run).attempts, std::vector{twice}) << "it still runs";
  const VerdictFile crashed = settled(twice);
  EXPECT_TRUE(crashed.attempts.empty());
  ASSERT_EQ(crashed.verdicts.size(), 1u);
  EXPECT_EQ(crashed.verdicts[0].outcome, Outcome::crashed);
  EXPECT_TRUE(test::contains(crashed.verdicts[0].detail, "2 times"));
  for (const std::int64_t time : {now - attempts_last_s - 1, now + 1}) {
    twice.time = time;
    EXPECT_EQ(settled(twice), VerdictFile{}) << "too long ago, or to come";
  }
}

TEST_F(VerdictFiles, AttemptsFollowOneAnother) {
  const KernelKind kind = verdicts_[0].kind, other = verdicts_[1].kind;
  VerdictFile file;
  EXPECT_EQ(begin_attempt(file, kind, 1, even_ones_run).count, 1u);
  EXPECT_EQ(begin_attempt(file, other, 1, even_ones_run).count, 1u);
  EXPECT_EQ(begin_attempt(file, kind, 2, even_ones_run).count, 2u) << "1 is over";
  EXPECT_EQ(begin_attempt(file, kind, 4, even_ones_run).count, 1u) << "2 still runs";
  EXPECT_EQ(file.attempts.size(), 3u);
  // 2 does not come back, and the kind is condemned. 4 knows better.
  settle(file, {.now = now, .is_running = [](std::uint64_t owner) { return owner == 4; }});
  ASSERT_EQ(file.verdicts.size(), 1u);
  EXPECT_EQ(file.verdicts[0].outcome, Outcome::crashed);
  const Verdict passed{.kind = kind, .outcome = Outcome::passed};
  merge(file, std::span(&passed, 1), 4);
  EXPECT_EQ(file.verdicts, std::vector{passed});
  ASSERT_EQ(file.attempts.size(), 1u);
  EXPECT_EQ(file.attempts[0].kind, other);
}

TEST_F(VerdictFiles, AreMerged) {
  const std::vector<KernelKind> kinds = kernel_kinds(caps_);
  const auto attempt = [&](std::size_t kind, std::uint64_t owner) {
    return Attempt{.kind = kinds[kind], .owner = owner, .time = now};
  };
  VerdictFile content{.verdicts = {{.kind = kinds[0], .outcome = Outcome::passed},
                                   {.kind = kinds[1], .outcome = Outcome::passed}},
                      .attempts = {attempt(1, 1), attempt(2, 2), attempt(3, 2), attempt(4, 1)}};
  const std::vector<Verdict> found = {{.kind = kinds[1], .outcome = Outcome::wrong_result},
                                      {.kind = kinds[2], .outcome = Outcome::passed},
                                      {.kind = kinds[3]},
                                      {.kind = kinds[4]}};
  merge(content, found, 1);
  EXPECT_EQ(content.verdicts, (std::vector{Verdict{.kind = kinds[0], .outcome = Outcome::passed},
                                           found[0], found[1]}));
  EXPECT_EQ(content.attempts, std::vector{attempt(3, 2)}) << "an untested one ends its owner's";
}

// --- stores

TEST_F(VerdictFiles, StoresShareAFile) {
  const KernelKind kind = verdicts_[0].kind;
  VerdictStore reader(file_, caps_);
  {
    VerdictStore one(file_, caps_);
    EXPECT_EQ(*one.begin_attempt(kind), 1u);
    VerdictStore two(file_, caps_);
    EXPECT_EQ(*two.begin_attempt(kind), 1u) << "one is still at it";
    ASSERT_TRUE(two.add(std::span(&verdicts_[1], 1)));
    EXPECT_EQ(reader.read()->attempts.size(), 2u);
  }
  // Both ended.
  {
    VerdictStore three(file_, caps_);
    EXPECT_EQ(*three.begin_attempt(kind), 2u);
    EXPECT_EQ(load_verdicts(file_, caps_)->size(), 1u) << "an attempt is no verdict";
  }
  const auto known = load_verdicts(file_, caps_);
  ASSERT_TRUE(known);
  ASSERT_EQ(known->size(), 2u);
  EXPECT_EQ((*known)[0], verdicts_[1]);
  EXPECT_EQ((*known)[1].outcome, Outcome::crashed);
  // Nobody asks for a file that it did not make.
  EXPECT_TRUE(std::filesystem::exists(file_.string() + ".lock"));
}

// Threads write one verdict each: none is lost, and nobody waits for ever.
TEST_F(VerdictFiles, NoVerdictIsLost) {
  std::vector<std::thread> threads;
  for (const Verdict& verdict : verdicts_) {
    threads.emplace_back([&] {
      VerdictStore store(file_, caps_);
      EXPECT_TRUE(store.begin_attempt(verdict.kind));
      EXPECT_TRUE(store.add(std::span(&verdict, 1)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto file = VerdictStore(file_, caps_).read();
  ASSERT_TRUE(file);
  EXPECT_EQ(file->verdicts.size(), verdicts_.size());
  EXPECT_TRUE(file->attempts.empty());
}

const test::Worker attempts("attempts", [](const std::string& input, const headless::Say& say) {
  const DeviceCaps caps = caps_of_verdicts();
  VerdictStore store(path_of(input.substr(0, input.find('\n'))), caps);
  say(std::to_string(store.begin_attempt(kernel_kinds(caps)[0]).value()));
  test::hang();
  return true;
});

// However a process ends, its attempt is over; as long as it lives it is not. Its number is not
// asked for: another container may have that, too.
TEST_F(VerdictFiles, AProcessThatIsKilledLeavesItsAttempt) {
  if (const auto why = test::why_no_worker()) GTEST_SKIP() << *why;
  std::filesystem::create_directories(file_.parent_path());
  const KernelKind kind = verdicts_[0].kind;
  static volatile std::sig_atomic_t stop = 0;
  VerdictStore store(file_, caps_);
  attempts.run({.on_line =
                    [&](std::string_view count) {
                      EXPECT_EQ(count, "1");
                      EXPECT_EQ(*store.begin_attempt(kind), 1u);
                      const Verdict untested{.kind = kind};
                      EXPECT_TRUE(store.add(std::span(&untested, 1)));
                      stop = 1;
                    },
                .stop = &stop},
               utf8(file_));
  EXPECT_EQ(stop, 1);
  EXPECT_EQ(*store.begin_attempt(kind), 2u);
}

#ifndef _WIN32
TEST_F(VerdictFiles, StandInAFolderOfTheOwnersAndAreNoLinks) {
  ASSERT_TRUE(save_verdicts(file_, caps_, verdicts_));
  EXPECT_EQ(std::filesystem::status(file_.parent_path()).permissions(),
            std::filesystem::perms::owner_all);
  const std::filesystem::path elsewhere = file_.parent_path() / "elsewhere";
  std::filesystem::rename(file_, elsewhere);
  std::filesystem::create_symlink(elsewhere, file_);
  EXPECT_FALSE(load_verdicts(file_, caps_));
  EXPECT_FALSE(save_verdicts(file_, caps_, {}));
  EXPECT_FALSE(VerdictStore(file_, caps_).add(verdicts_));
  EXPECT_EQ(load_verdicts(elsewhere, caps_)->size(), verdicts_.size());
}
#endif

TEST_F(VerdictFiles, OnlyFilesOfVerdictsAreReplaced) {
  ASSERT_TRUE(save_verdicts(file_, caps_, verdicts_));
  DeviceCaps other = caps_;
  other.driver_version = 8;
  ASSERT_TRUE(VerdictStore(file_, other).add({}));
  EXPECT_TRUE(load_verdicts(file_, other));
  for (const char* text : {"no verdicts", "{}", "[]"}) {
    write(text);
    const auto added = VerdictStore(file_, caps_).add(verdicts_);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().status, Status::io_error);
    EXPECT_EQ(read(), text);
  }
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);  // cannot be read
  EXPECT_FALSE(VerdictStore(file_, caps_).add(verdicts_));
  EXPECT_TRUE(std::filesystem::is_directory(file_));
}

TEST_F(VerdictFiles, HoldForOneDeviceAndDriver) {
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

TEST_F(VerdictFiles, AreRefusedIfTheyAreAnythingElse) {
  ASSERT_TRUE(save_verdicts(file_, caps_, verdicts_));
  const std::string good = read();
  for (std::size_t bytes = 1; bytes + 1 < good.size(); bytes += 7) {
    write(good.substr(0, bytes));
    EXPECT_FALSE(load_verdicts(file_, caps_)) << bytes;
  }
  EXPECT_EQ(parse_verdict_file("{\"of\": ", caps_).error().message, "not JSON, from byte 8 on");
  EXPECT_EQ(parse_verdict_file("[]", caps_).error().message,
            "not a file of verdicts: a member is missing, or of another type");
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
  refused("\"k\": 16,", "\"k\": -1,");
  refused("\"k\": 16,", "\"k\": 4294967296,");
  refused("\"k\": 16,", "");
  refused("\"a_in_rows\": 0", "\"a_in_rows\": false");
  refused("\"code_run\": 0", "\"code_run\": -1");
  refused("\"version\": 6", "\"version\": " + std::string(200000, '[') + std::string(200000, ']'));
  write("[]");
  EXPECT_FALSE(load_verdicts(file_, caps_));
  write(std::string(2 << 20, ' '));
  EXPECT_FALSE(load_verdicts(file_, caps_));
}

// save_verdicts() writes only files that load_verdicts() reads.
TEST_F(VerdictFiles, AreNotWrittenIfTheyCannotBeRead) {
  ASSERT_TRUE(save_verdicts(file_, caps_, verdicts_));
  const std::string before = read();
  const auto refused = [&](const std::vector<Verdict>& verdicts, std::string_view why) {
    const auto saved = save_verdicts(file_, caps_, verdicts);
    ASSERT_FALSE(saved) << why;
    EXPECT_EQ(saved.error().status, Status::invalid_argument);
    EXPECT_NE(saved.error().message.find(why), std::string::npos) << saved.error().message;
    EXPECT_EQ(read(), before);
  };
  std::vector<Verdict> wrong = verdicts_;
  wrong[0].detail = std::string(1 << 20, 'x');
  refused(wrong, "at most 1048576 are read");
  wrong = verdicts_;
  wrong[0].kind.loop = MainLoop::khr_ring;  // khr's kinds speak for it
  refused(wrong, "loop is 'khr_ring'");
}

TEST_F(VerdictFiles, MayNotBeWritable) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "made") << "a file, no folder";
  const auto saved = save_verdicts(file_, caps_, verdicts_);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().status, Status::io_error);
}

// Each build and driver has its own, or they would replace one another's.
TEST_F(VerdictFiles, HaveADefaultName) {
  const std::filesystem::path file = default_verdict_file(caps_);
  EXPECT_TRUE(file.filename().string().starts_with("self-test-10de-2335-")) << file;
  EXPECT_EQ(file.parent_path().filename(), "vkgemm");
  EXPECT_EQ(default_verdict_file(caps_), file);
  caps_.driver_version = 8;
  EXPECT_NE(default_verdict_file(caps_), file);
}

}  // namespace
}  // namespace vkgemm
