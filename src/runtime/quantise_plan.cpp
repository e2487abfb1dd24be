// quantise_plan.cpp: rows that become codes: the checks, and the dispatches.
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "kernels/quantise_rows.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/step_plan.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct QuantisePlan::Impl : StepPlan {
  RowQuantisation quantisation;
  ResolvedRowQuantisation resolved;
};

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
    plan->operands = {
        {"source", &Addresses::source, resolved->source.bytes, resolved->source.alignment},
        {"codes", &Addresses::codes, resolved->codes.bytes, resolved->codes.alignment, true},
        {"scales", &Addresses::scales, resolved->scales_bytes, sizeof(float), true},
    };
    if (auto prepared = plan->prepare(); !prepared) return prepared.error();
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
  return without_exceptions([&] {
    return impl_->record(command_buffer, std::array{spans.source, spans.codes, spans.scales});
  });
}

}  // namespace vkgemm
