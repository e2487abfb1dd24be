#include "runtime/self_test_run.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/environment.hpp"
#include "base/errors.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "device/caps_query.hpp"
#include "device/host_buffer.hpp"
#include "device/known_drivers.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/quantised.hpp"
#include "kernels/steps.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/plan_internal.hpp"
#include "self_test/self_test.hpp"
#include "self_test/verdict_store.hpp"

namespace vkgemm {
namespace {

constexpr VkDeviceSize span_alignment = 256;

VkDeviceSize aligned(VkDeviceSize bytes) {
  return (bytes + span_alignment - 1) / span_alignment * span_alignment;
}

Outcome outcome_of(const Error& error, bool was_on_device) {
  // A kernel that was not on the device did not lose it.
  if (error.status == Status::device_lost) {
    return was_on_device ? Outcome::device_lost : Outcome::untested;
  }
  // Memory is a matter of what else runs.
  const bool no_memory =
      error.status == Status::out_of_host_memory || error.status == Status::out_of_device_memory;
  return no_memory ? Outcome::untested : Outcome::driver_error;
}

// Makes what compute shaders wrote visible to a stage.
void record_barrier(const DeviceFunctions& vk, VkCommandBuffer commands, VkPipelineStageFlags stage,
                    VkAccessFlags access) {
  const VkMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                .pNext = nullptr,
                                .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                .dstAccessMask = access};
  vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, stage, 0, 1, &barrier, 0,
                          nullptr, 0, nullptr);
}

// Buffer, commands and fence of one submission.
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

  // Submits what `record` records and waits. False if it is not done after that time.
  template <class Record>
  Result<bool> run(std::uint64_t timeout_ms, const Record& record);

  std::byte* mapped() const noexcept { return mapped_; }
  VkDeviceAddress address() const noexcept { return address_; }
  // True if the device may still be at it.
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

