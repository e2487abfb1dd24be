#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "kernels/steps.hpp"
#include "problem/resolve.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/plan_impl.hpp"
#include "runtime/plan_internal.hpp"
#include "runtime/recorder.hpp"
#include "self_test/wanted_kinds.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

namespace {

// True if workgroups wait for one another, and may give up.
bool may_give_up(const Config& config, const ResolvedProblem& problem) {
  return config.reduction_mode == ReductionMode::device_barrier ||
         (config.rows == RowStrategy::panel && !is_scalar(problem.rows->op));
}

// The addresses of a chunk of the problem that begins at this row of this matrix. Where chunks do
// not differ, pitches are 0.
Addresses advanced(const Addresses& whole, const RowChunks& chunks, std::uint64_t row,
                   std::uint64_t batch) noexcept {
  using Words = std::array<std::uint64_t, sizeof(Addresses) / sizeof(std::uint64_t)>;
  auto at = std::bit_cast<Words>(whole);
  const auto row_pitch = std::bit_cast<Words>(chunks.row_pitch);
  const auto batch_pitch = std::bit_cast<Words>(chunks.batch_pitch);
  for (std::size_t i = 0; i < at.size(); ++i) at[i] += row * row_pitch[i] + batch * batch_pitch[i];
  return std::bit_cast<Addresses>(at);
}

// Records the steps of a plan, part for part.
class StepsRecorder {
 public:
  StepsRecorder(const Plan::Impl& plan, Recorder& recorder, std::uint64_t workspace)
      : plan_(plan), steps_(plan.dispatch_plan), recorder_(recorder), workspace_(workspace) {}

  // Turns the addresses of operands into those that the product reads. Copies what the workspace
  // does not hold already. `is_first`: no part was recorded before.
  void before(Addresses& at, const RowPart& part, bool is_first) {
    const Addresses given = at;
    // An absent part of the workspace keeps address 0. With groups, 0 means that bad offsets are
    // not reported. A chunk has its own place among the sums of columns.
    for (const WorkspacePart& own : steps_.workspace) {
      const std::uint64_t first = own.address == &Addresses::extra ? given.extra : 0;
      at.*own.address = workspace_ + own.offset + first;
    }
    bool recorded = false;
    if (!is_first) at.amax = 0;  // earlier parts have raised it
    for (std::size_t i = 0; i < steps_.before.size(); ++i) {
      const Step& step = steps_.before[i];
      if (step.once && !is_first) continue;
      if (const auto operand = step.copied) {
        at.source = given.*operand;
        at.copy = at.*operand;
        if (operand == &Addresses::b) at.b_right = 0;  // both halves are of the copy now
        Copied& copied = operand == &Addresses::a ? copied_a_ : copied_b_;
        const bool covers = part.is_smaller || !copied.is_smaller;
        if (!is_first && copied.source == at.source && covers) continue;
        copied = {at.source, part.is_smaller};
      }
      Addresses own = at;
      if (step.copied == &Addresses::b) own.b_right = given.b_right;
      record_step(recorder_, step, plan_.before[i], own, part);
      if (step.alone) recorder_.wait();
      recorded = true;
    }
    if (steps_.line_scales) {
      at.row_scales = at.a;
      at.column_scales = at.b;
    }
    if (recorded) recorder_.wait();
  }

  void product(Addresses at, const RowPart& part) {
    if (steps_.values_in_d) at.values = at.d;
    if (!part.is_last) at.bad_group = 0;
    const auto record = [&](const Step& step, VkPipeline pipeline) {
      Addresses own = at;
      if (step.writes_values) own.d = at.values;
      record_step(recorder_, step, pipeline, own, part);
    };
    record(steps_.product, plan_.product);
    for (std::size_t i = 0; i < steps_.after.size(); ++i) {
      if (steps_.after[i].once) continue;
      recorder_.wait(plan_.aborts != 0);
      record(steps_.after[i], plan_.after[i]);
    }
  }

