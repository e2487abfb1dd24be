#include <string>
#include <utility>

#include "base/environment.hpp"
#include "base/errors.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "device/caps_query.hpp"
#include "device/features.hpp"
#include "device/vk.hpp"
#include "kernels/steps.hpp"
#include "problem/resolve.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/self_tester.hpp"
#include "self_test/self_test.hpp"
#include "tuning/table_file.hpp"
#include "tuning/table_text.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

namespace {

Result<void> check_create_info(const ContextCreateInfo& info) {
  if (info.instance == VK_NULL_HANDLE) return invalid_argument("instance is VK_NULL_HANDLE");
  if (info.physical_device == VK_NULL_HANDLE) {
    return invalid_argument("physical_device is VK_NULL_HANDLE");
  }
  if (info.device == VK_NULL_HANDLE) return invalid_argument("device is VK_NULL_HANDLE");
  if (info.get_instance_proc_addr == nullptr) {
    return invalid_argument("get_instance_proc_addr is null");
  }
  for (std::size_t i = 0; i < info.enabled_extensions.size(); ++i) {
    if (info.enabled_extensions[i] == nullptr) {
      return invalid_argument(concat("enabled_extensions[", i, "] is null"));
    }
  }
  if (info.enabled_features == nullptr) {
    return invalid_argument(
        "enabled_features is null: vkgemm must know what the device was created with");
  }
  if (info.enabled_features->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) {
    return invalid_argument(concat("enabled_features->sType is ",
                                   static_cast<int>(info.enabled_features->sType),
                                   ", not VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2"));
  }
  if (info.pipeline_cache != VK_NULL_HANDLE && !info.pipeline_cache_file.empty()) {
    return invalid_argument("pipeline_cache and pipeline_cache_file are both given: " +
                            utf8(info.pipeline_cache_file));
  }
  return {};
}

// Makes contexts of their own on a device, so that nothing of what they build stays behind.
using MakeSibling = std::function<Result<std::shared_ptr<Context::Impl>>(DeviceCaps)>;
MakeSibling sibling_maker(VkDevice device, const DeviceFunctions& functions,
                          const VkPhysicalDeviceMemoryProperties& memory,
                          PipelineCacheInfo pipelines) {
  pipelines.application_cache = VK_NULL_HANDLE;
  pipelines.file.clear();
  return [=](DeviceCaps caps) -> Result<std::shared_ptr<Context::Impl>> {
    ContextCreateInfo own;
    own.device = device;
    auto sibling = std::make_shared<Context::Impl>(own, functions, memory, std::move(caps),
                                                   pipelines, std::vector<TuningTable>{});
    sibling->tells_plans = false;
    if (auto ready = sibling->pipelines.init(); !ready) return ready.error();
    return sibling;
  };
}

// Makes tests on which every kind counts as passed.
SelfTester::MakeTest test_maker(const LentQueue& queue, std::uint32_t timeout_ms,
                                const VkPhysicalDeviceMemoryProperties& memory,
                                const DeviceCaps& caps, const MakeSibling& make_sibling) {
  return [=, trusted = trusting(caps)]() -> Result<std::unique_ptr<KindTest>> {
    auto tested = make_sibling(trusted);
    if (!tested) return tested.error();
    return std::make_unique<KindTest>(*std::move(tested), memory, queue, timeout_ms);
  };
}

}  // namespace

Error device_lost_error() {
  return Error{Status::device_lost, "the device was lost", VK_ERROR_DEVICE_LOST};
}

Context::Impl::Known::Known(DeviceCaps device_caps)
    : caps(std::move(device_caps)), after_abort(caps) {
  after_abort.device_barrier = {false, "workgroups gave up waiting on this device"};
}

Context::Impl::Impl(const ContextCreateInfo& info, const DeviceFunctions& device_functions,
                    const VkPhysicalDeviceMemoryProperties& memory, DeviceCaps device_caps,
                    PipelineCacheInfo cache_info, std::vector<TuningTable> loaded,
                    std::vector<std::uint32_t> queue_families)
    : log(info.log),
      functions(device_functions),
      all_known_{Known(std::move(device_caps))},
      known_(&all_known_.front()),
      tables_(std::make_shared<DeviceTables>(caps(), std::move(loaded))),
      pipelines(functions, log, std::move(cache_info)),
      aborts(functions, memory, info.device, std::move(queue_families)) {}

