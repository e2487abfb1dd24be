// Tests the self-test on a device: its verdicts, their effect, and drivers that fail.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/main_loop.hpp"
#include "self_tests.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

// The product of the whole: nothing that this device offers is wrong.
void expect_passed(const Result<Context>& made, const std::vector<KernelKind>& kinds) {
  ASSERT_TRUE(succeeds(made));
  std::vector<KernelKind> tried;
  for (const Verdict& verdict : made->verdicts()) {
    tried.push_back(verdict.kind);
    EXPECT_EQ(verdict.outcome, Outcome::passed)
        << to_string(verdict.kind) << ": " << verdict.detail;
    std::istringstream configs(verdict.config);
    for (std::string config; configs >> config;) EXPECT_TRUE(parse_config(config)) << config;
  }
  EXPECT_EQ(tried, kinds);
}

// On a CPU, which compiles for long, three kinds.
TEST_F(SelfTests, PassWhatTheDeviceOffers) {
  std::vector<KernelKind> kinds = kernel_kinds(caps());
  if (on_cpu()) {
    std::erase_if(kinds, [](const KernelKind& kind) {
      return kind != plain_f32 && (path_of(kind.loop) != Path::khr || *find_number(kind, "k") != 8);
    });
  }
  expect_passed(
      create({.queue = runner().queue(), .queue_family = runner().queue_family(), .only = kinds}),
      kinds);
  EXPECT_EQ(log_, "");
}

TEST_F(SelfTests, NightlyPassWhatACpuOffers) {
  if (!on_cpu()) GTEST_SKIP() << "not left out elsewhere";
  const std::vector<KernelKind> kinds = kernel_kinds(caps());
  expect_passed(
      create({.queue = runner().queue(), .queue_family = runner().queue_family(), .only = kinds}),
      kinds);
  EXPECT_EQ(log_, "");
}

// Fragments that another pipeline does not hold alike are no fault of the driver: they are not
// used, and nobody is warned.
TEST_F(SelfTests, WhatIsNotPromisedMayBeOtherwise) {
  std::vector<KernelKind> kinds = kernel_kinds(caps());
  std::erase_if(kinds, [](const KernelKind& kind) {
    return kind.loop != MainLoop::khr_direct || kind.input != DataType::f16;
  });
  if (kinds.empty()) GTEST_SKIP() << "no khr_direct here";
  fault.ignores_dispatches = true;
  for (int i = 0; i < 2; ++i) {  // the second time by the file
    const auto made = create(of(kinds.front()));
    ASSERT_TRUE(succeeds(made));
    ASSERT_EQ(made->verdicts().size(), 1u);
    EXPECT_EQ(made->verdicts()[0].outcome, Outcome::unusable);
    EXPECT_FALSE(made->verdicts()[0].failed());
    EXPECT_EQ(log_, "");
    for (const Config& config : small_configs(Path::khr, DataType::f16)) {
      if (config.main_loop() != MainLoop::khr_direct) continue;
      const auto plan = made->plan(gemm({64, 64, 64}), config);
      EXPECT_TRUE(fails_with(plan, Status::unsupported, {"khr_direct", "not usable"}));
    }
  }
}

// A process for interrupted.cmake to end, which names the file.
TEST_F(SelfTests, DISABLED_TryEverything) {
  SelfTest self_test = of(plain_f32);
  const std::vector<KernelKind> kinds = kernel_kinds(caps());
  self_test.only = kinds;
  const char* const file = std::getenv("VKGEMM_TEST_VERDICTS");
  if (file == nullptr) GTEST_SKIP() << "VKGEMM_TEST_VERDICTS names no file";
  self_test.file = file;
  ASSERT_TRUE(succeeds(create(self_test)));
  std::fputs(log_.c_str(), stderr);
}

TEST_F(SelfTests, NothingIsTriedUnlessAskedFor) {
  fault.submit = VK_ERROR_DEVICE_LOST;
  const auto made = create({.file = file_});
  ASSERT_TRUE(succeeds(made));
  EXPECT_TRUE(made->verdicts().empty());
  EXPECT_FALSE(fs::exists(file_));
}

// A lent queue without names of kinds: a plan tests those that it would use.
TEST_F(SelfTests, APlanTestsWhatItWants) {
  SelfTest self_test = lent();
  self_test.file = file_;
  auto made = create(self_test);
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(fault.submissions, 0u);
  const Problem problem = gemm({64, 64, 64}, DataType::f32);
  const auto plan = made->plan(problem);
  ASSERT_TRUE(succeeds(plan));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].kind.input, DataType::f32);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  const std::uint32_t submissions = fault.submissions;
  EXPECT_GT(submissions, 0u);
  ASSERT_TRUE(succeeds(made->plan(problem)));
  EXPECT_EQ(fault.submissions, submissions) << "what is known is not tried";
  EXPECT_EQ(load_verdicts(file_, caps()).value(),
            std::vector(made->verdicts().begin(), made->verdicts().end()));
  EXPECT_EQ(log_, "");
}

