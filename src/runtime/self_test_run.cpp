#include "runtime/self_test_run.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "device/host_buffer.hpp"
#include "runtime/context_impl.hpp"
#include "self_test/self_test.hpp"

namespace vkgemm {
namespace {

constexpr VkDeviceSize span_alignment = 256;

VkDeviceSize aligned(VkDeviceSize bytes) {
  return (bytes + span_alignment - 1) / span_alignment * span_alignment;
}

// How a product ended that gave no result.
struct Failure {
  Outcome outcome = Outcome::driver_error;
  Error error;
};

Failure failure(const Error& error) {
  // Memory is a matter of what else runs.
  const bool no_memory =
      error.status == Status::out_of_host_memory || error.status == Status::out_of_device_memory;
  return {error.status == Status::device_lost ? Outcome::device_lost
          : error.vk_result == VK_TIMEOUT     ? Outcome::timed_out
          : no_memory                         ? Outcome::untested
                                              : Outcome::driver_error,
          error};
}

// Buffer, commands and fence of one product.
class Submission {
 public:
  Submission(const SelfTestDevice& device, VkDevice handle, const SelfTest& options)
      : device_(device),
        vk_(device.functions),
        handle_(handle),
        options_(options),
        buffer_(device.functions, handle) {}
  ~Submission() {
    if (in_flight_) {  // the device may still use all of it
      buffer_.abandon();
      return;
    }
    vk_.vkDestroyFence(handle_, fence_, nullptr);
    vk_.vkDestroyCommandPool(handle_, pool_, nullptr);
  }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  Result<void> allocate(VkDeviceSize bytes);
  Result<void> run(const Plan& plan, const Operands& operands);

  std::byte* mapped() const noexcept { return mapped_; }
  VkDeviceAddress address() const noexcept { return address_; }
  bool in_flight() const noexcept { return in_flight_; }

 private:
  Result<VkCommandBuffer> begin();

