// pack_plan.cpp: operands that are packed once: how they lie, and the dispatches that pack them.
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/parts/quantised.hpp"
#include "problem/enumerators.hpp"
#include "problem/inputs/input.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/step_plan.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct PackPlan::Impl : StepPlan {
  PackedLayout layout;
  CodeBytes source_bytes;  // of what is not quantised: as of codes
};

namespace {

// As much of a problem as its operand depends on, with the operand in this form.
Problem reduced(const Problem& problem, PackedOperand operand, Packing packing) {
  const bool is_a = operand == PackedOperand::a;
  Matrix matrix = is_a ? problem.a : problem.b;
  if (packing == Packing::packed && matrix.packing == Packing::plain) {
    matrix = {.type = matrix.type, .batch_stride = matrix.batch_stride};
    if (matrix.batch_stride != std::uint64_t{0}) matrix.batch_stride.reset();
  }
  matrix.packing = packing;
  const Matrix other{.type = matrix.type};
  const bool codes = !is_a && problem.quantised_b;
  // A column-major D turns the product round, but not one of rows, gates or codes.
  const bool turned = !problem.gated && !problem.row_reduction && !problem.quantised_b;
  Problem out{.m = is_a ? problem.m : 1,
              .n = is_a ? 1 : problem.n,
              .k = problem.k,
              .batch = problem.batch,
              .a = is_a ? matrix : other,
              .b = is_a ? other : matrix,
              .d = {.layout = turned ? problem.d.layout : Layout::row_major},
              .grouping = problem.grouping,
              .f32_arithmetic = problem.f32_arithmetic};
  if (!is_a) out.gated = problem.gated;
  if (codes) out.quantised_b = problem.quantised_b;
  return out;
}

const ResolvedMatrix& operand_of(const ResolvedProblem& problem, PackedOperand operand) {
  return (operand == PackedOperand::a) != problem.transposed ? problem.a : problem.b;
}

bool is_quantised(const Problem& problem, PackedOperand operand) {
  return operand == PackedOperand::b && problem.quantised_b;
}

// Groups begin anywhere in what they divide.
bool is_divided(const Problem& problem, PackedOperand operand) {
  return problem.grouping &&
         (operand == PackedOperand::a || problem.grouping->along == GroupAlong::k);
}

// The problem with the operand packed; nothing if this device gains nothing by it.
Result<std::optional<ResolvedProblem>> resolve_packed(const Context::Impl& context,
                                                      const Problem& problem,
                                                      PackedOperand operand) {
  std::optional<ResolvedProblem> out;
  const Matrix& matrix = operand == PackedOperand::a ? problem.a : problem.b;
  if (!is_enumerator(matrix.type)) return resolve(problem).error();
  if (is_quantised(problem, operand)) {
    if (auto error = check_quantised(problem)) return *error;
    if (is_divided(problem, operand)) {
      return Error{
          Status::unsupported,
          concat("quantised_b.type is ", to_string(problem.quantised_b->type),
                 " and grouping.along is k: groups begin anywhere in B, it can't be packed")};
    }
  }
  if (!is_enumerator(problem.f32_arithmetic)) return resolve(problem).error();
  const Input* const input = find_input(matrix.type, problem.f32_arithmetic);
  if (is_divided(problem, operand) ||
      (!is_quantised(problem, operand) &&
       (input == nullptr || !context.tables.gains_by_packing(*input, context.usable_caps())))) {
    return out;
  }
  Result<ResolvedProblem> resolved = resolve(reduced(problem, operand, Packing::packed));
  if (!resolved) return resolved.error();
  if (auto error = context.tables.set_orders(*resolved, context.usable_caps())) return *error;
  if (operand_of(*resolved, operand).bytes != 0) out = *resolved;
  return out;
}

PackedLayout layout_of(const ResolvedProblem& packed, PackedOperand operand,
                       const DeviceCaps& caps) {
  const ResolvedMatrix& matrix = operand_of(packed, operand);
  const bool is_a = &matrix == &packed.a;
  return {.bytes = matrix.bytes,
          .matrix_bytes = matrix.packed_elements() * matrix.element_bytes(),
          .alignment = matrix.alignment,
          .fingerprint = fingerprint_of(matrix, is_a ? packed.m : packed.n, packed.k, caps)};
}

// The dispatch that packs codes, and what it reads.
Result<void> set_codes(PackPlan::Impl& plan, const Problem& problem, const ResolvedMatrix& copy,
                       std::uint64_t matrices) {
  const Result<CodeSource> source = code_source(problem, matrices);
  if (!source) return source.error();
  plan.source_bytes = {source->codes.bytes, source->scales.bytes, source->zeros.bytes};
  const CodeArray &codes = source->codes, &scales = source->scales;
  plan.operands.push_back({"codes", &Addresses::source, codes.bytes, codes.alignment});
  plan.operands.push_back({"scales", &Addresses::scales, scales.bytes, scales.alignment});
  plan.operands.push_back({"zeros", &Addresses::zeros, source->zeros.bytes});
  plan.step = pack_codes_step(problem, *source, copy, matrices, plan.context->caps.limits);
  return {};
}

// The same of elements.
Result<void> set_elements(PackPlan::Impl& plan, const Problem& problem, PackedOperand operand,
                          const ResolvedMatrix& copy) {
  const Result<ResolvedProblem> source = resolve(reduced(problem, operand, Packing::plain));
  if (!source) return source.error();
  const ResolvedMatrix& from = operand_of(*source, operand);
  plan.source_bytes.codes = from.bytes;
  plan.operands.push_back({"source", &Addresses::source, from.bytes, from.alignment});
  plan.step = pack_step(*source, *source, copy, plan.context->caps.limits);
  return {};
}

}  // namespace