// A kind that fails is not chosen, and what would be chosen then is tested, too.
TEST_F(SelfTests, APlanGoesOnToTheNextKind) {
  if (!caps().khr.available) GTEST_SKIP() << "path khr: " << caps().khr.reason;
  const Problem problem = gemm({64, 64, 64});
  auto made = create(lent());
  ASSERT_TRUE(succeeds(made));
  fault.ignores_dispatches = true;
  const auto plan = made->plan(problem);
  EXPECT_TRUE(fails_with(plan, Status::unsupported, {"failed the self-test"}));
  EXPECT_GT(made->verdicts().size(), 1u) << plan.error().message;
  for (const Verdict& verdict : made->verdicts()) EXPECT_NE(verdict.outcome, Outcome::passed);
}

// The order of packed weights depends on verdicts, so packing tests what decides.
TEST_F(SelfTests, PackingTestsTheKindOfTheOrder) {
  Problem problem = gemm({64, 64, 64});
  problem.b.packing = Packing::packed_fragments;
  const auto trusted = context().packed_layout(problem, PackedOperand::b);
  if (!trusted) GTEST_SKIP() << trusted.error().message;
  auto made = create(lent());
  ASSERT_TRUE(succeeds(made));
  const auto layout = made->packed_layout(problem, PackedOperand::b);
  ASSERT_TRUE(succeeds(layout));
  EXPECT_EQ(layout->fingerprint, trusted->fingerprint);
  EXPECT_EQ(layout->bytes, trusted->bytes);
  ASSERT_FALSE(made->verdicts().empty());
  ASSERT_TRUE(succeeds(made->plan(problem)));
  for (const Verdict& verdict : made->verdicts()) {
    EXPECT_EQ(verdict.kind.input, DataType::f16);
    EXPECT_EQ(verdict.outcome, Outcome::passed) << verdict.detail;
  }
}

TEST_F(SelfTests, WhatFailedIsNotChosen) {
  if (!caps().khr.available) GTEST_SKIP() << "path khr: " << caps().khr.reason;
  std::vector<Verdict> verdicts;
  for (const KernelKind& kind : kernel_kinds(caps())) {
    if (kind.loop != MainLoop::khr || kind.input != DataType::f16) continue;
    verdicts.push_back({.kind = kind,
                        .outcome = Outcome::wrong_result,
                        .detail = "expected 12, got 13 at (3, 4)"});
  }
  const Problem problem = gemm({64, 64, 64});
  const auto count = [&](const Context& c) {
    const auto candidates = c.candidates(problem);
    EXPECT_TRUE(succeeds(candidates));
    return std::ranges::count_if(*candidates, [](const Candidate& candidate) {
      return candidate.config.path() == Path::khr;
    });
  };
  ASSERT_GT(count(context()), 0);
  const auto made = create({.verdicts = verdicts});
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(count(*made), 0);
  const std::string reason =
      "fragment " + std::to_string(*find_number(verdicts[0].kind, "m")) + "x";
  const Config config = small_configs(Path::khr, DataType::f16).front();
  EXPECT_TRUE(fails_with(made->plan(problem, config), Status::unsupported,
                         {reason, "failed the self-test on driver " + caps().driver_name,
                          "expected 12, got 13 at (3, 4)"}));
  const auto plan = made->plan(problem);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_NE(plan->config().path(), Path::khr);
  EXPECT_NE(
      plan->explain().find("refused: " + to_string(verdicts[0].kind) + ": failed the self-test"),
      std::string::npos)
      << plan->explain();
  EXPECT_EQ(made->verdicts().size(), verdicts.size());
}

TEST_F(SelfTests, WrongResultsAreSeen) {
  fault.ignores_dispatches = true;
  auto made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::wrong_result);
  EXPECT_NE(made->verdicts()[0].detail.find("got NaN at (0, 0)"), std::string::npos)
      << made->verdicts()[0].detail;
  EXPECT_NE(log_.find("main loop fma, f32: failed the self-test"), std::string::npos) << log_;
  const Config config = small_configs(Path::fma, DataType::f32).front();
  EXPECT_TRUE(fails_with(made->plan(gemm({64, 64, 64}, DataType::f32), config), Status::unsupported,
                         {"main loop fma, f32: failed the self-test"}));

  fault = {.forgets_a_workgroup = true};
  fs::remove(file_);
  made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::wrong_result);
}

