#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "legality.hpp"
#include "plan_impl.hpp"
#include "plan_internal.hpp"
#include "text.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

namespace {

// Commands of one recording: pushes the parameters once, and of later dispatches what differs.
// Those of dispatches that are not in the range are left out.
class Recorder {
 public:
  Recorder(const Context::Impl& context, VkCommandBuffer commands, DispatchRange range)
      : vk_(context.functions),
        layout_(context.pipelines.layout()),
        commands_(commands),
        range_(range) {}

  // Dispatches so far, whether or not in the range.
  std::uint32_t count() const noexcept { return count_; }

  // Of the dispatches that follow.
  void set(const gpu::GemmParams& params) noexcept {
    params_ = params;
    pushed_ = false;
  }

  void dispatch(VkPipeline pipeline, const std::vector<Dispatch>& dispatches) {
    bool bound = false;
    for (const Dispatch& dispatch : dispatches) {
      const bool waits = std::exchange(waits_, false);
      const bool host_reads = std::exchange(host_reads_, false);
      const std::uint32_t number = count_++;
      if (number < range_.first || number - range_.first >= range_.count) continue;
      if (waits) record_barrier(host_reads);
      if (!bound) vk_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
      bound = true;
      params_.first_tile = dispatch.first_tile;
      params_.first_batch = dispatch.first_batch;
      // The chunks of a large grid differ in two neighbouring words only.
      constexpr std::uint32_t chunk_offset = offsetof(gpu::GemmParams, first_tile);
      static_assert(offsetof(gpu::GemmParams, first_batch) == chunk_offset + 4);
      if (!pushed_) {
        push(0, sizeof(params_), &params_);
      } else {
        push(chunk_offset, 8, &params_.first_tile);
      }
      pushed_ = true;
      vk_.vkCmdDispatch(commands_, dispatch.tiles, dispatch.batches, dispatch.slices);
    }
  }

  // The next dispatch, and all after it, begin when earlier ones have ended, and see what those
  // wrote; so does the host if it reads.
  void wait(bool host_reads = false) noexcept {
    waits_ = true;
    host_reads_ = host_reads_ || host_reads;
  }

 private:
  void record_barrier(bool host_reads) {
    const VkMemoryBarrier barrier{
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .pNext = nullptr,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                         (host_reads ? VkAccessFlags{VK_ACCESS_HOST_READ_BIT} : 0),
    };
    const VkPipelineStageFlags readers =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
        (host_reads ? VkPipelineStageFlags{VK_PIPELINE_STAGE_HOST_BIT} : 0);
    vk_.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, readers, 0, 1,
                             &barrier, 0, nullptr, 0, nullptr);
  }

  void push(std::uint32_t offset, std::uint32_t bytes, const void* data) {
    vk_.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, offset, bytes, data);
  }

  const DeviceFunctions& vk_;
  VkPipelineLayout layout_;
  VkCommandBuffer commands_;
  DispatchRange range_;
  std::uint32_t count_ = 0;
  gpu::GemmParams params_{};
  bool pushed_ = false;
  bool waits_ = false;
  bool host_reads_ = false;
};

// Whether workgroups wait for one another, and may give up.
bool may_give_up(const Config& config, const ResolvedProblem& problem) {
  return config.tier == SplitTier::device_barrier ||
         (config.rows == RowStrategy::panel && !is_scalar(problem.rows->op));
}

// The members that are addresses.
constexpr std::uint64_t gpu::GemmParams::*addresses[] = {
    &gpu::GemmParams::a,          &gpu::GemmParams::b,         &gpu::GemmParams::c,
    &gpu::GemmParams::d,          &gpu::GemmParams::bias,      &gpu::GemmParams::aux,
    &gpu::GemmParams::workspace,  &gpu::GemmParams::control,   &gpu::GemmParams::aborts,
    &gpu::GemmParams::offsets,    &gpu::GemmParams::gamma,     &gpu::GemmParams::shift,
    &gpu::GemmParams::row_values, &gpu::GemmParams::row_states};

// A step's parameters, with the addresses of a recording.
gpu::GemmParams complete(const Step& step, const gpu::GemmParams& bound,
                         std::uint64_t values) noexcept {
  gpu::GemmParams params = step.params;
  for (const auto address : addresses) params.*address = bound.*address;
  params.b_right += bound.b_right;  // 0 if both halves are of one operand, else the step's is
  if (step.values == ValueAccess::writes) params.d = values;
  if (step.values == ValueAccess::reads) params.a = values;
  return params;
}

