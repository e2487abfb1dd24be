#include "problem/formula.hpp"

#include <limits>
#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/fields.hpp"
#include "problem/operands.hpp"

namespace vkgemm {
namespace {

// An expression, and whether it stands in brackets where it is a factor.
struct Expression {
  std::string text;
  bool is_sum = false;
};

std::string as_factor(const Expression& e) { return e.is_sum ? concat('(', e.text, ')') : e.text; }

std::string_view index_of(TensorShape shape) {
  switch (shape) {
    case TensorShape::none:
    case TensorShape::scalar:
      break;
    case TensorShape::along_n:
      return "[j]";
    case TensorShape::along_m:
      return "[i]";
    case TensorShape::matrix:
    case TensorShape::mask:
      return "[i, j]";
  }
  return "";
}

std::string operand_text(const Epilogue& epilogue, const EpilogueStep& step) {
  const auto tensor = tensor_of(step);
  if (!tensor) return concat(step.number);
  return concat(tensor_row(*tensor).name, index_of(epilogue.tensors[*tensor]));
}

std::string factor(float number) { return number == 1.0f ? "" : concat(number, " · "); }

// The value before the activation, of one of the products of a gate or of the only one.
Expression before_activation(const Epilogue& e, std::string_view product) {
  Expression out{concat(factor(e.alpha), e.row_scales != Scales::none ? "row_scales[i] · " : "",
                        e.column_scales != Scales::none ? "column_scales[j] · " : "", product)};
  if (e.beta != 0.0f) out.text += concat(" + ", factor(e.beta), "c[i, j]");
  if (e.bias != Bias::none) out.text += e.bias == Bias::along_n ? " + bias[j]" : " + bias[i]";
  out.is_sum = e.beta != 0.0f || e.bias != Bias::none;
  return out;
}

std::string call(std::string_view function, const std::string& text, float number, bool numbered) {
  return concat(function, '(', text, numbered ? concat(", ", number) : "", ')');
}

Expression with_step(const Epilogue& epilogue, const EpilogueStep& step, const Expression& v) {
  const bool numbered = takes_number(step.activation);
  const std::string x = operand_text(epilogue, step);
  const std::string_view function = to_string(step.activation);
  switch (step.op) {
    case StepOp::none:
    case StepOp::store:
    case StepOp::sum_columns:
    case StepOp::amax:
    case StepOp::argument:
    case StepOp::function:
      break;
    case StepOp::add:
      return {concat(v.text, " + ", x), true};
    case StepOp::subtract:
      return {concat(v.text, " - ", x), true};
    case StepOp::multiply:
      return {concat(as_factor(v), " · ", x)};
    case StepOp::divide:
      return {concat(as_factor(v), " / ", x)};
    case StepOp::maximum:
      return {concat("max(", v.text, ", ", x, ')')};
    case StepOp::minimum:
      return {concat("min(", v.text, ", ", x, ')')};
    case StepOp::activate:
      return {call(function, v.text, step.number, numbered)};
    case StepOp::derivative:
      return {concat(as_factor(v), " · ", call(concat(function, '\''), x, step.number, numbered))};
  }
  return v;
}

}  // namespace

std::string formula(const Problem& problem) {
  const Epilogue& e = problem.epilogue;
  Expression v;
  if (problem.gated) {
    v.text = concat(text_of(*problem.gated), '(', before_activation(e, "a·b_l").text, ", ",
                    before_activation(e, "a·b_r").text, ')');
  } else {
    v = before_activation(e, "a·b");
    if (e.activation != Activation::none) {
      v = {call(to_string(e.activation), v.text, 0.0f, false)};
    }
  }
  std::string lines, arguments;
  for (const EpilogueStep& step : steps_of(e)) {
    if (step.op == StepOp::argument) arguments += concat(", ", operand_text(e, step));
    if (step.op == StepOp::function) {
      v = {concat("function(", v.text, arguments, ')')};
      arguments.clear();
    }
    if (step.op == StepOp::store) {
      const auto tensor = tensor_of(step);
      const bool is_mask = tensor && e.tensors[*tensor] == TensorShape::mask;
      lines += concat("  ", operand_text(e, step), " = ", v.text, is_mask ? " > 0" : "", '\n');
    }
    if (step.op == StepOp::sum_columns) {
      lines += concat("  ", operand_text(e, step), " = sum over i of ", as_factor(v), '\n');
    }
    if (step.op == StepOp::amax) {
      lines += concat("  ", operand_text(e, step), " = max over i, j of |", v.text, "|\n");
    }
    v = with_step(e, step, v);
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (e.clamp_min || e.clamp_max) {
    v = {concat("clamp(", v.text, ", ", e.clamp_min.value_or(-infinity), ", ",
                e.clamp_max.value_or(infinity), ')')};
  }
  if (problem.row_reduction) v = {concat(to_string(problem.row_reduction->op), '(', v.text, ')')};
  if (e.zero_point != 0) v = {concat("round(", v.text, ") + ", e.zero_point), true};
  return lines + concat("  d[i, j] = ", v.text, '\n');
}

}  // namespace vkgemm