// A kind that the device does not survive is not tried a second time, whether anybody could say so
// or not.
TEST_F(SelfTests, ALostDeviceIsAVerdict) {
  fault.submit = VK_ERROR_DEVICE_LOST;
  fault.file = file_;
  EXPECT_TRUE(
      fails_with(create(of(plain_f32)), Status::device_lost,
                 {"self-test, main loop fma, f32", "vkQueueSubmit", "VK_ERROR_DEVICE_LOST"}));
  EXPECT_NE(fault.at_submit.find("\"trying\""), std::string::npos) << fault.at_submit;
  EXPECT_EQ(fault.at_submit.find("\"outcome\""), std::string::npos) << fault.at_submit;
  const auto made = create(of(plain_f32));  // it would be lost again
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::device_lost);
  EXPECT_NE(log_.find("main loop fma, f32: failed the self-test"), std::string::npos) << log_;
  EXPECT_NE(log_.find("--fresh"), std::string::npos) << log_;
}

// A device that is lost before a kernel is on it was lost by somebody else.
TEST_F(SelfTests, ADeviceLostBeforeIsNoVerdict) {
  fault.submit = VK_ERROR_DEVICE_LOST;
  fault.good_submissions = 0;
  EXPECT_TRUE(fails_with(create(of(plain_f32)), Status::device_lost,
                         {"self-test, main loop fma, f32", "vkQueueSubmit"}));
  fault = {};
  const auto made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  EXPECT_EQ(log_.find("failed the self-test"), std::string::npos) << log_;
}

// The time that the queue and the driver's compiler need says nothing of a kind; and while the
// queue is busy nothing else is tried.
TEST_F(SelfTestsInFlight, ABusyQueueIsNoVerdict) {
  const KernelKind kinds[] = {plain_f32, {.loop = MainLoop::skinny, .input = DataType::f32}};
  SelfTest self_test = of(plain_f32);
  self_test.only = kinds;
  fault.wait = VK_TIMEOUT;
  fault.good_submissions = 0;
  auto made = create(self_test);
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::untested);
  EXPECT_NE(log_.find("the queue was still busy"), std::string::npos) << log_;
  EXPECT_EQ(load_verdicts(file_, caps()).value(), std::vector<Verdict>{});
  EXPECT_FALSE(made->verdicts()[0].failed());
}

TEST_F(SelfTestsInFlight, AWaitThatFailsIsAnError) {
  fault.wait = VK_ERROR_UNKNOWN;
  EXPECT_TRUE(fails_with(create(of(plain_f32)), Status::driver_error, {"vkWaitForFences"}));
}

// An application may do anything in its callback.
TEST_F(SelfTests, AMessageMayMakeAnotherContext) {
  fault.submit = VK_ERROR_UNKNOWN;
  int others = 0;
  on_message_ = [&] {
    if (others++ != 0) return;
    const std::string log = std::exchange(log_, {});
    EXPECT_TRUE(succeeds(create(of(plain_f32))));
    log_ = log;
  };
  ASSERT_TRUE(succeeds(create(of(plain_f32))));
  EXPECT_GE(others, 1);
}

TEST_F(SelfTests, NoMemoryIsNoVerdict) {
  for (const VkResult result : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY}) {
    fault.submit = result;
    const auto made = create(of(plain_f32));
    ASSERT_TRUE(succeeds(made));
    ASSERT_EQ(made->verdicts().size(), 1u);
    EXPECT_EQ(made->verdicts()[0].outcome, Outcome::untested);
    EXPECT_NE(made->verdicts()[0].detail.find("vkQueueSubmit"), std::string::npos);
    EXPECT_EQ(load_verdicts(file_, caps()).value(), std::vector<Verdict>{});
  }
}

TEST_F(SelfTests, ADriversErrorIsAVerdict) {
  fault.submit = VK_ERROR_UNKNOWN;
  const auto made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::driver_error);
  EXPECT_NE(made->verdicts()[0].detail.find("vkQueueSubmit"), std::string::npos);
}

TEST_F(SelfTests, NeedAQueueThatComputes) {
  SelfTest self_test = of(plain_f32);
  self_test.queue_family = 1000;
  EXPECT_TRUE(
      fails_with(create(self_test), Status::invalid_argument, {"self_test.queue_family is 1000"}));
}

}  // namespace
}  // namespace vkgemm::test
