// pack_plan.cpp: operands that are packed once: how they lie, and the dispatches that pack them.
#include <memory>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/parts/quantised.hpp"
#include "problem/enumerators.hpp"
#include "problem/inputs/input.hpp"
#include "problem/resolve.hpp"
#include "runtime/plan_impl.hpp"
#include "self_test/wanted_kinds.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

namespace {

// As much of a problem as its operand depends on, with the operand in this form.
Problem reduced(const Problem& problem, PackedOperand operand, Packing packing) {
  const bool is_a = operand == PackedOperand::a;
  Matrix matrix = is_a ? problem.a : problem.b;
  if (packing != Packing::plain && matrix.packing != Packing::packed) {
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
              .f32_arithmetic = problem.f32_arithmetic,
              .multiply_as = problem.multiply_as};
  if (!is_a) out.gated = problem.gated;
  if (codes) {
    out.quantised_b = problem.quantised_b;
    out.a_group_k = problem.a_group_k;
    if (out.a_group_k != 0) out.epilogue.row_scales = Scales::shared;
  }
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
Result<std::optional<ResolvedProblem>> resolve_packed(const DeviceTables& tables,
                                                      const Problem& problem, PackedOperand operand,
                                                      const DeviceCaps& caps) {
  std::optional<ResolvedProblem> out;
  if (problem.multiply_as) {
    if (!is_enumerator(*problem.multiply_as)) return resolve(problem).error();
    if (auto error = check_multiply_as(problem)) return *error;
  }
  if (problem.outer_batch != 1) {
    return unsupported(concat("outer_batch is ", problem.outer_batch,
                              ": pack its matrices as one batch, of batch * outer_batch"));
  }
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
  const Input* const input = find_input(problem, matrix);
  if (is_divided(problem, operand) ||
      (!is_quantised(problem, operand) &&
       (input == nullptr || !tables.gains_by_packing(*input, caps)))) {
    return out;
  }
  const Packing packing = matrix.packing == Packing::plain ? Packing::packed : matrix.packing;
  Result<ResolvedProblem> resolved = resolve(reduced(problem, operand, packing));
  if (!resolved) return resolved.error();
  if (auto error = tables.set_orders(*resolved, caps)) return *error;
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

// Adds the codes that are read, and gives the step that packs them.
Result<Step> pack_codes(OperandRules& rules, const Problem& problem, const ResolvedMatrix& copy,
                        std::uint64_t matrices, const Limits& limits) {
  const Result<CodeSource> source = code_source(problem, matrices);
  if (!source) return source.error();
  const auto read = [](OperandId id, const CodeArray& array) {
    return prepared_operand(id, array.bytes, array.alignment, /*written=*/false);
  };
  Operand codes = read(OperandId::codes, source->codes);
  codes.address = &Addresses::source;
  rules.add(codes);
  rules.add(read(OperandId::scales, source->scales));
  rules.add(read(OperandId::zeros, source->zeros));
  return pack_codes_step(problem, *source, copy, matrices, limits);
}

// The same for elements.
Result<Step> pack_elements(OperandRules& rules, const Problem& problem, PackedOperand operand,
                           const ResolvedMatrix& copy, const Limits& limits) {
  const Result<ResolvedProblem> source = resolve(reduced(problem, operand, Packing::plain));
  if (!source) return source.error();
  const ResolvedMatrix& from = operand_of(*source, operand);
  rules.add(prepared_operand(OperandId::source, from.bytes, from.alignment, /*written=*/false));
  return pack_step(*source, *source, copy, limits);
}

// The same, after a test of the kinds that decide on the order.
Result<std::optional<ResolvedProblem>> resolve_packed(Context::Impl& context,
                                                      const Problem& problem,
                                                      PackedOperand operand) {
  const auto tables = context.tables();
  const auto wanted = [&](const DeviceCaps& caps) -> std::vector<KernelKind> {
    const auto packed = resolve_packed(*tables, problem, operand, hopeful(caps));
    if (!packed || !*packed) return {};
    return wanted_by_orders(**packed, *tables, caps);
  };
  if (auto tested = context.test_wanted(wanted); !tested) return tested.error();
  return resolve_packed(*tables, problem, operand, context.usable_caps());
}

}  // namespace

Result<PackedLayout> Context::packed_layout(const Problem& problem, PackedOperand operand) const {
  return without_exceptions([&]() -> Result<PackedLayout> {
    const auto packed = resolve_packed(*impl_, problem, operand);
    if (!packed) return packed.error();
    if (!*packed) return PackedLayout{};
    return layout_of(**packed, operand, impl_->caps());
  });
}

Result<Plan> Context::plan_pack(const Problem& problem, PackedOperand operand) const {
  return without_exceptions([&] { return impl_->make_pack_plan(impl_, problem, operand); });
}

Result<Plan> Context::Impl::make_pack_plan(const std::shared_ptr<Impl>& self,
                                           const Problem& problem, PackedOperand operand) {
  if (lost.load(std::memory_order_relaxed)) return device_lost_error();
  const std::string_view name = operand == PackedOperand::a ? "a" : "b";
  const Matrix& given = operand == PackedOperand::a ? problem.a : problem.b;
  if (given.packing == Packing::packed) {
    return invalid_argument(
        concat(name, ".packing is ", to_string(given.packing),
               ": plan_pack takes plain, or packed_rows or packed_fragments for one order"));
  }
  if (is_byte(given.type) && !is_quantised(problem, operand) && !caps().int8_arithmetic) {
    return unsupported(
        concat(name, ".type is ", to_string(given.type), ": it needs ", byte_features));
  }
  const auto packed = resolve_packed(*this, problem, operand);
  if (!packed) return packed.error();
  auto plan = std::make_shared<Plan::Impl>(self);
  if (!*packed) return finish(std::move(plan));

  const ResolvedMatrix& copy = operand_of(**packed, operand);
  plan->packed = copy;
  plan->layout = layout_of(**packed, operand, caps());
  const std::uint64_t all = &copy == &(**packed).a ? (**packed).a_count() : (**packed).b_count();
  const std::uint64_t count = copy.batch_stride != 0 ? all : 1;
  if (const auto reason = why_not_packed(copy, count, caps().limits)) {
    return Error{Status::unsupported, concat(name, " can't be packed: ", *reason)};
  }
  plan->rules.add(prepared_operand(OperandId::packed, plan->layout.bytes, plan->layout.alignment,
                                   /*written=*/true));
  Result<Step> step = is_quantised(problem, operand)
                          ? pack_codes(plan->rules, problem, copy, count, caps().limits)
                          : pack_elements(plan->rules, problem, operand, copy, caps().limits);
  if (!step) return step.error();
  plan->dispatch_plan.product = *std::move(step);
  return finish(std::move(plan));
}

}  // namespace vkgemm
