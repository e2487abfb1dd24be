// context_impl.hpp: what a Context and the Plans made from it share.
#pragma once

#include <atomic>
#include <cstdint>
#include <forward_list>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "device/vk.hpp"
#include "problem/resolved_problem.hpp"
#include "runtime/abort_counter.hpp"
#include "runtime/pipeline_cache.hpp"
#include "runtime/submission.hpp"
#include "tuning/device_tables.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

class SelfTester;

// A device's queues, memory and clock.
struct SubmitInfo {
  LentQueue lent;  // SelfTest::queue; may be null
  VkPhysicalDeviceMemoryProperties memory{};
  std::vector<VkQueueFamilyProperties> families;
  double ns_per_tick = 1.0;
};

struct Context::Impl {
  // `queue_families`: those that plans may run on; none: one at a time.
  Impl(const ContextCreateInfo& info, const DeviceFunctions& device_functions,
       const VkPhysicalDeviceMemoryProperties& memory, DeviceCaps device_caps,
       PipelineCacheInfo cache_info, std::vector<TuningTable> loaded,
       std::vector<std::uint32_t> queue_families = {});
  ~Impl();

  // An error if the context lacks the function.
  MaybeError set_function_cost(ResolvedProblem& problem) const;
  // With native_type() as Problem::multiply_as, if vkgemm has a configuration then, and the given
  // one (null: none) is legal.
  Result<Problem> in_native_type(const Problem& problem, const Config* config);
  Result<Plan> make_plan(const std::shared_ptr<Impl>& self, const Problem& problem,
                         const Config* config);
  Result<Plan> make_pack_plan(const std::shared_ptr<Impl>& self, const Problem& problem,
                              PackedOperand operand);

  // Builds the pipelines of a plan, and counts its dispatches.
  Result<Plan> finish(std::shared_ptr<Plan::Impl> plan);

  // The error of a problem that nothing computes. The log gets the reasons that are not its cause.
  Error nothing_is_legal(const ResolvedProblem& problem, const DeviceCaps& usable) const;

  // The device as it is known now. References stay valid as long as the context.
  const DeviceCaps& caps() const noexcept { return known_.load()->caps; }

  // The capabilities that plans are made for: one barrier that had to be given up is the last one
  // that is tried.
  const DeviceCaps& usable_caps() const noexcept {
    const Known& known = *known_.load();
    return aborts.count() == 0 ? known.caps : known.after_abort;
  }

  // The tuning tables as they are now.
  std::shared_ptr<const DeviceTables> tables() const {
    const std::scoped_lock lock(guarding_tables_);
    return tables_;
  }

  // Keeps a context and its pipelines for ever: the device may still use them, and no call tells
  // when it ends.
  static void keep(std::shared_ptr<Impl> impl);

  // Adds a shape that was timed on this device, before all that was loaded.
  void learn(TunedShape shape);

  // Tests on the lent queue what `wanted` names for the device as it is known, until it names
  // nothing. Without a queue it does nothing.
  using Wanted = std::function<std::vector<KernelKind>(const DeviceCaps&)>;
  Result<void> test_wanted(const Wanted& wanted);

  Log log;
  DeviceFunctions functions;

 private:
  struct Known {
    explicit Known(DeviceCaps device_caps);
    DeviceCaps caps;
    DeviceCaps after_abort;
  };
  // Plans point at what was known when they were made, so nothing is removed.
  std::forward_list<Known> all_known_;
  std::atomic<const Known*> known_;

  mutable std::mutex guarding_tables_;
  std::shared_ptr<const DeviceTables> tables_;
  bool has_learned_ = false;  // the first table is learn()'s

 public:
  PipelineCache pipelines;
  AbortCounter aborts;
  std::mutex testing;                       // guards the tester, and additions to what is known
  std::unique_ptr<SelfTester> self_tester;  // null: no queue was lent

  // Parts that tune() needs: another context on the device, whose pipelines end with it, and where
  // it can submit.
  std::function<Result<std::shared_ptr<Impl>>()> make_sibling;
  SubmitInfo submits;
  bool tells_plans = true;  // the log; contexts of self-tests and tune() don't
  std::atomic<bool> lost = false;
  std::atomic<bool> told_of_untested = false;  // the log; true if there is nothing to tell
};

// The error that every call on a lost device returns.
Error device_lost_error();

}  // namespace vkgemm
