#include "problem/epilogue_steps.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "lib/constants.h"
#include "problem/data_type.hpp"
#include "problem/enumerators.hpp"

namespace vkgemm {
namespace {

bool is_function(StepOp op) noexcept { return op == StepOp::activate || op == StepOp::derivative; }
// True if the operand must be a tensor.
bool needs_tensor(StepOp op) noexcept {
  return op == StepOp::derivative || op == StepOp::store || op == StepOp::sum_columns;
}

bool names(const Epilogue& epilogue, StepOp op, std::size_t tensor) noexcept {
  return std::ranges::any_of(steps_of(epilogue), [=](const EpilogueStep& step) {
    return step.op == op && tensor_of(step) == tensor;
  });
}

// True if the step uses its number.
bool has_number(const EpilogueStep& step) noexcept {
  if (is_function(step.op)) return takes_number(step.activation);
  return step.op != StepOp::none && step.operand == StepOperand::number;
}

MaybeError check_step(const EpilogueStep& step, std::string_view name) {
  const std::string_view op = to_string(step.op);
  const bool has_operand = step.operand != StepOperand::number;
  if (is_function(step.op) == (step.activation == Activation::none)) {
    return invalid_argument(concat(name, ".activation is ", to_string(step.activation), ": ", op,
                                   is_function(step.op) ? " needs one" : " has none"));
  }
  if (has_operand ? step.op == StepOp::activate : needs_tensor(step.op)) {
    return invalid_argument(concat(name, ".operand is ", to_string(step.operand), ": ", op,
                                   has_operand ? " has no operand" : " needs a tensor"));
  }
  if (std::isnan(step.number)) {
    return invalid_argument(concat(name, ".number is nan: a number is needed"));
  }
  if (takes_number(step.activation) && step.number == 0.0f) {
    return invalid_argument(
        concat(name, ".number is 0: ", to_string(step.activation), " needs its number"));
  }
  if (step.number == 0.0f || has_number(step)) return std::nullopt;
  return invalid_argument(
      concat(name, ".number is ", step.number, ": ", to_string(step), " has no number"));
}

MaybeError check_tensor(const Problem& problem, std::size_t tensor) {
  const std::string_view name = tensor_names[tensor];
  const Epilogue& epilogue = problem.epilogue;
  const TensorShape shape = epilogue.tensors[tensor];
  const Matrix& matrix = problem.*tensor_matrices[tensor];
  const auto steps = steps_of(epilogue);
  const auto uses = std::ranges::count_if(
      steps, [tensor](const EpilogueStep& step) { return tensor_of(step) == tensor; });
  const bool stored = is_stored(epilogue, tensor), summed = is_summed(epilogue, tensor);
  const auto invalid = [&](const auto&... why) {
    return invalid_argument(concat("epilogue.tensors[", tensor, "] is ", to_string(shape), why...));
  };
  if (shape == TensorShape::none) {
    return uses == 0 ? MaybeError() : invalid(", and a step names ", name);
  }
  if (uses == 0) return invalid(", but no step names ", name);
  if ((stored || summed) && uses > 1) {
    return invalid(": a step ", stored ? "stores " : "sums columns to ", name,
                   ", so no other may name it");
  }
  if (stored && shape != TensorShape::matrix) {
    return invalid(": a step stores ", name, ", so it must be a matrix");
  }
  if (summed && shape != TensorShape::along_n) {
    return invalid(": a step sums columns to ", name, ", so it must be along_n");
  }
  if (!is_element(matrix.type)) {
    return unsupported(
        concat(name, ".type is ", to_string(matrix.type), ": it must be ", element_types));
  }
  if (summed && size_in_bytes(matrix.type) != sizeof(float)) {
    return unsupported(concat(name, ".type is ", to_string(matrix.type),
                              ": a step sums columns to ", name, ", so it must be f32"));
  }
  if (matrix.packing != Packing::plain) {
    return invalid_argument(
        concat(name, ".packing is ", to_string(matrix.packing), ": only A and B are packed"));
  }
  if (shape != TensorShape::matrix && matrix.ld) {
    return invalid_argument(concat(name, ".ld is ", *matrix.ld, " and epilogue.tensors[", tensor,
                                   "] is ", to_string(shape), ": only a matrix has one"));
  }
  const bool shared = matrix.batch_stride.value_or(0) == 0;
  if (shape == TensorShape::along_m && problem.grouping &&
      problem.grouping->along == GroupAlong::m && !shared) {
    return invalid_argument(concat(name, ".batch_stride is ", *matrix.batch_stride,
                                   ": with grouping.along m, a tensor along_m is one for all "
                                   "rows"));
  }
  return std::nullopt;
}

}  // namespace

std::span<const EpilogueStep> steps_of(const Epilogue& epilogue) noexcept {
  const auto end = std::ranges::find(epilogue.steps, StepOp::none, &EpilogueStep::op);
  return {epilogue.steps.begin(), end};
}

std::optional<std::size_t> tensor_of(const EpilogueStep& step) noexcept {
  if (step.operand == StepOperand::number) return std::nullopt;
  return static_cast<std::size_t>(step.operand) - static_cast<std::size_t>(StepOperand::t0);
}

bool is_stored(const Epilogue& epilogue, std::size_t tensor) noexcept {
  return names(epilogue, StepOp::store, tensor);
}

bool is_summed(const Epilogue& epilogue, std::size_t tensor) noexcept {
  return names(epilogue, StepOp::sum_columns, tensor);
}

std::optional<std::size_t> summed_tensor(const Epilogue& epilogue) noexcept {
  const auto steps = steps_of(epilogue);
  const auto step = std::ranges::find(steps, StepOp::sum_columns, &EpilogueStep::op);
  return step != steps.end() ? tensor_of(*step) : std::nullopt;
}

MaybeError check_steps(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const std::size_t count = steps_of(epilogue).size();
  std::optional<std::size_t> sum;  // the first step that sums columns
  for (std::size_t i = 0; i < most_steps; ++i) {
    const EpilogueStep& step = epilogue.steps[i];
    const std::string name = concat("epilogue.steps[", i, "]");
    if (i < count) {
      if (auto error = check_step(step, name)) return error;
      if (step.op != StepOp::sum_columns) continue;
      if (sum) {
        return unsupported(concat(name, " is ", to_string(step), ": epilogue.steps[", *sum,
                                  "] sums columns, and only one step may"));
      }
      sum = i;
    } else if (step != EpilogueStep{}) {
      return invalid_argument(concat(name, " is ", to_string(step), ", but epilogue.steps[", count,
                                     "].op is none, which ends the steps"));
    }
  }
  std::size_t places = (epilogue.beta != 0.0f ? 1 : 0) + (epilogue.aux ? 1 : 0) +
                       (epilogue.bias != Bias::none ? 1 : 0);
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (auto error = check_tensor(problem, i)) return error;
    if (!has_tensor(epilogue, i) || ++places <= PLACE_COUNT) continue;
    return unsupported(concat("epilogue.tensors[", i, "] is ", to_string(epilogue.tensors[i]),
                              ": an epilogue uses at most ", PLACE_COUNT,
                              " of C, aux, bias, t0 … t3"));
  }
  return std::nullopt;
}

