#include <cstddef>
#include <utility>

#include "errors.hpp"
#include "legality.hpp"
#include "plan_impl.hpp"
#include "plan_internal.hpp"
#include "text.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

Result<Plan> Context::Impl::make_plan(const std::shared_ptr<Impl>& self, const Problem& problem,
                                      const Config* config) {
  if (lost) return device_lost_error();
  Result<ResolvedProblem> resolved = resolve(problem);
  if (!resolved) return resolved.error();

  auto plan = std::make_shared<Plan::Impl>();
  plan->context = self;
  plan->problem = problem;
  plan->resolved = *resolved;
  plan->chosen_by_caller = config != nullptr;
  if (config != nullptr) plan->config = *config;
  if (resolved->is_empty()) return Plan(std::move(plan));

  if (config == nullptr) {
    plan->row = tables.best(*resolved, caps);
    if (plan->row == nullptr) {
      return Error{Status::unsupported,
                   concat("no configuration computes this problem on ", caps.name, ": ",
                          tables.why_nothing_is_legal(*resolved, caps))};
    }
    plan->config = plan->row->config;
  } else {
    if (const auto reason = why_illegal(*config, *resolved, caps)) {
      return Error{Status::unsupported, concat(to_string(*config), ": ", *reason)};
    }
    plan->row = tables.find(*config, *resolved);
  }

  plan->kernel = lower(plan->config, *resolved, caps);
  plan->rules = OperandRules(*resolved, plan->kernel.workspace_bytes);
  Result<VkPipeline> pipeline = pipelines.get(plan->kernel.key, plan->config);
  if (!pipeline) {
    if (pipeline.error().status == Status::device_lost) lost = true;
    if (log.enabled()) {
      log.write(LogLevel::error, concat(plan->command_line(), ": ", pipeline.error().message));
    }
    return pipeline.error();
  }
  plan->pipeline = *pipeline;
  if (log.enabled()) log.write(LogLevel::info, plan->command_line());
  return Plan(std::move(plan));
}

Plan::Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Plan::Plan(const Plan&) = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(const Plan&) = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

const Problem& Plan::problem() const noexcept { return impl_->problem; }
const Config& Plan::config() const noexcept { return impl_->config; }
std::uint64_t Plan::workspace_bytes() const noexcept { return impl_->kernel.workspace_bytes; }
std::string Plan::explain() const { return impl_->explain(); }
std::string Plan::command_line() const { return impl_->command_line(); }

Result<void> Plan::record(VkCommandBuffer command_buffer, const Operands& operands) const {
  return without_exceptions([&]() -> Result<void> {
    const Impl& plan = *impl_;
    if (plan.context->lost.load(std::memory_order_relaxed)) return device_lost_error();
    if (command_buffer == VK_NULL_HANDLE) {
      return invalid_argument("command_buffer is VK_NULL_HANDLE");
    }
    if (plan.resolved.is_empty()) return {};
    if (auto checked = plan.rules.check(operands); !checked) return checked;

    const DeviceFunctions& vk = plan.context->functions;
    const VkPipelineLayout layout = plan.context->pipelines.layout();
    gpu::GemmParams params = plan.kernel.params;
    plan.rules.bind(operands, params);
    vk.vkCmdBindPipeline(command_buffer, VK_PIPELINE_BIND_POINT_COMPUTE, plan.pipeline);
    bool first = true;
    for (const Dispatch& dispatch : plan.kernel.dispatches) {
      params.first_tile = dispatch.first_tile;
      params.first_batch = dispatch.first_batch;
      // The chunks of a large grid differ in two neighbouring words only.
      constexpr std::uint32_t chunk_offset = offsetof(gpu::GemmParams, first_tile);
      static_assert(offsetof(gpu::GemmParams, first_batch) == chunk_offset + 4);
      if (first) {
        vk.vkCmdPushConstants(command_buffer, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              sizeof(params), &params);
      } else {
        vk.vkCmdPushConstants(command_buffer, layout, VK_SHADER_STAGE_COMPUTE_BIT, chunk_offset, 8,
                              &params.first_tile);
      }
      first = false;
      vk.vkCmdDispatch(command_buffer, dispatch.tiles, dispatch.batches, 1);
    }
    return {};
  });
}

Result<void> Context::record(const Plan& plan, VkCommandBuffer command_buffer,
                             const Operands& operands) const {
  if (plan.impl_ == nullptr || plan.impl_->context != impl_) {
    return without_exceptions([]() -> Result<void> {
      return Error{Status::wrong_context, "the plan was made by another context"};
    });
  }
  return plan.record(command_buffer, operands);
}

VkPipeline pipeline_of(const Plan& plan) noexcept { return InternalAccess::impl(plan).pipeline; }
const Kernel& kernel_of(const Plan& plan) noexcept { return InternalAccess::impl(plan).kernel; }

}  // namespace vkgemm
