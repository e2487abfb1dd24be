// timed_runs.hpp: executions of a problem's plans on a lent queue, with operands of their own,
// timed by the device.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/errors.hpp"
#include "device/buffer.hpp"
#include "problem/operands.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/submission.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// The first of these offsets that contradicts the problem (TuneInfo::offsets).
MaybeError check_offsets(const Problem& problem, std::span<const std::uint64_t> offsets);

class TimedRuns {
 public:
  // All of them must outlive the runs.
  TimedRuns(const DeviceFunctions& functions, const SubmitInfo& device, const LentQueue& queue);
  // Leaks everything if the device may still use it.
  ~TimedRuns();
  TimedRuns(const TimedRuns&) = delete;
  TimedRuns& operator=(const TimedRuns&) = delete;

  // Allocates the operands of the plan's problem, with random values and these offsets (empty:
  // groups of equal size). flushes: a buffer of flush_bytes() is written before each execution, to
  // empty the caches.
  Result<void> prepare(const Plan& plan, std::span<const std::uint64_t> offsets, bool flushes);

  // Fills the operands that plans write: floats with NaN, 8-bit integers with 0x80. So samples()
  // show elements that were not written.
  Result<void> clear_results();

  // Microseconds of executions of a plan of that problem. The first one, after which some drivers
  // still compile, is not timed.
  Result<std::vector<double>> time(const Plan& plan, std::uint32_t count);

  // Values from the front, the middle and the end of each operand that the last execution wrote.
  Result<std::vector<std::vector<double>>> samples();

  // True if the device may still execute a plan.
  bool in_flight() const noexcept { return in_flight_; }

 private:
  struct Own {
    bool written = false;  // by the product
    DataType type = {};
    std::uint64_t bytes = 0;
    std::unique_ptr<Buffer> buffer;
  };
  Result<void> run(const std::function<Result<void>(VkCommandBuffer)>& record);
  Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, Placement placement);
  Result<void> fill(const Own& operand);

  const DeviceFunctions& vk_;
  const SubmitInfo& device_;
  const LentQueue queue_;
  std::vector<Own> own_;
  std::unique_ptr<Buffer> workspace_, flush_, staging_;
  std::uint64_t workspace_bytes_ = 0;
  Operands operands_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  bool in_flight_ = false;
};

}  // namespace vkgemm
