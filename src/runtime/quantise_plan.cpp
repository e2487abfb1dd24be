// quantise_plan.cpp: plans of rows that become codes.
#include <memory>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "kernels/quantise_rows.hpp"
#include "runtime/plan_impl.hpp"

namespace vkgemm {

Result<Plan> Context::plan_quantise_rows(const RowQuantisation& quantisation) const {
  return without_exceptions([&]() -> Result<Plan> {
    if (device_lost()) return device_lost_error();
    const Result<ResolvedRowQuantisation> rows = resolve(quantisation);
    if (!rows) return rows.error();
    if (const auto reason = why_not_quantised(*rows, impl_->caps())) {
      return Error{Status::unsupported, concat(impl_->caps().name, ": ", *reason)};
    }
    auto plan = std::make_shared<Plan::Impl>(impl_);
    plan->dispatch_plan.product = quantise_rows_step(*rows, impl_->caps().limits);
    const ResolvedMatrix &source = rows->source, &codes = rows->codes;
    plan->rules.add(prepared_operand(OperandId::source, source.bytes, source.alignment,
                                     /*written=*/false));
    plan->rules.add(
        prepared_operand(OperandId::codes, codes.bytes, codes.alignment, /*written=*/true));
    plan->rules.add(prepared_operand(OperandId::scales, rows->scales_bytes, sizeof(float),
                                     /*written=*/true));
    return impl_->finish(std::move(plan));
  });
}

}  // namespace vkgemm
