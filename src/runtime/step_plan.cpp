#include "runtime/step_plan.hpp"

#include "base/errors.hpp"
#include "base/text.hpp"
#include "runtime/recorder.hpp"

namespace vkgemm {
namespace {

Result<void> check_span(const StepOperand& operand, const DeviceSpan& span) {
  const auto& [name, address, bytes, alignment, written] = operand;
  if (span.bytes < bytes) {
    return Error{Status::span_too_small,
                 concat(name, ".bytes is ", span.bytes, ", the plan wants ", bytes)};
  }
  if (span.address == 0) return invalid_argument(concat(name, ".address is 0"));
  if (span.address > UINT64_MAX - bytes) {
    return invalid_argument(concat(name, " span of ", bytes, " bytes ends beyond 2^64"));
  }
  if (span.address % alignment == 0) return {};
  return Error{Status::misaligned, concat(name, ".address is ", span.address,
                                          ": the plan wants a multiple of ", alignment, " bytes")};
}

}  // namespace

Result<void> StepPlan::prepare() {
  if (step.dispatches.empty()) return {};
  const Result<VkPipeline> built = context->pipelines.get(step.key, Config{});
  if (!built) {
    if (built.error().status == Status::device_lost) context->lost = true;
    return built.error();
  }
  pipeline = *built;
  return {};
}

Result<void> StepPlan::record(VkCommandBuffer commands, std::span<const DeviceSpan> spans) const {
  if (context->lost.load(std::memory_order_relaxed)) return device_lost_error();
  if (commands == VK_NULL_HANDLE) return invalid_argument("command_buffer is VK_NULL_HANDLE");
  if (step.dispatches.empty()) return {};
  Addresses at;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    at.*operands[i].address = spans[i].address;
    if (operands[i].bytes == 0) continue;
    if (auto checked = check_span(operands[i], spans[i]); !checked) return checked;
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t j = 0; operands[i].written && j < operands.size(); ++j) {
      const StepOperand &one = operands[i], &other = operands[j];
      if (i == j || (other.written && j > i) || one.bytes == 0 || other.bytes == 0) continue;
      if (spans[i].address >= spans[j].address + other.bytes ||
          spans[j].address >= spans[i].address + one.bytes) {
        continue;
      }
      return Error{Status::overlapping_operands, concat(one.name, " overlaps ", other.name)};
    }
  }
  Recorder recorder(*context, commands, {});
  record_step(recorder, step, pipeline, at);
  return {};
}

}  // namespace vkgemm