Result<PackedLayout> Context::packed_layout(const Problem& problem, PackedOperand operand) const {
  return without_exceptions([&]() -> Result<PackedLayout> {
    const auto packed = resolve_packed(*impl_, problem, operand);
    if (!packed) return packed.error();
    if (!*packed) return PackedLayout{};
    return layout_of(**packed, operand, impl_->caps);
  });
}

Result<PackPlan> Context::plan_pack(const Problem& problem, PackedOperand operand) const {
  return without_exceptions([&] { return impl_->make_pack_plan(impl_, problem, operand); });
}

Result<PackPlan> Context::Impl::make_pack_plan(const std::shared_ptr<Impl>& self,
                                               const Problem& problem, PackedOperand operand) {
  if (lost.load(std::memory_order_relaxed)) return device_lost_error();
  const std::string_view name = operand == PackedOperand::a ? "a" : "b";
  const Matrix& given = operand == PackedOperand::a ? problem.a : problem.b;
  if (given.packing != Packing::plain) {
    return invalid_argument(concat(name, ".packing is ", to_string(given.packing),
                                   ": plan_pack is told how the source lies, plain"));
  }
  const auto packed = resolve_packed(*this, problem, operand);
  if (!packed) return packed.error();
  auto plan = std::make_shared<PackPlan::Impl>();
  plan->context = self;
  if (!*packed) return PackPlan(std::move(plan));

  const ResolvedMatrix& copy = operand_of(**packed, operand);
  plan->layout = layout_of(**packed, operand, caps);
  const std::uint64_t all = &copy == &(**packed).a ? (**packed).a_count() : (**packed).b_count();
  const std::uint64_t count = copy.batch_stride != 0 ? all : 1;
  if (const auto reason = why_not_packed(copy, count, caps.limits)) {
    return Error{Status::unsupported, concat(name, " can't be packed: ", *reason)};
  }
  plan->operands = {{"destination", &Addresses::copy, plan->layout.bytes, plan->layout.alignment,
                     /*written=*/true}};
  const Result<void> set = is_quantised(problem, operand)
                               ? set_codes(*plan, problem, copy, count)
                               : set_elements(*plan, problem, operand, copy);
  if (!set) return set.error();
  if (auto prepared = plan->prepare(); !prepared) return prepared.error();
  return PackPlan(std::move(plan));
}

PackPlan::PackPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
PackPlan::PackPlan(const PackPlan&) = default;
PackPlan::PackPlan(PackPlan&&) noexcept = default;
PackPlan& PackPlan::operator=(const PackPlan&) = default;
PackPlan& PackPlan::operator=(PackPlan&&) noexcept = default;
PackPlan::~PackPlan() = default;

const PackedLayout& PackPlan::layout() const noexcept { return impl_->layout; }
std::uint64_t PackPlan::source_bytes() const noexcept { return impl_->source_bytes.codes; }
CodeBytes PackPlan::code_bytes() const noexcept { return impl_->source_bytes; }

Result<void> PackPlan::record(VkCommandBuffer command_buffer, DeviceSpan source,
                              DeviceSpan destination) const {
  return record_codes(command_buffer, CodeSpans{.codes = source}, destination);
}

Result<void> PackPlan::record_codes(VkCommandBuffer command_buffer, const CodeSpans& source,
                                    DeviceSpan destination) const {
  return without_exceptions([&] {
    if (impl_->operands.size() == 2) {
      return impl_->record(command_buffer, std::array{destination, source.codes});
    }
    return impl_->record(command_buffer,
                         std::array{destination, source.codes, source.scales, source.zeros});
  });
}

}  // namespace vkgemm
