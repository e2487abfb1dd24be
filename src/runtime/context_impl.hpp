// context_impl.hpp: what a Context and the Plans made from it share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "device/vk.hpp"
#include "problem/resolved_problem.hpp"
#include "runtime/abort_counter.hpp"
#include "runtime/pipeline_cache.hpp"
#include "tuning/device_tables.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct Context::Impl {
  // `queue_families`: those that plans may run on; none: one at a time.
  Impl(const ContextCreateInfo& info, const DeviceFunctions& device_functions,
       const VkPhysicalDeviceMemoryProperties& memory, DeviceCaps device_caps,
       PipelineCacheInfo cache_info, std::vector<TuningTable> loaded,
       std::vector<std::uint32_t> queue_families = {})
      : log(info.log),
        functions(device_functions),
        caps(std::move(device_caps)),
        caps_after_abort(caps),
        tables(caps.architecture, std::move(loaded)),
        pipelines(functions, log, std::move(cache_info)),
        aborts(functions, memory, info.device, std::move(queue_families)) {
    caps_after_abort.device_barrier = {false, "workgroups gave up waiting on this device"};
  }

  Result<Plan> make_plan(const std::shared_ptr<Impl>& self, const Problem& problem,
                         const Config* config);
  Result<Plan> make_pack_plan(const std::shared_ptr<Impl>& self, const Problem& problem,
                              PackedOperand operand);

  // Builds the pipelines of a plan, and counts its dispatches.
  Result<Plan> finish(std::shared_ptr<Plan::Impl> plan);

  // The error of a problem that nothing computes. The log gets the reasons that are not its cause.
  Error nothing_is_legal(const ResolvedProblem& problem, const DeviceCaps& usable) const;

  // The capabilities that plans are made for: one barrier that had to be given up is the last one
  // that is tried.
  const DeviceCaps& usable_caps() const noexcept {
    return aborts.count() == 0 ? caps : caps_after_abort;
  }

  Log log;
  DeviceFunctions functions;
  DeviceCaps caps;
  DeviceCaps caps_after_abort;
  DeviceTables tables;
  PipelineCache pipelines;
  AbortCounter aborts;
  std::atomic<bool> lost = false;
  std::atomic<bool> told_of_untested = false;  // the log; true if there is nothing to tell
};

// The error that every call on a lost device returns.
Error device_lost_error();

}  // namespace vkgemm
