// plan_internal.hpp: what tests and benchmarks may see of a plan. Not installed.
#pragma once

#include <vulkan/vulkan_core.h>

#include <vector>

#include "kernels/dispatch_plan.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct InternalAccess {
  static const Plan::Impl& impl(const Plan& plan) noexcept { return *plan.impl_; }
};

// Null for a plan of an empty problem. For statistics: pipelines capture them if the application
// enabled pipelineExecutableInfo on the device.
VkPipeline pipeline_of(const Plan& plan) noexcept;
// The pipelines of all its steps.
std::vector<VkPipeline> pipelines_of(const Plan& plan);
const DispatchPlan& dispatch_plan_of(const Plan& plan) noexcept;

}  // namespace vkgemm