Context::Impl::~Impl() = default;

void Context::Impl::keep(std::shared_ptr<Impl> impl) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<Impl>>;
  const std::scoped_lock lock(mutex);
  kept->push_back(std::move(impl));
}

void Context::Impl::learn(TunedShape shape) {
  const std::scoped_lock lock(guarding_tables_);
  std::vector<TuningTable> loaded = tables_->loaded();
  if (!has_learned_) {
    TuningTable learned{.architecture = caps().architecture,
                        .device = caps().name,
                        .driver = driver_text(caps()),
                        .timing = built_in_table(table_name(caps())).timing,
                        .source = "Context::tune()"};
    loaded.insert(loaded.begin(), std::move(learned));
    has_learned_ = true;
  }
  add_tuned(loaded.front(), std::move(shape));
  tables_ = std::make_shared<DeviceTables>(caps(), std::move(loaded));
}

Result<void> Context::Impl::test_wanted(const Wanted& wanted) {
  if (self_tester == nullptr) return {};
  const std::scoped_lock lock(testing);
  for (;;) {
    const std::vector<KernelKind> kinds = wanted(usable_caps());
    if (kinds.empty()) return {};
    const Result<std::vector<Verdict>> verdicts = self_tester->test(kinds);
    if (!verdicts) {
      if (verdicts.error().status == Status::device_lost) lost = true;
      return verdicts.error();
    }
    if (verdicts->empty()) return {};  // the queue is busy
    DeviceCaps next = caps();
    next.verdicts.insert(next.verdicts.end(), verdicts->begin(), verdicts->end());
    known_ = &all_known_.emplace_front(std::move(next));
  }
}

Result<Context> Context::create(const ContextCreateInfo& info) {
  return without_exceptions([&]() -> Result<Context> {
    if (auto checked = check_create_info(info); !checked) return checked.error();
    const auto instance_functions =
        load_instance_functions(info.get_instance_proc_addr, info.instance);
    if (!instance_functions) return instance_functions.error();
    const auto device_functions = load_device_functions(*instance_functions, info.device);
    if (!device_functions) return device_functions.error();
    const auto supported = query_supported(*instance_functions, info.physical_device);
    if (!supported) return supported.error();

    Facilities enabled;
    for (const char* extension : info.enabled_extensions) enabled.extensions.emplace(extension);
    enabled.features = read_features(info.enabled_features);
    auto queried = query_caps(*instance_functions, info.physical_device, *supported, enabled,
                              info.self_test.use_deny_list);
    if (!queried) return queried.error();
    DeviceCaps& caps = *queried;
    if (!caps.fma.available) {
      return Error{Status::missing_feature, caps.name + ": " + caps.fma.reason};
    }

    auto loaded =
        load_tables({.variable = environment_variable("VKGEMM_TUNING"),
                     .file = info.tuning_file,
                     .user_file = info.read_default_tuning_file ? default_tuning_file(caps) : ""},
                    caps);
    if (!loaded) return loaded.error();

    PipelineCacheInfo cache_info{
        .device = info.device,
        .application_cache = info.pipeline_cache,
        .file = info.pipeline_cache_file,
        .identity = {.vendor_id = caps.vendor_id,
                     .device_id = caps.device_id,
                     .driver_version = caps.driver_version,
                     .uuid = caps.pipeline_cache_uuid},
        .capture_statistics = enabled.has(Feature::pipeline_executable_info) &&
                              supported->has(Feature::pipeline_executable_info),
        .push_constant_bytes = push_constant_bytes(caps.limits),
        .set_name = instance_functions->vkSetDebugUtilsObjectNameEXT,
    };
    VkPhysicalDeviceMemoryProperties memory{};
    instance_functions->vkGetPhysicalDeviceMemoryProperties(info.physical_device, &memory);
    caps.verdicts = known_verdicts(info.self_test, caps, Log(info.log));
    const auto make_sibling = sibling_maker(info.device, *device_functions, memory, cache_info);
    const LentQueue lent{.device = info.device,
                         .queue = info.self_test.queue,
                         .family = info.self_test.queue_family};
    const auto families = queue_families(*instance_functions, info.physical_device);
    SelfTester::MakeTest make_test;
    if (lent.queue != VK_NULL_HANDLE) {
      if (auto checked = check_queue(lent, families, "self_test."); !checked) {
        return checked.error();
      }
      make_test = test_maker(lent, info.self_test.timeout_ms, memory, caps, make_sibling);
    }
    auto impl = std::make_shared<Impl>(info, *device_functions, memory, std::move(caps),
                                       std::move(cache_info), std::move(loaded->tables),
                                       compute_families(*instance_functions, info.physical_device));
    impl->make_sibling = [make_sibling, &known = *impl] { return make_sibling(known.caps()); };
    impl->submits = {lent, memory, families,
                     ns_per_tick(*instance_functions, info.physical_device)};
    if (make_test) {
      impl->self_tester = std::make_unique<SelfTester>(info.self_test, std::move(make_test),
                                                       impl->caps(), impl->log);
      const auto untested = [&](const DeviceCaps& known) {
        std::vector<KernelKind> kinds(info.self_test.only.begin(), info.self_test.only.end());
        std::erase_if(kinds,
                      [&](const KernelKind& kind) { return has_verdict(known.verdicts, kind); });
        return kinds;
      };
      if (auto tested = impl->test_wanted(untested); !tested) return tested.error();
    }
    impl->told_of_untested = !impl->log.enabled() || !lacks_verdicts(impl->caps());
    for (const std::string& warning : loaded->warnings) {
      impl->log.write(LogLevel::warning, warning);
    }
    if (auto ready = impl->pipelines.init(); !ready) return ready.error();
    return Context(std::move(impl));
  });
}