template <class Record>
Result<bool> Submission::run(std::uint64_t timeout_ms, const Record& record) {
  const Result<VkCommandBuffer> commands = begin();
  if (!commands) return commands.error();
  if (Result<void> recorded = record(*commands); !recorded) return recorded.error();
  record_barrier(vk_, *commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  VkResult result = vk_.vkEndCommandBuffer(*commands);
  if (result != VK_SUCCESS) return driver_error("vkEndCommandBuffer", result);
  VkSubmitInfo submission{};
  submission.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submission.commandBufferCount = 1;
  submission.pCommandBuffers = &*commands;
  result = vk_.vkQueueSubmit(options_.queue, 1, &submission, fence_);
  if (result != VK_SUCCESS) return driver_error("vkQueueSubmit", result);
  constexpr std::uint64_t nanoseconds = 1'000'000;
  result = vk_.vkWaitForFences(handle_, 1, &fence_, VK_TRUE, timeout_ms * nanoseconds);
  // A wait that fails says nothing of the work; on a lost device nothing runs.
  in_flight_ = result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST;
  if (result != VK_SUCCESS && result != VK_TIMEOUT) return driver_error("vkWaitForFences", result);
  return result == VK_SUCCESS;
}

// How the test of a kind ended.
struct Examination {
  Verdict verdict;
  bool was_on_device = false;
  bool may_go_on = true;       // false: the queue is not known to be free
  std::optional<Error> fatal;  // the device is lost, or cannot be waited for
};

class Examiner {
 public:
  Examiner(const ContextCreateInfo& info, const SelfTestDevice& device)
      : info_(info), device_(device) {}

  // A context for this alone, so that nothing of it stays behind.
  Result<void> init() {
    DeviceCaps caps = trusting(device_.caps);
    PipelineCacheInfo pipelines = device_.pipelines;
    pipelines.application_cache = VK_NULL_HANDLE;
    pipelines.file.clear();
    impl_ =
        std::make_shared<Context::Impl>(info_, device_.functions, device_.memory, std::move(caps),
                                        std::move(pipelines), std::vector<TuningTable>{});
    return impl_->pipelines.init();
  }

  // Calls `on_device()` when nothing is left to do but to multiply.
  template <class OnDevice>
  Examination examine(const KernelKind& kind, const OnDevice& on_device) {
    Examination out{.verdict = {.kind = kind}};
    const Result<void> done = examine(kind, on_device, out);
    if (done) return out;
    out.verdict.outcome = outcome_of(done.error(), out.was_on_device);
    out.verdict.detail = done.error().message;
    if (left_in_flight_ || done.error().status == Status::device_lost) {
      out.fatal = done.error();
      out.fatal->message = concat("self-test, ", to_string(kind), ": ", out.fatal->message);
    }
    return out;
  }

 private:
  template <class OnDevice>
  Result<void> examine(const KernelKind& kind, const OnDevice& on_device, Examination& out) {
    Verdict& verdict = out.verdict;
    const Result<std::vector<Config>> configs = self_test_configs(kind, device_.caps);
    if (!configs) {
      verdict.detail = configs.error().message;
      return {};
    }
    std::vector<Plan> plans;
    std::vector<std::optional<Plan>> packings;  // of a quantised B
    for (const Config& config : *configs) {
      verdict.config += concat(verdict.config.empty() ? "" : " ", to_string(config));
      for (const Trial& trial : self_test_trials(kind, config, device_.caps)) {
        const Problem& problem = trial.problem;
        Result<Plan> plan = impl_->make_plan(impl_, problem, &trial.config);
        if (!plan) return plan.error();
        plans.push_back(std::move(*plan));
        std::optional<Plan>& packing = packings.emplace_back();
        if (!problem.quantised_b) continue;
        Problem source = problem;
        source.b = {.type = source.b.type};
        Result<Plan> made = impl_->make_pack_plan(impl_, source, PackedOperand::b);
        if (!made) return made.error();
        packing.emplace(std::move(*made));
      }
    }
    const std::uint64_t timeout_ms = info_.self_test.timeout_ms;
    const Result<bool> ready = warm_up(plans, warm_up_timeouts * timeout_ms);
    if (!ready) return ready.error();
    if (!*ready) {
      verdict.detail = concat("after ", warm_up_timeouts * timeout_ms,
                              " ms the queue was still busy, or its driver still compiled");
      out.may_go_on = false;
      return {};
    }
    out.was_on_device = true;
    on_device();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const Problem& p = plans[i].problem();
      const bool rounds =
          p.quantised_b && rounds_elements(plans[i].config(), *p.quantised_b, p.b.type);
      const ExactProduct product(p, rounds);
      const Result<bool> done = multiply(plans[i], product, packings[i], verdict);
      if (!done) return done.error();
      if (!*done) {
        verdict.outcome = Outcome::timed_out;
        verdict.detail = concat("not done after ", timeout_ms, " ms");
        out.may_go_on = false;
        return {};
      }
      if (verdict.outcome != Outcome::wrong_result) continue;
      if (descriptor(kind.loop).needs_verdict) verdict.outcome = Outcome::unusable;
      return {};
    }
    verdict.outcome = Outcome::passed;
    return {};
  }

  // Some drivers compile when a pipeline is first executed, and the queue may be busy: each kernel
  // is dispatched without a workgroup, so that neither counts as time on the device.
  Result<bool> warm_up(const std::vector<Plan>& plans, std::uint64_t timeout_ms) {
    Submission submission(device_, info_.device, info_.self_test);
    Result<bool> done = submission.run(timeout_ms, [&](VkCommandBuffer commands) -> Result<void> {
      const DeviceFunctions& vk = device_.functions;
      const std::array<std::byte, gpu::most_parameter_bytes> parameters{};
      vk.vkCmdPushConstants(commands, impl_->pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            push_constant_bytes(device_.caps.limits), parameters.data());
      for (const Plan& plan : plans) {
        for (const VkPipeline pipeline : pipelines_of(plan)) {
          vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
          vk.vkCmdDispatch(commands, 0, 1, 1);
        }
      }
      return {};
    });
    keep_if_in_flight(submission);
    return done;
  }

  // False if it is not done in time. What is wrong with it stands in the verdict.
  // `packing`: of a quantised B.
  Result<bool> multiply(const Plan& plan, const ExactProduct& product,
                        const std::optional<Plan>& packing, Verdict& verdict) {
    const VkDeviceSize a_bytes = aligned(product.a().size());
    const VkDeviceSize b_bytes = aligned(product.b().size());
    const VkDeviceSize d_bytes = aligned(product.d_bytes());
    Submission submission(device_, info_.device, info_.self_test);
    const VkDeviceSize packed_bytes = packing ? aligned(packing->layout().bytes) : 0;
    const VkDeviceSize packed_at = aligned(a_bytes + b_bytes + d_bytes + plan.workspace_bytes());
    if (auto made = submission.allocate(packed_at + packed_bytes); !made) {
      return made.error();
    }
    std::byte* const memory = submission.mapped();
    std::memcpy(memory, product.a().data(), product.a().size());
    std::memcpy(memory + a_bytes, product.b().data(), product.b().size());
    std::byte* const d = memory + a_bytes + b_bytes;
    std::memset(d, std::to_integer<int>(ExactProduct::poison), d_bytes + plan.workspace_bytes());
    const VkDeviceAddress address = submission.address();
    Operands operands{.a = {address, product.a().size()},
                      .b = {address + a_bytes, product.b().size()},
                      .d = {address + a_bytes + b_bytes, product.row_values_offset()},
                      .row_values = {address + a_bytes + b_bytes + product.row_values_offset(),
                                     product.d_bytes() - product.row_values_offset()},
                      .workspace = {address + a_bytes + b_bytes + d_bytes, plan.workspace_bytes()}};
    Result<bool> done = submission.run(info_.self_test.timeout_ms, [&](VkCommandBuffer commands) {
      if (packing) {
        const std::size_t scales = product.scales_offset(), zeros = product.zeros_offset();
        const DeviceSpan b = operands.b;
        operands.b = {address + packed_at, packing->layout().bytes};
        operands.b_fingerprint = packing->layout().fingerprint;
        auto packed = packing->record(commands, {.codes = {b.address, scales},
                                                 .scales = {b.address + scales, zeros - scales},
                                                 .zeros = {b.address + zeros, b.bytes - zeros},
                                                 .packed = operands.b});
        if (!packed) return packed;
        record_barrier(device_.functions, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                       VK_ACCESS_SHADER_READ_BIT);
      }
      return plan.record(commands, operands);
    });
    keep_if_in_flight(submission);
    if (!done || !*done) return done;
    if (auto wrong = product.why_wrong({d, product.d_bytes()})) {
      verdict.outcome = Outcome::wrong_result;
      verdict.detail = *wrong;
    }
    return true;
  }

  // The device may still use the pipelines: nobody will ever know when it doesn't.
  void keep_if_in_flight(const Submission& submission) {
    if (!submission.in_flight() || left_in_flight_) return;
    left_in_flight_ = true;
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<Context::Impl>>;
    const std::scoped_lock lock(mutex);
    kept->push_back(impl_);
  }

  static constexpr std::uint64_t warm_up_timeouts = 10;

  const ContextCreateInfo& info_;
  const SelfTestDevice& device_;
  std::shared_ptr<Context::Impl> impl_;
  bool left_in_flight_ = false;
};