// The addresses of a part of the problem that begins at this row of this matrix.
gpu::GemmParams advanced(gpu::GemmParams bound, const Kernel& kernel, std::uint64_t row,
                         std::uint64_t batch) noexcept {
  const Parts& parts = *kernel.parts;
  for (const auto address : addresses) bound.*address += row * parts.row_pitch.*address;
  const gpu::GemmParams& product = kernel.product.params;
  const gpu::GemmParams& last = kernel.after.back().params;
  bound.a += batch * product.a_batch;
  bound.b += batch * product.b_batch;
  bound.c += batch * product.c_batch;
  bound.bias += batch * product.bias_batch;
  bound.aux += batch * product.aux_batch;
  bound.d += batch * last.d_batch;
  bound.row_values += batch * parts.all_rows * parts.row_pitch.row_values;
  return bound;
}

// Operands are known to be right.
void record_checked(const Plan::Impl& plan, Recorder& recorder, const Operands& operands) {
  const Kernel& kernel = plan.kernel;
  const WorkspaceLayout& layout = kernel.workspace;
  // Not one that is not wanted: with groups, 0 says that nobody is to be told of bad offsets.
  const VkDeviceAddress workspace = layout.bytes != 0 ? operands.workspace.address : 0;
  gpu::GemmParams bound{};
  plan.rules.bind(operands, bound);
  bound.workspace = workspace + layout.partial;
  bound.control = workspace + layout.control;
  bound.row_states = workspace + layout.states;
  bound.aborts = plan.aborts;

  // For those that still use what is to be overwritten. A word that tells of bad offsets is not.
  if (layout.bytes != 0 && !plan.resolved.grouping) recorder.wait();
  for (std::size_t i = 0; i < kernel.before.size(); ++i) {
    const Step& step = kernel.before[i];
    gpu::GemmParams own = complete(step, bound, 0);
    if (step.copied != nullptr) {
      own.a = bound.*step.copied;
      own.d = bound.*step.copied = workspace + step.copy_offset;
    }
    recorder.set(own);
    recorder.dispatch(plan.before[i], step.dispatches);
  }
  if (!kernel.before.empty()) recorder.wait();

  const auto record_part = [&](const gpu::GemmParams& at, std::uint64_t rows, bool last) {
    const std::uint64_t values = kernel.values_in_d ? at.d : workspace + layout.values;
    const auto record_step = [&](const Step& step, VkPipeline pipeline) {
      gpu::GemmParams params = complete(step, at, values);
      if (kernel.parts) params.m = static_cast<std::uint32_t>(rows);
      recorder.set(params);
      recorder.dispatch(pipeline, last ? step.last_dispatches : step.dispatches);
    };
    record_step(kernel.product, plan.product);
    for (std::size_t i = 0; i < kernel.after.size(); ++i) {
      recorder.wait(plan.aborts != 0);
      record_step(kernel.after[i], plan.after[i]);
    }
  };
  if (!kernel.parts) return record_part(bound, 0, false);
  const Parts& parts = *kernel.parts;
  for (std::uint64_t batch = 0; batch < parts.all_batches; batch += parts.batches) {
    for (std::uint64_t row = 0; row < parts.all_rows; row += parts.rows) {
      if (batch + row != 0) recorder.wait();
      const std::uint64_t rows = std::min(parts.rows, parts.all_rows - row);
      const bool last = rows < parts.rows || parts.all_batches - batch < parts.batches;
      record_part(advanced(bound, kernel, row, batch), rows, last);
    }
  }
}

std::uint32_t count_dispatches(const Plan::Impl& plan) {
  Recorder recorder(*plan.context, VK_NULL_HANDLE, {.first = 0, .count = 0});
  record_checked(plan, recorder, {});
  return recorder.count();
}

Result<void> check_range(DispatchRange range, std::uint32_t count) {
  const auto there_are = [count] {
    return concat(": the plan has ", count, count == 1 ? " dispatch" : " dispatches");
  };
  if (range.first > count) {
    return invalid_argument(concat("range.first is ", range.first, there_are()));
  }
  if (range.count != UINT32_MAX && range.count > count - range.first) {
    return invalid_argument(
        concat("range.count is ", range.count, " from ", range.first, " on", there_are()));
  }
  return {};
}

}  // namespace