  const SelfTestDevice& device_;
  const DeviceFunctions& vk_;
  VkDevice handle_;
  const SelfTest& options_;
  HostBuffer buffer_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::byte* mapped_ = nullptr;
  VkDeviceAddress address_ = 0;
  bool in_flight_ = false;
};

Result<void> Submission::allocate(VkDeviceSize bytes) {
  auto allocated = buffer_.allocate(device_.memory, bytes + span_alignment);
  if (!allocated) return allocated;
  address_ = aligned(buffer_.address());
  mapped_ = buffer_.mapped() + (address_ - buffer_.address());
  return {};
}

Result<VkCommandBuffer> Submission::begin() {
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = options_.queue_family;
  VkResult result = vk_.vkCreateCommandPool(handle_, &pool_info, nullptr, &pool_);
  if (result != VK_SUCCESS) return driver_error("vkCreateCommandPool", result);
  VkCommandBufferAllocateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffer_info.commandPool = pool_;
  buffer_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  buffer_info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  result = vk_.vkAllocateCommandBuffers(handle_, &buffer_info, &commands);
  if (result != VK_SUCCESS) return driver_error("vkAllocateCommandBuffers", result);
  VkFenceCreateInfo fence_info{};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  result = vk_.vkCreateFence(handle_, &fence_info, nullptr, &fence_);
  if (result != VK_SUCCESS) return driver_error("vkCreateFence", result);
  VkCommandBufferBeginInfo begin_info{};
  begin_info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin_info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  result = vk_.vkBeginCommandBuffer(commands, &begin_info);
  if (result != VK_SUCCESS) return driver_error("vkBeginCommandBuffer", result);
  return commands;
}

Result<void> Submission::run(const Plan& plan, const Operands& operands) {
  const Result<VkCommandBuffer> commands = begin();
  if (!commands) return commands.error();
  if (auto recorded = plan.record(*commands, operands); !recorded) return recorded;
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vk_.vkCmdPipelineBarrier(*commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  VkResult result = vk_.vkEndCommandBuffer(*commands);
  if (result != VK_SUCCESS) return driver_error("vkEndCommandBuffer", result);
  VkSubmitInfo submission{};
  submission.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submission.commandBufferCount = 1;
  submission.pCommandBuffers = &*commands;
  result = vk_.vkQueueSubmit(options_.queue, 1, &submission, fence_);
  if (result != VK_SUCCESS) return driver_error("vkQueueSubmit", result);
  constexpr std::uint64_t nanoseconds = 1'000'000;
  result = vk_.vkWaitForFences(handle_, 1, &fence_, VK_TRUE, options_.timeout_ms * nanoseconds);
  // A wait that fails says nothing of the product; on a lost device nothing runs.
  in_flight_ = result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST;
  if (result == VK_TIMEOUT) {
    return Error{Status::driver_error, concat("not done after ", options_.timeout_ms, " ms"),
                 VK_TIMEOUT};
  }
  if (result != VK_SUCCESS) return driver_error("vkWaitForFences", result);
  return {};
}

class Examiner {
 public:
  Examiner(const ContextCreateInfo& info, const SelfTestDevice& device)
      : info_(info), device_(device) {}

  // A context for this alone, that knows of no verdicts, so that nothing of it stays behind.
  Result<void> init() {
    DeviceCaps caps = device_.caps;
    caps.verdicts.clear();
    caps.denials.clear();
    PipelineCacheInfo pipelines = device_.pipelines;
    pipelines.application_cache = VK_NULL_HANDLE;
    pipelines.file.clear();
    impl_ =
        std::make_shared<Context::Impl>(info_, device_.functions, device_.memory, std::move(caps),
                                        std::move(pipelines), std::vector<TuningTable>{});
    return impl_->pipelines.init();
  }

  // The error that ended the device or the wait, if any, stands in `fatal`.
  Verdict examine(const KernelKind& kind, std::optional<Error>& fatal) {
    Verdict verdict{.kind = kind};
    const Result<Config> config = self_test_config(kind, device_.caps);
    if (!config) {
      verdict.detail = config.error().message;
      return verdict;
    }
    verdict.config = to_string(*config);
    for (const Problem& problem : self_test_problems(kind, *config, device_.caps)) {
      const Result<std::optional<std::string>> wrong = compute(problem, *config);
      if (!wrong) {
        const Failure how = failure(wrong.error());
        verdict.outcome = how.outcome;
        verdict.detail = how.error.message;
        if (left_in_flight_ || how.outcome == Outcome::device_lost) {
          fatal = how.error;
          fatal->message = concat("self-test, ", to_string(kind), ": ", fatal->message);
          // The device may still use the pipelines: nobody will ever know when it doesn't.
          if (left_in_flight_) new std::shared_ptr<Context::Impl>(impl_);
        }
        return verdict;
      }
      if (*wrong) {
        verdict.outcome = Outcome::wrong_result;
        verdict.detail = **wrong;
        return verdict;
      }
    }
    verdict.outcome = Outcome::passed;
    return verdict;
  }

 private:
  Result<std::optional<std::string>> compute(const Problem& problem, const Config& config) {
    const Result<Plan> plan = impl_->make_plan(impl_, problem, &config);
    if (!plan) return plan.error();
    const ExactProduct product(problem);
    const VkDeviceSize a_bytes = aligned(product.a().size());
    const VkDeviceSize b_bytes = aligned(product.b().size());
    Submission submission(device_, info_.device, info_.self_test);
    auto done = submission.allocate(a_bytes + b_bytes + aligned(product.d_bytes()));
    if (!done) return done.error();
    std::byte* const memory = submission.mapped();
    std::memcpy(memory, product.a().data(), product.a().size());
    std::memcpy(memory + a_bytes, product.b().data(), product.b().size());
    std::byte* const d = memory + a_bytes + b_bytes;
    std::memset(d, std::to_integer<int>(ExactProduct::poison), product.d_bytes());
    const VkDeviceAddress address = submission.address();
    const Operands operands{.a = {address, product.a().size()},
                            .b = {address + a_bytes, product.b().size()},
                            .d = {address + a_bytes + b_bytes, product.d_bytes()}};
    done = submission.run(*plan, operands);
    left_in_flight_ = submission.in_flight();
    if (!done) return done.error();
    return product.why_wrong({d, product.d_bytes()});
  }

  const ContextCreateInfo& info_;
  const SelfTestDevice& device_;
  std::shared_ptr<Context::Impl> impl_;
  bool left_in_flight_ = false;
};

Result<void> check_queue(const ContextCreateInfo& info, const SelfTestDevice& device) {
  std::uint32_t count = 0;
  const auto query = device.instance_functions.vkGetPhysicalDeviceQueueFamilyProperties;
  query(info.physical_device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  query(info.physical_device, &count, families.data());
  const std::uint32_t family = info.self_test.queue_family;
  if (family >= families.size()) {
    return invalid_argument(concat("self_test.queue_family is ", family, ", the device has ",
                                   families.size(), " families"));
  }
  if ((families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    return invalid_argument(
        concat("self_test.queue_family is ", family, ", whose queues cannot compute"));
  }
  return {};
}

}  // namespace

Result<std::vector<Verdict>> collect_verdicts(const ContextCreateInfo& info,
                                              const SelfTestDevice& device) {
  const SelfTest& options = info.self_test;
  const DeviceCaps& caps = device.caps;
  const Log log(info.log);
  // One at a time: an attempt under our number is then left from an earlier process.
  static std::mutex one_at_a_time;
  std::unique_lock lock(one_at_a_time, std::defer_lock);
  if (!options.file.empty()) lock.lock();
  std::vector<Verdict> verdicts(options.verdicts.begin(), options.verdicts.end());
  const auto find = [&](const KernelKind& kind) {
    return std::ranges::find(verdicts, kind, &Verdict::kind);
  };
  std::vector<Attempt> attempts;
  if (!options.file.empty()) {
    const Result<VerdictFile> read = read_verdict_file(options.file, caps);
    if (!read) {
      log.write(LogLevel::warning,
                "verdicts of another self-test are not used: " + read.error().message);
    } else {
      for (const Verdict& verdict : read->verdicts) {
        if (find(verdict.kind) == verdicts.end()) verdicts.push_back(verdict);
      }
      attempts = read->attempts;
    }
  }
  if (options.queue == VK_NULL_HANDLE) return verdicts;

  if (auto checked = check_queue(info, device); !checked) return checked.error();
  const auto denied = [&](const KernelKind& kind) {
    return std::ranges::any_of(caps.denials,
                               [&](const Denial& denial) { return covers(denial, kind); });
  };
  std::vector<KernelKind> kinds(options.only.begin(), options.only.end());
  if (kinds.empty()) {
    kinds = kernel_kinds(caps);
    std::erase_if(kinds, denied);
  }
  std::erase_if(kinds, [&](const KernelKind& kind) { return find(kind) != verdicts.end(); });
  if (kinds.empty()) return verdicts;

  const std::size_t known = verdicts.size();
  bool saving = !options.file.empty();
  const auto save = [&](const std::optional<Attempt>& attempt) {
    if (!saving) return;
    // Another process may have written meanwhile. A file that cannot be read was warned of above.
    const Result<VerdictFile> read = read_verdict_file(options.file, caps, is_running);
    VerdictFile content = read ? *read : VerdictFile{};
    merge(content, std::span(verdicts).subspan(known), own_process(), attempt);
    const Result<void> saved = write_verdict_file(options.file, caps, content);
    if (saved) return;
    log.write(LogLevel::warning, "verdicts not saved: " + saved.error().message);
    saving = false;
  };
  // The attempt that the file holds if the process doesn't come back.
  const auto attempt_at = [&](const KernelKind& kind) {
    Attempt attempt{.kind = kind, .process = own_process()};
    for (const Attempt& earlier : attempts) {
      if (earlier.kind != kind || another_is_running(earlier.process)) continue;
      attempt.count = std::max(attempt.count, earlier.count + 1);
      log.write(LogLevel::warning, concat("self-test, ", to_string(kind),
                                          ": a process ended while it tried this; trying again"));
    }
    return attempt;
  };
  Examiner examiner(info, device);
  if (auto ready = examiner.init(); !ready) return ready.error();
  for (const KernelKind& kind : kinds) {
    save(attempt_at(kind));
    std::optional<Error> fatal;
    verdicts.push_back(examiner.examine(kind, fatal));
    const Verdict& verdict = verdicts.back();
    if (verdict.failed()) {
      log.write(LogLevel::warning, why_failed(verdict, caps));
    } else if (verdict.outcome == Outcome::untested) {
      log.write(LogLevel::warning,
                concat("self-test, ", to_string(kind), ": untested: ", verdict.detail));
    }
    if (fatal) {
      save(std::nullopt);
      return *fatal;
    }
  }
  save(std::nullopt);
  return verdicts;
}

}  // namespace vkgemm