  // Records the dispatches that run once, after all parts. `at`: the addresses of the whole
  // problem.
  void finish(Addresses at) {
    for (const WorkspacePart& own : steps_.workspace) at.*own.address = workspace_ + own.offset;
    for (std::size_t i = 0; i < steps_.after.size(); ++i) {
      if (!steps_.after[i].once) continue;
      recorder_.wait(plan_.aborts != 0);
      record_step(recorder_, steps_.after[i], plan_.after[i], at, {});
    }
  }

 private:
  const Plan::Impl& plan_;
  const DispatchPlan& steps_;
  Recorder& recorder_;
  std::uint64_t workspace_;
  // The operand of which the workspace holds a copy.
  struct Copied {
    std::uint64_t source = 0;
    bool is_smaller = false;  // of a part that is smaller than others
  };
  Copied copied_a_, copied_b_;
};

// Records one repetition of the problem.
void record_all(const DispatchPlan& steps, StepsRecorder& record, Recorder& recorder,
                const Addresses& given, bool is_first) {
  Addresses whole = given;
  if (!steps.chunks || !steps.chunks->with_copies) record.before(whole, {}, is_first);
  if (!steps.chunks) {
    record.product(whole, {});
    return record.finish(given);
  }
  const RowChunks& chunks = *steps.chunks;
  for (std::uint64_t batch = 0; batch < chunks.all_batches; batch += chunks.batches) {
    for (std::uint64_t row = 0; row < chunks.all_rows; row += chunks.rows) {
      if (batch + row != 0) recorder.wait();
      const RowPart part = part_at(chunks, row, batch);
      Addresses at = advanced(whole, chunks, row, batch);
      if (chunks.with_copies) record.before(at, part, is_first && batch + row == 0);
      record.product(at, part);
    }
  }
  record.finish(given);
}

// Operands are known to be right.
void record_checked(const Plan::Impl& plan, Recorder& recorder, const Operands& operands) {
  const DispatchPlan& steps = plan.dispatch_plan;
  Addresses given;
  plan.rules.bind(operands, given);
  given.aborts = plan.aborts;

  // Earlier dispatches may still use the workspace. Groups without copies and column sums have only
  // a word for bad offsets in it, which plans may share.
  const bool has_more = !plan.resolved.grouping || !steps.before.empty() || !steps.after.empty();
  if (steps.workspace.bytes != 0 && has_more) recorder.wait();
  StepsRecorder record(plan, recorder, given.workspace);
  for (std::uint64_t i = 0; i < plan.resolved.repeats; ++i) {
    if (i != 0) {
      plan.rules.advance(given);
      if (steps.workspace.bytes != 0) recorder.wait();
    }
    record_all(steps, record, recorder, given, i == 0);
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

std::string overruled_text(std::string_view denied) {
  return concat(denied, "; overruled, since nothing else computes this");
}

Result<void> build_pipelines(Plan::Impl& plan) {
  const DispatchPlan& steps = plan.dispatch_plan;
  if (steps.product.dispatches.empty()) return {};
  std::vector<PipelineKey> keys{steps.product.key};
  for (const Step& step : steps.before) keys.push_back(step.key);
  for (const Step& step : steps.after) keys.push_back(step.key);
  if (steps.product.in_memory) keys.push_back(carry_key());
  const auto built = plan.context->pipelines.get_all(keys, plan.config);
  if (!built) return built.error();
  auto next = built->begin();
  plan.product = *next++;
  for (std::size_t i = 0; i < steps.before.size(); ++i) plan.before.push_back(*next++);
  for (std::size_t i = 0; i < steps.after.size(); ++i) plan.after.push_back(*next++);
  if (steps.product.in_memory) plan.carry = *next;
  return {};
}

}  // namespace

Error Context::Impl::nothing_is_legal(const ResolvedProblem& problem,
                                      const DeviceCaps& usable) const {
  const std::vector<std::string> reasons = tables()->why_nothing_is_legal(problem, usable);
  std::string message =
      concat("no configuration computes this problem on ", caps().name, ": ", reasons.front());
  if (reasons.size() > 1) {
    message += concat("; more reasons, which go to the log (VKGEMM_LOG): ", reasons.size() - 1);
  }
  if (log.enabled()) {
    for (std::size_t i = 1; i < reasons.size(); ++i) {
      log.write(LogLevel::info, "no configuration computes this problem: " + reasons[i]);
    }
  }
  return Error{Status::unsupported, std::move(message)};
}

MaybeError Context::Impl::set_function_cost(ResolvedProblem& problem) const {
  const std::uint32_t number = problem.epilogue.function;
  if (number == 0) return std::nullopt;
  const LinkedFunction* const function = pipelines.functions_of_steps().find(number);
  if (function == nullptr) {
    return invalid_argument(concat("epilogue.function is ", number, ": the context has ",
                                   pipelines.functions_of_steps().count(), " functions"));
  }
  problem.function_cost = function->cost;
  return std::nullopt;
}

Result<Problem> Context::Impl::in_native_type(const Problem& problem, const Config* config) {
  const std::optional<DataType> type = native_type(problem, usable_caps());
  if (!type) return problem;
  Problem native = problem;
  native.multiply_as = type;
  const Result<ResolvedProblem> resolved = resolve(native);
  if (!resolved) return problem;
  const auto wanted = [&](const DeviceCaps& known) {
    return wanted_kinds(*resolved, config, *tables(), known);
  };
  if (auto tested = test_wanted(wanted); !tested) return tested.error();
  const auto known = tables();
  const bool is_legal =
      known->best(*resolved, usable_caps()) &&
      (config == nullptr || !why_illegal(*config, *resolved, known->target(usable_caps())));
  return is_legal ? native : problem;
}

Result<Plan> Context::Impl::make_plan(const std::shared_ptr<Impl>& self, const Problem& problem,
                                      const Config* config) {
  if (lost) return device_lost_error();
  const Result<Problem> native = in_native_type(problem, config);
  if (!native) return native.error();
  Result<ResolvedProblem> resolved = resolve(*native);
  if (!resolved) return resolved.error();
  if (auto error = set_function_cost(*resolved)) return *error;
  const auto wanted = [&](const DeviceCaps& known) {
    return wanted_kinds(*resolved, config, *tables(), known);
  };
  if (auto tested = test_wanted(wanted); !tested) return tested.error();
  auto plan = std::make_shared<Plan::Impl>(self);
  const DeviceTables& tables = *plan->tables;
  if (auto error = tables.set_orders(*resolved, *plan->caps)) return *error;

  plan->is_product = true;
  plan->problem = problem;
  plan->resolved = *resolved;
  if (config != nullptr) plan->config = *config;
  if (resolved->is_empty()) {
    if (resolved->grouping && resolved->grouping->groups == 0 && log.enabled()) {
      log.write(LogLevel::warning, "grouping.groups is 0: the plan computes nothing");
    }
    return Plan(std::move(plan));
  }

  const DeviceCaps& usable = *plan->caps;
  const Target target = tables.target(usable);
  if (config == nullptr) {
    plan->choice = tables.best(*resolved, usable);
    if (!plan->choice) return nothing_is_legal(*resolved, usable);
    plan->row = plan->choice->row;
    plan->config = plan->choice->config;
    if (auto denied = tables.why_denied(plan->config, *resolved, usable)) {
      plan->overruled = overruled_text(*denied);
    }
  } else {
    std::optional<std::string> reason = why_illegal(*config, *resolved, target);
    if (reason && tables.overrules_denials(*resolved, usable)) {
      plan->overruled = overruled_text(*reason);
      reason = why_illegal(*config, *resolved, tables.target_without_denials(usable));
    }
    if (reason) return Error{Status::unsupported, concat(to_string(*config), ": ", *reason)};
    plan->row = tables.find(*config, *resolved);
  }
  if (!plan->overruled.empty() && log.enabled()) {
    log.write(LogLevel::warning, concat(plan->command_line(), ": ", plan->overruled));
  }
  plan->estimate_us = plan->choice ? std::optional(plan->choice->cost)
                                   : tables.estimate(plan->config, *resolved, usable);
  if (plan->choice && plan->choice->timed) {  // with all repetitions
    *plan->estimate_us /= static_cast<double>(resolved->repeats);
  }

  plan->dispatch_plan = lower(plan->config, *resolved, target);
  if (resolved->max_dispatch_us > 0.0) {
    plan->times =
        limit_dispatches(plan->dispatch_plan, plan->estimate_us, plan->config, *resolved, target);
  }
  plan->rules = OperandRules(*resolved, plan->dispatch_plan.workspace.bytes);
  plan->fingerprints = fingerprints_of(*resolved, usable);
  return finish(std::move(plan));
}

Result<Plan> Context::Impl::finish(std::shared_ptr<Plan::Impl> plan) {
  const bool logs = plan->is_product && tells_plans && log.enabled();
  if (auto built = build_pipelines(*plan); !built) {
    if (built.error().status == Status::device_lost) lost = true;
    if (logs) {
      log.write(LogLevel::error, concat(plan->command_line(), ": ", built.error().message));
    }
    return built.error();
  }
  if (may_give_up(plan->config, plan->resolved)) {
    const Result<VkDeviceAddress> counter = aborts.address();
    if (!counter) return counter.error();
    plan->aborts = *counter;
  }
  plan->dispatch_count = count_dispatches(*plan);
  if (logs) log.write(LogLevel::info, plan->command_line());
  if (logs && !told_of_untested) {
    const std::string text = plan->untested();
    if (!text.empty() && !told_of_untested.exchange(true)) log.write(LogLevel::info, text);
  }
  return Plan(std::move(plan));
}

Plan::Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

const Problem& Plan::problem() const noexcept { return impl_->problem; }
const Config& Plan::config() const noexcept { return impl_->config; }
const PackedLayout& Plan::layout() const noexcept { return impl_->layout; }
Operands Plan::operands() const noexcept {
  Operands out;
  for (const Operand& operand : impl_->rules.operands()) {
    (out.*operand.span).bytes = operand.bytes;
  }
  return out;
}
std::uint64_t Plan::workspace_bytes() const noexcept {
  return impl_->dispatch_plan.workspace.bytes;
}
std::string Plan::explain() const { return impl_->explain(); }
std::string Plan::command_line() const { return impl_->command_line(); }

std::uint32_t Plan::dispatch_count() const noexcept { return impl_->dispatch_count; }

std::optional<double> Plan::estimated_ms() const noexcept {
  std::optional<double> time = impl_->estimate_us;
  if (time) *time *= static_cast<double>(impl_->resolved.repeats) / 1000.0;
  return time;
}

Result<void> Plan::record(VkCommandBuffer command_buffer, const Operands& operands,
                          DispatchRange range) const {
  return without_exceptions([&]() -> Result<void> {
    const Impl& plan = *impl_;
    if (plan.context->lost.load(std::memory_order_relaxed)) return device_lost_error();
    if (command_buffer == VK_NULL_HANDLE) {
      return invalid_argument("command_buffer is VK_NULL_HANDLE");
    }
    if (auto checked = check_range(range, plan.dispatch_count); !checked) return checked;
    if (plan.dispatch_count == 0) return {};
    if (auto checked = plan.rules.check(operands); !checked) return checked;
    if (auto checked = check_fingerprints(plan.fingerprints, operands); !checked) return checked;

    Recorder recorder(*plan.context, command_buffer, range, plan.carry);
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

std::vector<VkPipeline> pipelines_of(const Plan& plan) {
  const Plan::Impl& impl = InternalAccess::impl(plan);
  std::vector<VkPipeline> all = impl.before;
  all.push_back(impl.product);
  all.insert(all.end(), impl.after.begin(), impl.after.end());
  if (impl.carry != VK_NULL_HANDLE) all.push_back(impl.carry);
  return all;
}
const DispatchPlan& dispatch_plan_of(const Plan& plan) noexcept {
  return InternalAccess::impl(plan).dispatch_plan;
}

}  // namespace vkgemm