Result<Plan> Context::Impl::make_plan(const std::shared_ptr<Impl>& self, const Problem& problem,
                                      const Config* config) {
  if (lost) return device_lost_error();
  Result<ResolvedProblem> resolved = resolve(problem);
  if (!resolved) return resolved.error();

  auto plan = std::make_shared<Plan::Impl>();
  plan->context = self;
  plan->problem = problem;
  plan->resolved = *resolved;
  if (config != nullptr) plan->config = *config;
  if (resolved->is_empty()) return Plan(std::move(plan));

  const DeviceCaps& usable = usable_caps();
  if (config == nullptr) {
    plan->choice = tables.best(*resolved, usable);
    if (!plan->choice) {
      return Error{Status::unsupported,
                   concat("no configuration computes this problem on ", caps.name, ": ",
                          tables.why_nothing_is_legal(*resolved, usable))};
    }
    plan->row = plan->choice->row;
    plan->config = plan->choice->config;
  } else {
    if (const auto reason = why_illegal(*config, *resolved, usable)) {
      return Error{Status::unsupported, concat(to_string(*config), ": ", *reason)};
    }
    plan->row = tables.find(*config, *resolved);
  }

  plan->kernel = lower(plan->config, *resolved, usable);
  if (resolved->max_dispatch_us > 0.0) {
    const std::optional<double> time =
        plan->choice ? plan->choice->cost : tables.estimate(plan->config, *resolved, usable);
    plan->times = limit_dispatches(plan->kernel, time, plan->config, *resolved, usable);
  }
  plan->rules = OperandRules(*resolved, plan->kernel.workspace.bytes);
  const auto build = [&](const PipelineKey& key) {
    Result<VkPipeline> pipeline = pipelines.get(key, plan->config);
    if (!pipeline) {
      if (pipeline.error().status == Status::device_lost) lost = true;
      if (log.enabled()) {
        log.write(LogLevel::error, concat(plan->command_line(), ": ", pipeline.error().message));
      }
    }
    return pipeline;
  };
  const Result<VkPipeline> product = build(plan->kernel.product.key);
  if (!product) return product.error();
  plan->product = *product;
  const auto build_all = [&](const std::vector<Step>& steps,
                             std::vector<VkPipeline>& out) -> Result<void> {
    for (const Step& step : steps) {
      const Result<VkPipeline> pipeline = build(step.key);
      if (!pipeline) return pipeline.error();
      out.push_back(*pipeline);
    }
    return {};
  };
  if (auto built = build_all(plan->kernel.before, plan->before); !built) return built.error();
  if (auto built = build_all(plan->kernel.after, plan->after); !built) return built.error();
  if (may_give_up(plan->config, *resolved)) {
    const Result<VkDeviceAddress> counter = aborts.address();
    if (!counter) return counter.error();
    plan->aborts = *counter;
  }
  plan->dispatch_count = count_dispatches(*plan);
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
std::uint64_t Plan::workspace_bytes() const noexcept { return impl_->kernel.workspace.bytes; }
std::string Plan::explain() const { return impl_->explain(); }
std::string Plan::command_line() const { return impl_->command_line(); }

std::uint32_t Plan::dispatch_count() const noexcept { return impl_->dispatch_count; }

Result<void> Plan::record(VkCommandBuffer command_buffer, const Operands& operands,
                          DispatchRange range) const {
  return without_exceptions([&]() -> Result<void> {
    const Impl& plan = *impl_;
    if (plan.context->lost.load(std::memory_order_relaxed)) return device_lost_error();
    if (command_buffer == VK_NULL_HANDLE) {
      return invalid_argument("command_buffer is VK_NULL_HANDLE");
    }
    if (auto checked = check_range(range, plan.dispatch_count); !checked) return checked;
    if (plan.resolved.is_empty()) return {};
    if (auto checked = plan.rules.check(operands); !checked) return checked;

    Recorder recorder(*plan.context, command_buffer, range);
    record_checked(plan, recorder, operands);
    return {};
  });
}

Result<void> Context::record(const Plan& plan, VkCommandBuffer command_buffer,
                             const Operands& operands, DispatchRange range) const {
  if (plan.impl_ == nullptr || plan.impl_->context != impl_) {
    return without_exceptions([]() -> Result<void> {
      return Error{Status::wrong_context, "the plan was made by another context"};
    });
  }
  return plan.record(command_buffer, operands, range);
}

VkPipeline pipeline_of(const Plan& plan) noexcept { return InternalAccess::impl(plan).product; }
const Kernel& kernel_of(const Plan& plan) noexcept { return InternalAccess::impl(plan).kernel; }

}  // namespace vkgemm