OperandShape tensor_shape(const Problem& p, std::size_t tensor) noexcept {
  const Matrix& given = p.*tensor_matrices[tensor];
  const bool groups_of_rows = p.grouping && p.grouping->along == GroupAlong::m;
  const std::uint64_t products = p.grouping ? p.grouping->groups : p.batch;
  const std::uint64_t of_rows = groups_of_rows ? 1 : products;
  const std::uint64_t usual = is_summed(p.epilogue, tensor) ? p.n : 0;
  const std::uint64_t stride = given.batch_stride.value_or(usual);
  OperandShape vector;
  switch (p.epilogue.tensors[tensor]) {
    case TensorShape::none:
      return {};
    case TensorShape::scalar:
      vector = vector_along_n(given.type, 1, products, stride);
      break;
    case TensorShape::along_n:
      vector = vector_along_n(given.type, p.n, products, stride);
      break;
    case TensorShape::along_m:
      vector = vector_along_m(given.type, p.m, of_rows, stride);
      break;
    case TensorShape::matrix:
      return {given, p.m, p.n, of_rows};
  }
  vector.matrix.alignment = size_in_bytes(given.type);
  return vector;
}

std::string to_string(const EpilogueStep& step) {
  std::string text(to_string(step.op));
  if (step.activation != Activation::none) text += concat(':', to_string(step.activation));
  if (step.operand != StepOperand::number) text += concat(':', to_string(step.operand));
  if (has_number(step)) text += concat(':', step.number);
  return text;
}

Result<EpilogueStep> parse_epilogue_step(std::string_view text) {
  const auto wrong = [text](std::string_view part, std::string_view needed) {
    return invalid_argument(concat("step ", in_quotes(text), ": ", in_quotes(part), " is wrong, ",
                                   needed, " is needed"));
  };
  const std::vector<std::string_view> parts = split(text, ':');
  std::size_t next = 0;
  const auto part = [&] { return next < parts.size() ? parts[next] : std::string_view(); };
  EpilogueStep step;
  const auto op = parse_step_op(part());
  if (!op || *op == StepOp::none) return wrong(part(), "an operation");
  step.op = *op;
  ++next;
  if (is_function(step.op)) {
    const auto activation = parse_activation(part());
    if (!activation || *activation == Activation::none) return wrong(part(), "an activation");
    step.activation = *activation;
    ++next;
  }
  if (step.op != StepOp::activate) {
    const auto operand = parse_step_operand(part());
    if (operand && *operand != StepOperand::number) {
      step.operand = *operand;
      ++next;
    } else if (needs_tensor(step.op)) {
      return wrong(part(), "t0 … t3");
    }
  }
  if (has_number(step)) {
    const auto number = parse_number<float>(part());
    if (!number) return wrong(part(), is_function(step.op) ? "a number" : "t0 … t3 or a number");
    step.number = *number;
    ++next;
  }
  if (next < parts.size()) return wrong(part(), "nothing more");
  return step;
}

}  // namespace vkgemm
