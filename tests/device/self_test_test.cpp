// The self-test on a device: what it finds, what follows from it, and drivers that fail.
#include "vkgemm/self_test.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../set_environment.hpp"
#include "harness.hpp"
#include "kernels/main_loop.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

namespace fs = std::filesystem;

constexpr KernelKind plain_f32{.loop = MainLoop::fma, .input = DataType::f32};

// --- drivers that fail

// The faults of the next context's driver. A kind is submitted twice or more: first nothing but its
// pipelines, then its products.
struct {
  bool ignores_dispatches = false;
  bool forgets_a_workgroup = false;
  VkResult submit = VK_SUCCESS;
  VkResult wait = VK_SUCCESS;
  std::uint32_t good_submissions = 1;  // before submit and wait have an effect
  fs::path file;                       // that is read when something is submitted …
  std::string at_submit;               // … into this
  std::uint32_t submissions = 0;
} fault;

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

VKAPI_ATTR void VKAPI_CALL faulty_dispatch(VkCommandBuffer commands, std::uint32_t x,
                                           std::uint32_t y, std::uint32_t z) {
  if (fault.ignores_dispatches) return;
  vkCmdDispatch(commands, fault.forgets_a_workgroup && x != 0 ? x - 1 : x, y, z);
}
VKAPI_ATTR VkResult VKAPI_CALL faulty_submit(VkQueue queue, std::uint32_t count,
                                             const VkSubmitInfo* submits, VkFence fence) {
  if (!fault.file.empty()) fault.at_submit = read_file(fault.file);
  if (++fault.submissions > fault.good_submissions && fault.submit != VK_SUCCESS) {
    return fault.submit;
  }
  return vkQueueSubmit(queue, count, submits, fence);
}
// The queue is idle afterwards, whatever it says.
VKAPI_ATTR VkResult VKAPI_CALL faulty_wait(VkDevice device, std::uint32_t count,
                                           const VkFence* fences, VkBool32 all,
                                           std::uint64_t timeout) {
  const VkResult result = vkWaitForFences(device, count, fences, all, timeout);
  const bool fails = fault.submissions > fault.good_submissions && fault.wait != VK_SUCCESS;
  return fails ? fault.wait : result;
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL faulty_device_proc_addr(VkDevice device,
                                                                 const char* name) {
  if (std::strcmp(name, "vkCmdDispatch") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(faulty_dispatch);
  }
  if (std::strcmp(name, "vkQueueSubmit") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(faulty_submit);
  }
  if (std::strcmp(name, "vkWaitForFences") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(faulty_wait);
  }
  return vkGetDeviceProcAddr(device, name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL faulty_instance_proc_addr(VkInstance instance,
                                                                   const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(faulty_device_proc_addr);
  }
  return vkGetInstanceProcAddr(instance, name);
}

// --- contexts beside the runner's, on its device

class SelfTests : public testing::Test {
 protected:
  void SetUp() override {
    fault = {};
    folder_ = fs::temp_directory_path() /
              ("vkgemm_self_test_" + std::to_string(reinterpret_cast<std::uintptr_t>(&runner())) +
               "_" + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    file_ = folder_ / "verdicts.json";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Without what this machine or the list knows of the driver, unless a test asks for it.
  Result<Context> create(SelfTest self_test, bool with_knowledge = false) {
    self_test.read_default_file = self_test.use_trusted_list = with_knowledge;
    auto requirements =
        query_requirements(runner_->instance(), runner_->physical_device(), vkGetInstanceProcAddr);
    if (!requirements) return requirements.error();
    log_.clear();
    return Context::create({.instance = runner_->instance(),
                            .physical_device = runner_->physical_device(),
                            .device = runner_->device(),
                            .get_instance_proc_addr = faulty_instance_proc_addr,
                            .enabled_extensions = requirements->extensions(),
                            .enabled_features = requirements->features(),
                            .self_test = self_test,
                            .log = [this](LogLevel level, std::string_view message) {
                              if (level != LogLevel::info) log_.append(message).append("\n");
                              if (on_message_) on_message_();
                            }});
  }
  // A self-test of one kind only, on the runner's queue.
  SelfTest of(const KernelKind& kind) {
    kind_ = kind;
    return {.queue = runner_->queue(),
            .queue_family = runner_->queue_family(),
            .file = file_,
            .only = {&kind_, 1}};
  }

  headless::Runner* runner_ = &runner();
  fs::path folder_, file_;
  KernelKind kind_;
  std::string log_;
  std::function<void()> on_message_;
};

// What is in flight is never freed, so its device is never destroyed. The sanitizers leave these
// out.
class SelfTestsInFlight : public SelfTests {
 protected:
  SelfTestsInFlight() {
    static headless::Runner* const immortal = another_runner().release();
    runner_ = immortal;
  }
};

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
  expect_passed(create({.queue = runner().queue(),
                        .queue_family = runner().queue_family(),
                        .only = on_cpu() ? std::span(kinds) : std::span<KernelKind>()}),
                kinds);
  EXPECT_EQ(log_, "");
}

TEST_F(SelfTests, NightlyPassWhatACpuOffers) {
  if (!on_cpu()) GTEST_SKIP() << "not left out elsewhere";
  expect_passed(create({.queue = runner().queue(), .queue_family = runner().queue_family()}),
                kernel_kinds(caps()));
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
  self_test.only = {};
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

// The user's file is read, and never written.
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

// The file that an application leaves that died while a product was on the device, once and twice.
TEST_F(SelfTests, TheSecondProcessThatDiesIsAVerdict) {
  fault.file = file_;
  ASSERT_TRUE(succeeds(create(of(plain_f32))));
  const std::string once = fault.at_submit;
  std::ofstream(file_, std::ios::binary) << once;
  auto made = create(of(plain_f32));
  ASSERT_TRUE(succeeds(made));
  ASSERT_EQ(made->verdicts().size(), 1u);
  EXPECT_EQ(made->verdicts()[0].outcome, Outcome::passed);
  EXPECT_NE(log_.find("main loop fma, f32: a process ended, or gave up waiting"), std::string::npos)
      << log_;
  EXPECT_NE(fault.at_submit.find("\"count\": 2"), std::string::npos) << fault.at_submit;
  std::ofstream(file_, std::ios::binary) << fault.at_submit;
  made = create(of(plain_f32));
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
