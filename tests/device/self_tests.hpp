// self_tests.hpp: contexts with self-tests, and drivers that fail.
#pragma once

#include <volk.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "harness.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm::test {

namespace fs = std::filesystem;

inline constexpr KernelKind plain_f32{.loop = MainLoop::fma, .input = DataType::f32};

// The faults of the next context's driver. A kind is submitted twice or more: first nothing but its
// pipelines, then its products.
inline struct Fault {
  bool ignores_dispatches = false;
  bool forgets_a_workgroup = false;
  VkResult submit = VK_SUCCESS;
  VkResult wait = VK_SUCCESS;
  std::uint32_t good_submissions = 1;  // before submit and wait have an effect
  fs::path file;                       // that is read when something is submitted …
  std::string at_submit;               // … into this
  std::uint32_t submissions = 0;
} fault;

inline std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline VKAPI_ATTR void VKAPI_CALL faulty_dispatch(VkCommandBuffer commands, std::uint32_t x,
                                                  std::uint32_t y, std::uint32_t z) {
  if (fault.ignores_dispatches) return;
  vkCmdDispatch(commands, fault.forgets_a_workgroup && x != 0 ? x - 1 : x, y, z);
}
inline VKAPI_ATTR VkResult VKAPI_CALL faulty_submit(VkQueue queue, std::uint32_t count,
                                                    const VkSubmitInfo* submits, VkFence fence) {
  if (!fault.file.empty()) fault.at_submit = read_file(fault.file);
  if (++fault.submissions > fault.good_submissions && fault.submit != VK_SUCCESS) {
    return fault.submit;
  }
  return vkQueueSubmit(queue, count, submits, fence);
}
// The queue is idle afterwards, whatever it says.
inline VKAPI_ATTR VkResult VKAPI_CALL faulty_wait(VkDevice device, std::uint32_t count,
                                                  const VkFence* fences, VkBool32 all,
                                                  std::uint64_t timeout) {
  const VkResult result = vkWaitForFences(device, count, fences, all, timeout);
  const bool fails = fault.submissions > fault.good_submissions && fault.wait != VK_SUCCESS;
  return fails ? fault.wait : result;
}
inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL faulty_device_proc_addr(VkDevice device,
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
inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL faulty_instance_proc_addr(VkInstance instance,
                                                                          const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(faulty_device_proc_addr);
  }
  return vkGetInstanceProcAddr(instance, name);
}

// Contexts on the runner's device, in addition to the runner's own.
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
  // A self-test on the runner's queue, of what plans want.
  SelfTest lent() const {
    return {.queue = runner_->queue(), .queue_family = runner_->queue_family()};
  }
  // A self-test of one kind, in create().
  SelfTest of(const KernelKind& kind) {
    kind_ = kind;
    SelfTest self_test = lent();
    self_test.file = file_;
    self_test.only = {&kind_, 1};
    return self_test;
  }

  headless::Runner* runner_ = &runner();
  fs::path folder_, file_;
  KernelKind kind_;
  std::string log_;
  std::function<void()> on_message_;
};

// Resources in flight are never freed, so their device is never destroyed. The sanitizers leave
// these out.
class SelfTestsInFlight : public SelfTests {
 protected:
  SelfTestsInFlight() {
    static headless::Runner* const immortal = another_runner().release();
    runner_ = immortal;
  }
};

}  // namespace vkgemm::test
