// quantise_plan.cpp: rows that become codes: the checks, and the dispatches.
#include <memory>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "kernels/quantise_rows.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/recorder.hpp"
#include "runtime/span_check.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct QuantisePlan::Impl {
  std::shared_ptr<Context::Impl> context;  // keeps the pipeline
  RowQuantisation quantisation;
  ResolvedRowQuantisation resolved;
  Step step;  // no dispatches if there is nothing to be done
  VkPipeline pipeline = VK_NULL_HANDLE;
};

namespace {

// A span of a recording, and what the plan wants of it.
struct Rule {
  std::string_view name;
  const DeviceSpan& span;
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 1;

  bool overlaps(const Rule& other) const {
    return bytes != 0 && other.bytes != 0 && span.address < other.span.address + other.bytes &&
           other.span.address < span.address + bytes;
  }
};

}  // namespace

Result<QuantisePlan> Context::plan_quantise_rows(const RowQuantisation& quantisation) const {
  return without_exceptions([&]() -> Result<QuantisePlan> {
    if (impl_->lost.load(std::memory_order_relaxed)) return device_lost_error();
    Result<ResolvedRowQuantisation> resolved = resolve(quantisation);
    if (!resolved) return resolved.error();
    if (const auto reason = why_not_quantised(*resolved, impl_->caps)) {
      return Error{Status::unsupported, concat(impl_->caps.name, ": ", *reason)};
    }
    auto plan = std::make_shared<QuantisePlan::Impl>();
    plan->context = impl_;
    plan->quantisation = quantisation;
    plan->resolved = *resolved;
    plan->step = quantise_rows_step(*resolved, impl_->caps.limits);
    if (plan->step.dispatches.empty()) return QuantisePlan(std::move(plan));
    const Result<VkPipeline> pipeline = impl_->pipelines.get(plan->step.key, Config{});
    if (!pipeline) {
      if (pipeline.error().status == Status::device_lost) impl_->lost = true;
      return pipeline.error();
    }
    plan->pipeline = *pipeline;
    return QuantisePlan(std::move(plan));
  });
}

QuantisePlan::QuantisePlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
QuantisePlan::QuantisePlan(const QuantisePlan&) = default;
QuantisePlan::QuantisePlan(QuantisePlan&&) noexcept = default;
QuantisePlan& QuantisePlan::operator=(const QuantisePlan&) = default;
QuantisePlan& QuantisePlan::operator=(QuantisePlan&&) noexcept = default;
QuantisePlan::~QuantisePlan() = default;

const RowQuantisation& QuantisePlan::quantisation() const noexcept { return impl_->quantisation; }
std::uint64_t QuantisePlan::source_bytes() const noexcept { return impl_->resolved.source.bytes; }
std::uint64_t QuantisePlan::codes_bytes() const noexcept { return impl_->resolved.codes.bytes; }
std::uint64_t QuantisePlan::scales_bytes() const noexcept { return impl_->resolved.scales_bytes; }

Result<void> QuantisePlan::record(VkCommandBuffer command_buffer,
                                  const QuantiseSpans& spans) const {
  return without_exceptions([&]() -> Result<void> {
    const Impl& plan = *impl_;
    if (plan.context->lost.load(std::memory_order_relaxed)) return device_lost_error();
    if (command_buffer == VK_NULL_HANDLE) {
      return invalid_argument("command_buffer is VK_NULL_HANDLE");
    }
    if (plan.step.dispatches.empty()) return {};
    const ResolvedRowQuantisation& q = plan.resolved;
    const Rule source{"source", spans.source, q.source.bytes, q.source.alignment};
    const Rule codes{"codes", spans.codes, q.codes.bytes, q.codes.alignment};
    const Rule scales{"scales", spans.scales, q.scales_bytes, sizeof(float)};
    for (const Rule& rule : {source, codes, scales}) {
      if (rule.bytes == 0) continue;
      if (auto checked = check_span(rule.name, rule.span, rule.bytes, rule.alignment); !checked) {
        return checked;
      }
    }
    for (const auto& [written, other] :
         {std::pair(codes, source), std::pair(scales, source), std::pair(scales, codes)}) {
      if (!written.overlaps(other)) continue;
      return Error{Status::overlapping_operands, concat(written.name, " overlaps ", other.name)};
    }
    Addresses at;
    at.source = spans.source.address;
    at.codes = spans.codes.address;
    at.scales = spans.scales.address;
    Recorder recorder(*plan.context, command_buffer, {});
    record_step(recorder, plan.step, plan.pipeline, at);
    return {};
  });
}

}  // namespace vkgemm