Context::Context(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Context::Context(Context&&) noexcept = default;

Context& Context::operator=(Context&& other) noexcept {
  Context taken(std::move(other));
  std::swap(impl_, taken.impl_);
  return *this;  // `taken` ends what was here
}

Context::~Context() {
  if (impl_ == nullptr || device_lost()) return;
  if (auto saved = save_pipeline_cache(); !saved) {
    (void)without_exceptions([&]() -> Result<void> {
      impl_->log.write(LogLevel::warning, "pipeline cache not saved: " + saved.error().message);
      return {};
    });
  }
}

const DeviceCaps& Context::caps() const noexcept { return impl_->caps(); }
std::span<const Verdict> Context::verdicts() const noexcept { return impl_->caps().verdicts; }

Result<std::uint32_t> Context::add_function(const EpilogueFunction& function) const {
  return without_exceptions([&] { return impl_->pipelines.functions_of_steps().add(function); });
}

Result<Plan> Context::plan(const Problem& problem) const {
  return without_exceptions([&] { return impl_->make_plan(impl_, problem, nullptr); });
}

Result<Plan> Context::plan(const Problem& problem, const Config& config) const {
  return without_exceptions([&] { return impl_->make_plan(impl_, problem, &config); });
}

Result<std::vector<Candidate>> Context::candidates(const Problem& problem) const {
  return without_exceptions([&]() -> Result<std::vector<Candidate>> {
    if (device_lost()) return device_lost_error();
    const Result<Problem> native = impl_->in_native_type(problem, nullptr);
    if (!native) return native.error();
    Result<ResolvedProblem> resolved = resolve(*native);
    if (!resolved) return resolved.error();
    if (auto error = impl_->set_function_cost(*resolved)) return *error;
    const auto tables = impl_->tables();
    if (auto error = tables->set_orders(*resolved, impl_->usable_caps())) return *error;
    std::vector<Candidate> candidates;
    if (resolved->is_empty()) return candidates;
    for (const ScoredRow& scored : tables->rank(*resolved, impl_->usable_caps())) {
      candidates.push_back(
          {scored.config, provenance_of(*scored.row, scored.config, resolved->input_type())});
    }
    return candidates;
  });
}

std::uint32_t Context::barrier_aborts() const noexcept { return impl_->aborts.count(); }

void Context::notify_device_lost() const noexcept { impl_->lost = true; }
bool Context::device_lost() const noexcept { return impl_->lost; }

Result<void> Context::save_pipeline_cache() const {
  return without_exceptions([&]() -> Result<void> {
    if (device_lost()) return device_lost_error();
    Result<void> saved = impl_->pipelines.save();
    if (!saved && saved.error().status == Status::device_lost) impl_->lost = true;
    return saved;
  });
}

}  // namespace vkgemm
