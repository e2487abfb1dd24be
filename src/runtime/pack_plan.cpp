// pack_plan.cpp: operands that are packed once: how they lie, and the dispatches that pack them.
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "kernels/parts/pack.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/recorder.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct PackPlan::Impl {
  std::shared_ptr<Context::Impl> context;  // keeps the pipeline
  PackedLayout layout;
  std::uint64_t source_bytes = 0;
  std::uint32_t source_alignment = 1;
  Step step;  // no dispatches if there is nothing to be packed
  VkPipeline pipeline = VK_NULL_HANDLE;
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
  // A column-major D turns the product round, but not one of rows or gates.
  const bool turned = !problem.gated && !problem.row_reduction;
  Problem out{.m = is_a ? problem.m : 1,
              .n = is_a ? 1 : problem.n,
              .k = problem.k,
              .batch = problem.batch,
              .a = is_a ? matrix : other,
              .b = is_a ? other : matrix,
              .d = {.layout = turned ? problem.d.layout : Layout::row_major},
              .grouping = problem.grouping};
  if (!is_a) out.gated = problem.gated;
  return out;
}

const ResolvedMatrix& operand_of(const ResolvedProblem& problem, PackedOperand operand) {
  return (operand == PackedOperand::a) != problem.transposed ? problem.a : problem.b;
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
  if (to_string(matrix.type) == "?") return resolve(problem).error();
  if (is_divided(problem, operand) ||
      !context.tables.gains_by_packing(matrix.type, context.usable_caps())) {
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
  const std::uint64_t halves = matrix.halves_apart ? 2 : 1;
  return {.bytes = matrix.bytes,
          .matrix_bytes = halves * matrix.ld * matrix.lines() * size_in_bytes(matrix.type),
          .alignment = matrix.alignment,
          .fingerprint = fingerprint_of(matrix, is_a ? packed.m : packed.n, packed.k, caps)};
}

Result<void> check_span(std::string_view name, const DeviceSpan& span, std::uint64_t bytes,
                        std::uint64_t alignment) {
  if (span.bytes < bytes) {
    return Error{Status::span_too_small,
                 concat(name, ".bytes is ", span.bytes, ", the plan wants ", bytes)};
  }
  if (span.address == 0) return invalid_argument(concat(name, ".address is 0"));
  if (span.address > UINT64_MAX - bytes) {
    return invalid_argument(concat(name, " span of ", bytes, " bytes ends beyond 2^64"));
  }
  if (span.address % alignment == 0) return {};
  return Error{Status::misaligned, concat(name, ".address is ", span.address,
                                          ": the plan wants a multiple of ", alignment, " bytes")};
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
  return without_exceptions([&]() -> Result<PackPlan> {
    if (device_lost()) return device_lost_error();
    const std::string_view name = operand == PackedOperand::a ? "a" : "b";
    const Matrix& given = operand == PackedOperand::a ? problem.a : problem.b;
    if (given.packing != Packing::plain) {
      return invalid_argument(concat(name, ".packing is ", to_string(given.packing),
                                     ": plan_pack is told how the source lies, plain"));
    }
    const auto packed = resolve_packed(*impl_, problem, operand);
    if (!packed) return packed.error();
    auto plan = std::make_shared<PackPlan::Impl>();
    plan->context = impl_;
    if (!*packed) return PackPlan(std::move(plan));

    const Result<ResolvedProblem> source = resolve(reduced(problem, operand, Packing::plain));
    if (!source) return source.error();
    const ResolvedMatrix& copy = operand_of(**packed, operand);
    plan->layout = layout_of(**packed, operand, impl_->caps);
    const ResolvedMatrix& from = operand_of(*source, operand);
    plan->source_bytes = from.bytes;
    plan->source_alignment = from.alignment;
    const Limits& limits = impl_->caps.limits;
    const std::uint64_t count =
        plan->layout.bytes / std::max(plan->layout.matrix_bytes, std::uint64_t{1});
    if (const auto reason = why_not_packed(copy, count, limits)) {
      return Error{Status::unsupported, concat(name, " can't be packed: ", *reason)};
    }
    plan->step = pack_step(*source, copy, limits);
    const Result<VkPipeline> pipeline = impl_->pipelines.get(plan->step.key, Config{});
    if (!pipeline) {
      if (pipeline.error().status == Status::device_lost) impl_->lost = true;
      return pipeline.error();
    }
    plan->pipeline = *pipeline;
    return PackPlan(std::move(plan));
  });
}

PackPlan::PackPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
PackPlan::PackPlan(const PackPlan&) = default;
PackPlan::PackPlan(PackPlan&&) noexcept = default;
PackPlan& PackPlan::operator=(const PackPlan&) = default;
PackPlan& PackPlan::operator=(PackPlan&&) noexcept = default;
PackPlan::~PackPlan() = default;

const PackedLayout& PackPlan::layout() const noexcept { return impl_->layout; }
std::uint64_t PackPlan::source_bytes() const noexcept { return impl_->source_bytes; }

Result<void> PackPlan::record(VkCommandBuffer command_buffer, DeviceSpan source,
                              DeviceSpan destination) const {
  return without_exceptions([&]() -> Result<void> {
    const Impl& plan = *impl_;
    if (plan.context->lost.load(std::memory_order_relaxed)) return device_lost_error();
    if (command_buffer == VK_NULL_HANDLE) {
      return invalid_argument("command_buffer is VK_NULL_HANDLE");
    }
    if (plan.layout.bytes == 0) return {};
    if (auto checked = check_span("source", source, plan.source_bytes, plan.source_alignment);
        !checked) {
      return checked;
    }
    if (auto checked =
            check_span("destination", destination, plan.layout.bytes, plan.layout.alignment);
        !checked) {
      return checked;
    }
    if (source.address < destination.address + plan.layout.bytes &&
        destination.address < source.address + plan.source_bytes) {
      return Error{Status::overlapping_operands, "destination overlaps source"};
    }
    Addresses at;
    at.source = source.address;
    at.copy = destination.address;
    Recorder recorder(*plan.context, command_buffer, {});
    record_step(recorder, plan.step, plan.pipeline, at);
    return {};
  });
}

}  // namespace vkgemm
