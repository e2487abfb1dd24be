// Tests the file of a self-test: its verdicts and attempts, and files that a test must not change.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "../set_environment.hpp"
#include "kernels/main_loop.hpp"
#include "self_tests.hpp"

namespace vkgemm::test {
namespace {

// create() reads the user's file, and never writes it.
TEST_F(SelfTests, ReadTheFileOfTheUser) {
#ifdef _WIN32
  const char* const variable = "LOCALAPPDATA";
#else
  const char* const variable = "XDG_CACHE_HOME";
#endif
  const char* const old = std::getenv(variable);
  const std::string kept = old != nullptr ? old : "";
  set_environment(variable, folder_.string().c_str());
  const fs::path file = default_verdict_file(caps());
  const Verdict verdict{.kind = plain_f32, .outcome = Outcome::wrong_result, .detail = "13"};
  ASSERT_TRUE(save_verdicts(file, caps(), {&verdict, 1}));
  const std::string content = read_file(file);
  const auto has_it = [&](const Result<Context>& made) {
    return std::ranges::find(made->verdicts(), verdict) != made->verdicts().end();
  };
  auto made = create({}, true);
  ASSERT_TRUE(succeeds(made));
  EXPECT_TRUE(has_it(made));
  EXPECT_NE(log_.find("13"), std::string::npos) << log_;
  made = create({});
  ASSERT_TRUE(succeeds(made));
  EXPECT_FALSE(has_it(made));
  set_environment("VKGEMM_VERDICTS", "0");
  made = create({}, true);
  set_environment("VKGEMM_VERDICTS");
  ASSERT_TRUE(succeeds(made));
  EXPECT_FALSE(has_it(made));
  // A kind that is named is tried, whatever the file says.
  SelfTest one = of(plain_f32);
  one.file.clear();
  made = create(one, true);
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  EXPECT_EQ(read_file(file), content);
  set_environment(variable, kept.c_str());
}

TEST_F(SelfTests, VerdictsAreKeptForTheDriver) {
  auto made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  const std::string kept = read_file(file_);
  // Not tried again, and known without a queue.
  fault.ignores_dispatches = true;
  made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  made = create({.file = file_});
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(log_, "");
  // A file of another driver is as good as none.
  std::string other = kept;
  other.insert(other.find("\"driver_version\": ") + 18, "1");
  std::ofstream(file_, std::ios::binary) << other;
  made = create({.file = file_});
  ASSERT_TRUE(succeeds(made));
  EXPECT_TRUE(made->verdicts().empty());
  EXPECT_NE(log_.find("driver_version"), std::string::npos) << log_;
  fault = {};
  ASSERT_TRUE(succeeds(create(of(plain_f32))));
  EXPECT_EQ(read_file(file_), kept);
}

// The file that an application leaves that died while a product was on the device, once and twice.
TEST_F(SelfTests, TheSecondProcessThatDiesIsAVerdict) {
  const auto dies = [&] {
    fault.file = file_;
    const auto made = create(of(plain_f32));
    ASSERT_TRUE(succeeds(made));
    ASSERT_EQ(made->verdicts().size(), 1u);
    EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  };
  dies();
  std::ofstream(file_, std::ios::binary) << fault.at_submit;
  dies();
  EXPECT_NE(log_.find("main loop fma, f32: a process ended, or gave up waiting"), std::string::npos)
      << log_;
  EXPECT_NE(fault.at_submit.find("\"count\": 2"), std::string::npos) << fault.at_submit;
  std::ofstream(file_, std::ios::binary) << fault.at_submit;
  const auto made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::crashed);
}

// Compiling may take long, and whoever ends a process then does not accuse the kernel.
TEST_F(SelfTests, WhatIsNotOnTheDeviceIsNoAttempt) {
  fault.submit = VK_ERROR_OUT_OF_HOST_MEMORY;
  fault.good_submissions = 0;
  fault.file = file_;
  ASSERT_TRUE(succeeds(create(of(plain_f32))));
  EXPECT_EQ(fault.submissions, 1u);
  EXPECT_EQ(fault.at_submit, "");
}

// A busy machine is no fault of the kernel: the context goes without the kind, but only the second
// time is kept.
TEST_F(SelfTestsInFlight, TheSecondTimeoutIsAVerdict) {
  for (int i = 1; i <= 3; ++i) {
    fault = {.wait = VK_TIMEOUT};
    const auto made = create(of(plain_f32));
    ASSERT_TRUE(succeeds(made));
    ASSERT_EQ(made->verdicts().size(), 1u);
    EXPECT_EQ(made->verdicts()[0].outcome, Outcome::timed_out);
    EXPECT_NE(log_.find("main loop fma, f32: failed the self-test"), std::string::npos) << log_;
    EXPECT_EQ(load_verdicts(file_, caps()).value().size(), i == 1 ? 0u : 1u);
    EXPECT_EQ(fault.submissions, i == 3 ? 0u : 2u) << "what is known is not tried";
  }
}

TEST_F(SelfTestsInFlight, ATimeoutIsForgottenAfterASuccess) {
  fault.wait = VK_TIMEOUT;
  ASSERT_TRUE(succeeds(create(of(plain_f32))));
  EXPECT_NE(read_file(file_).find("\"trying\""), std::string::npos);
  fault = {};
  const auto made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  EXPECT_EQ(read_file(file_).find("\"trying\""), std::string::npos);
}

// The verdicts that others found stay, also while this one tries.
TEST_F(SelfTests, ProcessesShareAFile) {
  const Verdict others{.kind = {.loop = MainLoop::fma, .input = DataType::f16},
                       .outcome = Outcome::passed};
  ASSERT_TRUE(save_verdicts(file_, caps(), std::span(&others, 1)));
  fault.file = file_;
  ASSERT_TRUE(succeeds(create(of(plain_f32))));
  const auto kept = load_verdicts(file_, caps());
  ASSERT_TRUE(succeeds(kept));
  EXPECT_EQ(kept->size(), 2u);
  EXPECT_NE(fault.at_submit.find("\"outcome\": \"passed\""), std::string::npos) << fault.at_submit;
}

TEST_F(SelfTests, AFileThatCannotBeWrittenIsAWarning) {
  fs::create_directories(folder_);
  SelfTest self_test = of(plain_f32);
  self_test.file = folder_;  // a folder
  const auto made = create(self_test);
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  EXPECT_NE(log_.find("verdicts not saved"), std::string::npos) << log_;
}

TEST_F(SelfTests, AnotherFileIsLeftAlone) {
  fs::create_directories(folder_);
  std::ofstream(file_) << "no verdicts";
  const auto made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  EXPECT_NE(log_.find("verdicts not saved"), std::string::npos) << log_;
  EXPECT_EQ(read_file(file_), "no verdicts");
}

}  // namespace
}  // namespace vkgemm::test
