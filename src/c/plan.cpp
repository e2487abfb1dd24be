// plan.cpp: plans and their recording.
#include "c/call.hpp"

using namespace vkgemm;
using namespace vkgemm::c;

namespace {

// The arguments of a recording, as the C++ API has them.
struct Recording {
  Operands operands;
  DispatchRange range;

  MaybeFailure read(const VkgemmOperands& given, const VkgemmDispatchRange* given_range) {
    if (auto failure = ToCpp::read(given, "operands", operands)) return failure;
    return given_range != nullptr ? ToCpp::read(*given_range, "range", range) : MaybeFailure{};
  }
};

// An operand to be packed, and its problem.
struct Packed {
  Problem problem;
  PackedOperand operand = PackedOperand::b;

  MaybeFailure read(const VkgemmProblem& given, const VkgemmPackedOperand& given_operand) {
    const auto found = to_cpp<PackedOperand>(value_of(given_operand));
    if (!found) {
      return invalid(concat("operand is ", value_of(given_operand), ": no VkgemmPackedOperand"));
    }
    operand = *found;
    return ToCpp::read(given, "problem", problem);
  }
};

MaybeFailure hand_over(Result<Plan> made, VkgemmPlan** plan) {
  if (!made) return failure_of(made.error());
  *plan = new VkgemmPlan(*std::move(made));
  return {};
}

}  // namespace

VkgemmPlan::VkgemmPlan(Plan&& from)
    : plan(std::move(from)),
      config(to_string(plan.config())),
      problem(ToC::structure<VkgemmProblem>(plan.problem(), &parts)) {}

VkgemmStatus vkgemm_plan_create(const VkgemmContext* context, const VkgemmProblem* problem,
                                const char* config, VkgemmPlan** plan, VkgemmError* error) {
  return call(
      error, {handle(context, "context"), pointer(problem, "problem"), pointer(plan, "plan")},
      [&]() -> MaybeFailure {
        Problem read;
        if (auto failure = ToCpp::read(*problem, "problem", read)) return failure;
        std::optional<Config> chosen;
        if (config != nullptr) {
          const Result<Config> parsed = parse_config(config);
          if (!parsed) return failure_of(parsed.error());
          chosen = *parsed;
        }
        return hand_over(
            chosen ? context->context.plan(read, *chosen) : context->context.plan(read), plan);
      });
}

VkgemmStatus vkgemm_plan_pack(const VkgemmContext* context, const VkgemmProblem* problem,
                              VkgemmPackedOperand operand, VkgemmPlan** plan, VkgemmError* error) {
  return call(error,
              {handle(context, "context"), pointer(problem, "problem"), pointer(plan, "plan")},
              [&]() -> MaybeFailure {
                Packed read;
                if (auto failure = read.read(*problem, operand)) return failure;
                return hand_over(context->context.plan_pack(read.problem, read.operand), plan);
              });
}

VkgemmStatus vkgemm_plan_quantise_rows(const VkgemmContext* context,
                                       const VkgemmRowQuantisation* quantisation, VkgemmPlan** plan,
                                       VkgemmError* error) {
  return call(
      error,
      {handle(context, "context"), pointer(quantisation, "quantisation"), pointer(plan, "plan")},
      [&]() -> MaybeFailure {
        RowQuantisation read;
        if (auto failure = ToCpp::read(*quantisation, "quantisation", read)) return failure;
        return hand_over(context->context.plan_quantise_rows(read), plan);
      });
}

VKGEMM_DESTROY(vkgemm_plan_destroy, VkgemmPlan*, plan)

VkgemmStatus vkgemm_plan_problem(const VkgemmPlan* plan, VkgemmProblem* problem) {
  return call(nullptr, {handle(plan, "plan"), pointer(problem, "problem")},
              [&] { return write_structure(plan->problem, problem, "problem"); });
}

VKGEMM_GET(vkgemm_plan_config, const VkgemmPlan*, plan, const char**, config, plan->config.c_str())

VKGEMM_GET_STRUCTURE(vkgemm_plan_layout, const VkgemmPlan*, plan, VkgemmPackedLayout*, layout,
                     plan->plan.layout())

VKGEMM_GET_STRUCTURE(vkgemm_plan_operands, const VkgemmPlan*, plan, VkgemmOperands*, operands,
                     plan->plan.operands())

VKGEMM_GET(vkgemm_plan_workspace_bytes, const VkgemmPlan*, plan, uint64_t*, bytes,
           plan->plan.workspace_bytes())

VKGEMM_GET(vkgemm_plan_dispatch_count, const VkgemmPlan*, plan, uint32_t*, count,
           plan->plan.dispatch_count())

VKGEMM_GET(vkgemm_plan_estimated_ms, const VkgemmPlan*, plan, double*, milliseconds,
           plan->plan.estimated_ms().value_or(std::numeric_limits<double>::quiet_NaN()))

VKGEMM_GET_TEXT(vkgemm_plan_explain, const VkgemmPlan*, plan, plan->plan.explain())

VKGEMM_GET_TEXT(vkgemm_plan_command_line, const VkgemmPlan*, plan, plan->plan.command_line())

VkgemmStatus vkgemm_plan_record(const VkgemmPlan* plan, VkCommandBuffer command_buffer,
                                const VkgemmOperands* operands, const VkgemmDispatchRange* range,
                                VkgemmError* error) {
  return call(error, {handle(plan, "plan"), pointer(operands, "operands")}, [&]() -> MaybeFailure {
    Recording read;
    if (auto failure = read.read(*operands, range)) return failure;
    return failure_of(plan->plan.record(command_buffer, read.operands, read.range));
  });
}

VkgemmStatus vkgemm_context_record(const VkgemmContext* context, const VkgemmPlan* plan,
                                   VkCommandBuffer command_buffer, const VkgemmOperands* operands,
                                   const VkgemmDispatchRange* range, VkgemmError* error) {
  return call(error,
              {handle(context, "context"), handle(plan, "plan"), pointer(operands, "operands")},
              [&]() -> MaybeFailure {
                Recording read;
                if (auto failure = read.read(*operands, range)) return failure;
                return failure_of(
                    context->context.record(plan->plan, command_buffer, read.operands, read.range));
              });
}

VkgemmStatus vkgemm_packed_layout(const VkgemmContext* context, const VkgemmProblem* problem,
                                  VkgemmPackedOperand operand, VkgemmPackedLayout* layout,
                                  VkgemmError* error) {
  return call(
      error, {handle(context, "context"), pointer(problem, "problem"), pointer(layout, "layout")},
      [&]() -> MaybeFailure {
        Packed read;
        if (auto failure = read.read(*problem, operand)) return failure;
        const auto found = context->context.packed_layout(read.problem, read.operand);
        if (!found) return failure_of(found.error());
        return write_structure(ToC::structure<VkgemmPackedLayout>(*found), layout, "layout");
      });
}
