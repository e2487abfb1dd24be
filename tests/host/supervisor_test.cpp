// Tests of work in a process of its own: its lines, its misdeeds, and how it ends.
#include "headless/supervisor.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test_devices.hpp"
#include "worker.hpp"

namespace vkgemm::headless {
namespace {

using test::contains;

class Supervisor : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = test::why_no_worker()) GTEST_SKIP() << *why;
  }
};

const test::Worker speaks("speaks", [](const std::string& input, const Say& say) {
  say(std::to_string(input.size()));
  for (int i = 0; i < 5000; ++i) say("line " + std::to_string(i));
  return true;
});

TEST_F(Supervisor, HearsEveryLine) {
  std::vector<std::string> heard;
  // More than a pipe holds.
  const WorkerEnd end =
      speaks.run({.on_line = [&](std::string_view line) { heard.emplace_back(line); }},
                 std::string(1'000'000, 'x'));
  EXPECT_EQ(end.ending, Ending::finished) << end.reason;
  ASSERT_EQ(heard.size(), 5001u);
  EXPECT_EQ(heard.front(), "1000001") << "a line end is added";
  EXPECT_EQ(heard.back(), "line 4999");
}

const test::Worker misbehaves("misbehaves", [](const std::string& misdeed, const Say& say) {
  say("begun");
  std::puts("a layer says");  // no protocol line: the supervisor skips it
  if (misdeed == "crash\n") test::crash();
  if (misdeed == "exit\n") std::_Exit(7);
  if (misdeed == "hang\n") test::hang();
  return false;
});

TEST_F(Supervisor, SurvivesWhatItsWorkDoes) {
  const auto ends = [](const std::string& misdeed) {
    std::string last;
    const WorkerEnd end = misbehaves.run({.on_line = [&](std::string_view line) { last = line; },
                                          .patience_s = misdeed == "hang" ? 1.0 : 60.0},
                                         misdeed);
    EXPECT_EQ(last, "begun") << misdeed;
    return end;
  };
  const WorkerEnd killed = ends("crash");
  EXPECT_EQ(killed.ending, Ending::died);
  EXPECT_TRUE(contains(killed.reason, test::crash_reason)) << killed.reason;
  EXPECT_EQ(ends("exit").reason, "exit code 7");
  EXPECT_EQ(ends("return").ending, Ending::died);
  const WorkerEnd hung = ends("hang");
  EXPECT_EQ(hung.ending, Ending::hung);
  EXPECT_TRUE(contains(hung.reason, "no answer")) << hung.reason;
}

#ifndef _WIN32
// A process that ignores SIGCHLD never learns how its children end. That counts as no success.
TEST_F(Supervisor, TakesAnUnseenEndForNoSuccess) {
  const auto handler = std::signal(SIGCHLD, SIG_IGN);
  const WorkerEnd end = misbehaves.run({.on_line = [](std::string_view) {}}, "crash");
  std::signal(SIGCHLD, handler);
  EXPECT_EQ(end.ending, Ending::died);
  EXPECT_TRUE(contains(end.reason, "waitpid: ")) << end.reason;
}
#endif

const test::Worker waits("waits", [](const std::string&, const Say& say) {
  std::raise(SIGINT);  // not for this process to answer
  say("begun");
  test::hang();
  return true;
});

TEST_F(Supervisor, StopsWhenItIsAskedTo) {
  static volatile std::sig_atomic_t stop = 0;
  stop = 0;
  long child = 0;
  // The child is not to do what this process does about SIGTERM.
  const auto handler = std::signal(SIGTERM, SIG_IGN);
  const auto begin = std::chrono::steady_clock::now();
  const WorkerEnd end = waits.run({.on_line = [](std::string_view) { stop = 1; },
                                   .on_start = [&](long pid) { child = pid; },
                                   .stop = &stop});
  std::signal(SIGTERM, handler);
  EXPECT_EQ(end.ending, Ending::stopped);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  EXPECT_FALSE(test::is_running(child));
}

TEST_F(Supervisor, LeavesNobodyWhenTheListenerThrows) {
  long child = 0;
  const auto run = [&] {
    waits.run({.on_line = [](std::string_view) { throw std::runtime_error("disk full"); },
               .on_start = [&](long pid) { child = pid; }});
  };
  EXPECT_THROW(run(), std::runtime_error);
  ASSERT_GT(child, 0);
  EXPECT_FALSE(test::is_running(child));
}

// A supervisor that is killed takes the process that works for it along.
const test::Worker supervises("supervises", [](const std::string&, const Say& say) {
  waits.run({.on_line = [](std::string_view) { test::crash(); },
             .on_start = [&](long pid) { say(std::to_string(pid)); }});
  return true;
});

TEST_F(Supervisor, IsNotSurvivedByItsWorker) {
  long child = 0;
  const WorkerEnd end = supervises.run(
      {.on_line = [&](std::string_view line) { child = std::stol(std::string(line)); }});
  EXPECT_TRUE(contains(end.reason, test::crash_reason)) << end.reason;
  ASSERT_GT(child, 0);
  for (int i = 0; i < 500 && test::is_running(child); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(test::is_running(child));
}

}  // namespace
}  // namespace vkgemm::headless