Result<void> check_queue(const ContextCreateInfo& info, const SelfTestDevice& device) {
  const std::vector<VkQueueFamilyProperties> families =
      queue_families(device.instance_functions, info.physical_device);
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

// Adds the verdicts of the file that are not there yet.
void add_kept(std::vector<Verdict>& verdicts, VerdictStore& store,
              const std::filesystem::path& path, bool is_asked_for, const DeviceCaps& caps,
              const Log& log) {
  const auto not_used = [&](const std::string& why) {
    log.write(is_asked_for ? LogLevel::warning : LogLevel::info,
              "verdicts of another self-test are not used: " + why);
  };
  const Result<VerdictFile> file = store.read();
  if (!file) return not_used(file.error().message);
  if (!file->other.empty()) return not_used(concat(utf8(path), ": ", file->other));
  for (const Verdict& verdict : file->verdicts) {
    if (has_verdict(verdicts, verdict.kind)) continue;
    verdicts.push_back(verdict);
    if (!verdict.failed()) continue;
    log.write(LogLevel::warning, concat(why_failed(verdict, caps), " (says ", utf8(path),
                                        "; `vkgemm info --self-test --fresh` tries again)"));
  }
}

}  // namespace

Result<std::vector<Verdict>> collect_verdicts(const ContextCreateInfo& info,
                                              const SelfTestDevice& device) {
  const SelfTest& options = info.self_test;
  const DeviceCaps& caps = device.caps;
  const Log log(info.log);
  // Without VKGEMM_VERDICTS=0 in the environment.
  const bool knows = options.only.empty() && environment_variable("VKGEMM_VERDICTS") != "0";
  const bool is_default = options.file.empty() && options.read_default_file && knows;
  const std::filesystem::path file = is_default ? default_verdict_file(caps) : options.file;
  std::optional<VerdictStore> store;
  if (!file.empty()) store.emplace(file, caps);
  std::vector<Verdict> verdicts(options.verdicts.begin(), options.verdicts.end());
  if (store) add_kept(verdicts, *store, file, !is_default, caps, log);
  if (is_default) store.reset();  // is only read
  if (options.use_trusted_list && knows) {
    for (Verdict& verdict : trusted_verdicts(known_drivers(), caps)) {
      if (!has_verdict(verdicts, verdict.kind)) verdicts.push_back(std::move(verdict));
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
  std::erase_if(kinds, [&](const KernelKind& kind) { return has_verdict(verdicts, kind); });
  if (kinds.empty()) return verdicts;

  const auto saved = [&](const auto& result) {
    if (result) return true;
    log.write(LogLevel::warning, "verdicts not saved: " + result.error().message);
    store.reset();
    return false;
  };
  Examiner examiner(info, device);
  if (auto ready = examiner.init(); !ready) return ready.error();
  for (const KernelKind& kind : kinds) {
    std::uint32_t attempts = 1;
    const Examination result = examiner.examine(kind, [&] {
      if (!store) return;
      const Result<std::uint32_t> begun = store->begin_attempt(kind);
      if (!saved(begun)) return;
      attempts = *begun;
      if (attempts == 1) return;
      log.write(LogLevel::warning,
                concat("self-test, ", to_string(kind),
                       ": a process ended, or gave up waiting, while this was on the device; "
                       "trying again"));
    });
    const Verdict& verdict = verdicts.emplace_back(result.verdict);
    // The machine may have been busy: the attempt stays, and the next one decides.
    const bool keeps = verdict.outcome != Outcome::timed_out || attempts >= attempts_of_a_verdict;
    if (store && keeps) saved(store->add(std::span(&verdict, 1)));
    if (verdict.failed()) {
      log.write(LogLevel::warning, why_failed(verdict, caps));
    } else if (verdict.outcome == Outcome::unusable) {
      log.write(LogLevel::info,
                concat("self-test, ", to_string(kind), ": not usable here: ", verdict.detail));
    } else if (verdict.outcome == Outcome::untested) {
      log.write(LogLevel::warning,
                concat("self-test, ", to_string(kind), ": untested: ", verdict.detail));
    }
    if (result.fatal) return *result.fatal;
    if (!result.may_go_on) {
      log.write(LogLevel::warning, "self-test: what follows is not tried: the queue is busy");
      break;
    }
  }
  return verdicts;
}

}  // namespace vkgemm
