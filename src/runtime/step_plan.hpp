// step_plan.hpp: plans of one step that is not a product: packing, and quantising rows.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/dispatch_plan.hpp"
#include "runtime/context_impl.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct StepOperand {
  std::string_view name;
  std::uint64_t Addresses::*address = nullptr;
  std::uint64_t bytes = 0;  // 0: it is neither read nor written
  std::uint64_t alignment = 1;
  bool written = false;
};

struct StepPlan {
  std::shared_ptr<Context::Impl> context;  // keeps the pipeline
  Step step;                               // no dispatches if there is nothing to be done
  std::vector<StepOperand> operands = {};  // in the order of the spans that record() takes
  VkPipeline pipeline = VK_NULL_HANDLE;

  // Builds the pipeline.
  Result<void> prepare();

  // Checks the spans of the operands, in their order, and records the step. Never allocates, but
  // for a message.
  Result<void> record(VkCommandBuffer commands, std::span<const DeviceSpan> spans) const;
};

}  // namespace vkgemm
