#include "problem/epilogue_steps.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "lib/constants.h"
#include "problem/data_type.hpp"
#include "problem/enumerators.hpp"
#include "problem/row_index.hpp"

namespace vkgemm {
namespace {

// True if the step names an activation.
bool names_activation(StepOp op) noexcept {
  return op == StepOp::activate || op == StepOp::derivative;
}
// True if the step has neither operand nor number of its own.
bool has_none(StepOp op) noexcept { return op == StepOp::activate || op == StepOp::function; }

// A step that writes to its tensor. only: an epilogue has at most one.
struct Writer {
  StepOp op;
  std::string_view writes;
  bool only;
};
constexpr Writer writers[] = {{StepOp::store, "stores ", false},
                              {StepOp::sum_columns, "sums columns to ", true},
                              {StepOp::amax, "writes amax to ", true}};

const Writer* writer_row(StepOp op) noexcept {
  const Writer* const row = std::ranges::find(writers, op, &Writer::op);
  return row != std::end(writers) ? row : nullptr;
}

// True if the operand must be a tensor.
bool needs_tensor(StepOp op) noexcept {
  return op == StepOp::derivative || writer_row(op) != nullptr;
}

std::optional<std::size_t> tensor_of_step(const Epilogue& epilogue, StepOp op) noexcept {
  const auto steps = steps_of(epilogue);
  const auto step = std::ranges::find(steps, op, &EpilogueStep::op);
  return step != steps.end() ? tensor_of(*step) : std::nullopt;
}

// A line of a mask is of whole words.
constexpr std::uint64_t mask_unit = 4;
std::uint64_t mask_bytes(std::uint64_t bits) noexcept {
  return divided_up(bits, 8 * mask_unit) * mask_unit;
}

// True if the step uses its number.
bool has_number(const EpilogueStep& step) noexcept {
  if (names_activation(step.op)) return takes_number(step.activation);
  return step.op != StepOp::none && step.op != StepOp::function &&
         step.operand == StepOperand::number;
}

MaybeError check_step(const EpilogueStep& step, std::string_view name) {
  const std::string_view op = to_string(step.op);
  const bool has_operand = step.operand != StepOperand::number;
  if (names_activation(step.op) == (step.activation == Activation::none)) {
    return invalid_argument(concat(name, ".activation is ", to_string(step.activation), ": ", op,
                                   names_activation(step.op) ? " needs one" : " has none"));
  }
  if (has_operand ? has_none(step.op) : needs_tensor(step.op)) {
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

// Some operations are those of one step at most.
MaybeError check_only(const Epilogue& epilogue, std::size_t i, std::string_view name) {
  const StepOp op = epilogue.steps[i].op;
  const Writer* const writer = writer_row(op);
  if (writer == nullptr || !writer->only) return std::nullopt;
  const auto first = std::ranges::find(epilogue.steps, op, &EpilogueStep::op);
  const auto place = static_cast<std::size_t>(first - epilogue.steps.begin());
  if (place == i) return std::nullopt;
  return unsupported(concat(name, " is ", to_string(epilogue.steps[i]), ": epilogue.steps[", place,
                            "] is ", to_string(op), ", and only one step may be"));
}

// The arguments stand before the function that takes them, and steps that call it need one.
MaybeError check_functions(const Epilogue& epilogue) {
  std::size_t arguments = 0;
  const auto steps = steps_of(epilogue);
  const bool called = calls_function(epilogue);
  if (called != (epilogue.function != 0)) {
    return invalid_argument(concat("epilogue.function is ", epilogue.function,
                                   called ? ", and a step calls it" : ", but no step calls it"));
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    arguments = steps[i].op == StepOp::argument   ? arguments + 1
                : steps[i].op == StepOp::function ? 0
                                                  : arguments;
    if (arguments <= MOST_ARGUMENTS) continue;
    return invalid_argument(concat("epilogue.steps[", i, "] is ", to_string(steps[i]),
                                   ": a function has at most ", MOST_ARGUMENTS, " arguments"));
  }
  if (arguments == 0) return std::nullopt;
  return invalid_argument(
      concat("epilogue.steps has ", arguments, " arguments that no function behind them takes"));
}

// A tensor's type, shape and strides, for the step that writes to it.
MaybeError check_written(const Problem& problem, std::size_t tensor, StepOp op) {
  const std::string_view name = tensor_names[tensor];
  const TensorShape shape = problem.epilogue.tensors[tensor];
  const Matrix& matrix = problem.*tensor_matrices[tensor];
  const std::string does = concat(": a step ", writes(op), name, ", so it must be ");
  const bool stored = op == StepOp::store;
  const TensorShape wanted = stored                      ? TensorShape::matrix
                             : op == StepOp::sum_columns ? TensorShape::along_n
                                                         : TensorShape::scalar;
  if (shape != wanted && !(stored && shape == TensorShape::mask)) {
    return invalid_argument(concat("epilogue.tensors[", tensor, "] is ", to_string(shape), does,
                                   stored ? "a matrix or a mask" : to_string(wanted)));
  }
  if (!stored && matrix.type != sum_type) {
    return unsupported(
        concat(name, ".type is ", to_string(matrix.type), does, to_string(sum_type)));
  }
  if (op == StepOp::amax && matrix.batch_stride.value_or(0) != 0) {
    return unsupported(concat(name, ".batch_stride is ", *matrix.batch_stride, does,
                              "0: one number is for the whole batch"));
  }
  if (op == StepOp::amax && matrix.outer_batch_stride.value_or(0) != 0) {
    return unsupported(concat(name, ".outer_batch_stride is ", *matrix.outer_batch_stride, does,
                              "0: one number is for the whole batch"));
  }
  return std::nullopt;
}

MaybeError check_mask(const Problem& problem, std::size_t tensor) {
  const std::string_view name = tensor_names[tensor];
  const Matrix& matrix = problem.*tensor_matrices[tensor];
  if (matrix.type != mask_type) {
    return unsupported(concat(name, ".type is ", to_string(matrix.type), ": a mask must be ",
                              to_string(mask_type)));
  }
  if (matrix.layout != problem.d.layout) {
    return unsupported(concat(name, ".layout is ", to_string(matrix.layout), " and d.layout is ",
                              to_string(problem.d.layout), ": a mask must have the layout of D"));
  }
  const auto check = [&](std::string_view field, std::uint64_t value) {
    return value % mask_unit == 0
               ? MaybeError()
               : invalid_argument(concat(name, '.', field, " is ", value,
                                         ": of a mask it must be a multiple of ", mask_unit));
  };
  if (auto error = check("ld", matrix.ld.value_or(0))) return error;
  if (auto error = check("batch_stride", matrix.batch_stride.value_or(0))) return error;
  if (auto error = check("outer_batch_stride", matrix.outer_batch_stride.value_or(0))) return error;
  return check("alignment", matrix.alignment);
}

MaybeError check_tensor(const Problem& problem, std::size_t tensor) {
  const std::string_view name = tensor_names[tensor];
  const Epilogue& epilogue = problem.epilogue;
  const TensorShape shape = epilogue.tensors[tensor];
  const Matrix& matrix = problem.*tensor_matrices[tensor];
  const auto steps = steps_of(epilogue);
  const auto uses = std::ranges::count_if(
      steps, [tensor](const EpilogueStep& step) { return tensor_of(step) == tensor; });
  const StepOp writer = writer_of(epilogue, tensor);
  const auto invalid = [&](const auto&... why) {
    return invalid_argument(concat("epilogue.tensors[", tensor, "] is ", to_string(shape), why...));
  };
  if (shape == TensorShape::none) {
    return uses == 0 ? MaybeError() : invalid(", and a step names ", name);
  }
  if (uses == 0) return invalid(", but no step names ", name);
  if (writer != StepOp::none && uses > 1) {
    return invalid(": a step ", writes(writer), name, ", so no other may name it");
  }
  if (!is_element(matrix.type)) {
    return unsupported(
        concat(name, ".type is ", to_string(matrix.type), ": it must be ", element_types));
  }
  if (writer != StepOp::none) {
    if (auto error = check_written(problem, tensor, writer)) return error;
  }
  if (matrix.packing != Packing::plain) {
    return invalid_argument(
        concat(name, ".packing is ", to_string(matrix.packing), ": only A and B are packed"));
  }
  if (shape == TensorShape::mask) return check_mask(problem, tensor);
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

bool has_step(const Epilogue& epilogue, StepOp op, std::size_t tensor) noexcept {
  return std::ranges::any_of(steps_of(epilogue), [=](const EpilogueStep& step) {
    return step.op == op && tensor_of(step) == tensor;
  });
}

StepOp writer_of(const Epilogue& epilogue, std::size_t tensor) noexcept {
  for (const Writer& writer : writers) {
    if (has_step(epilogue, writer.op, tensor)) return writer.op;
  }
  return StepOp::none;
}

std::string_view writes(StepOp op) noexcept {
  const Writer* const row = writer_row(op);
  return row != nullptr ? row->writes : std::string_view("reads ");
}

std::optional<std::size_t> summed_tensor(const Epilogue& epilogue) noexcept {
  return tensor_of_step(epilogue, StepOp::sum_columns);
}

std::optional<std::size_t> amax_tensor(const Epilogue& epilogue) noexcept {
  return tensor_of_step(epilogue, StepOp::amax);
}

bool calls_function(const Epilogue& epilogue) noexcept {
  return std::ranges::find(steps_of(epilogue), StepOp::function, &EpilogueStep::op) !=
         steps_of(epilogue).end();
}

std::optional<std::size_t> mask_tensor(const Epilogue& epilogue) noexcept {
  const auto mask = std::ranges::find(epilogue.tensors, TensorShape::mask);
  if (mask == epilogue.tensors.end()) return std::nullopt;
  return static_cast<std::size_t>(mask - epilogue.tensors.begin());
}

MaybeError check_steps(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const std::size_t count = steps_of(epilogue).size();
  for (std::size_t i = 0; i < most_steps; ++i) {
    const EpilogueStep& step = epilogue.steps[i];
    const std::string name = concat("epilogue.steps[", i, "]");
    if (i < count) {
      if (auto error = check_step(step, name)) return error;
      if (auto error = check_only(epilogue, i, name)) return error;
      continue;
    }
    if (step == EpilogueStep{}) continue;
    return invalid_argument(concat(name, " is ", to_string(step), ", but epilogue.steps[", count,
                                   "].op is none, which ends the steps"));
  }
  if (auto error = check_functions(epilogue)) return error;
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

DataType usual_type(const Epilogue& epilogue, std::size_t tensor, DataType otherwise) noexcept {
  if (epilogue.tensors[tensor] == TensorShape::mask) return mask_type;
  const StepOp writer = writer_of(epilogue, tensor);
  return writer == StepOp::sum_columns || writer == StepOp::amax ? sum_type : otherwise;
}

OperandShape tensor_shape(const Problem& p, std::size_t tensor) noexcept {
  const Matrix& given = p.*tensor_matrices[tensor];
  const bool groups_of_rows = p.grouping && p.grouping->along == GroupAlong::m;
  const std::uint64_t products = p.grouping ? matrices_of(*p.grouping) : p.batch;
  const std::uint64_t of_rows = groups_of_rows ? 1 : products;
  const std::uint64_t usual = is_summed(p.epilogue, tensor) ? p.n : 0;
  const std::uint64_t stride = given.batch_stride.value_or(usual);
  OperandShape vector;
  switch (p.epilogue.tensors[tensor]) {
    case TensorShape::none:
      return {};
    case TensorShape::scalar:
      vector = vector_along_n(given.type, 1,
                              has_step(p.epilogue, StepOp::amax, tensor) ? 1 : products, stride);
      break;
    case TensorShape::along_n:
      vector = vector_along_n(given.type, p.n, products, stride);
      break;
    case TensorShape::along_m:
      vector = vector_along_m(given.type, p.m, of_rows, stride);
      break;
    case TensorShape::matrix:
      return {given, p.m, p.n, of_rows};
    case TensorShape::mask: {
      const bool row_major = given.layout == Layout::row_major;
      return {.matrix = given,
              .rows = row_major ? p.m : mask_bytes(p.m),
              .cols = row_major ? mask_bytes(p.n) : p.n,
              .count = of_rows,
              .is_mask = true};
    }
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
  if (names_activation(step.op)) {
    const auto activation = parse_activation(part());
    if (!activation || *activation == Activation::none) return wrong(part(), "an activation");
    step.activation = *activation;
    ++next;
  }
  if (!has_none(step.op)) {
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
    if (!number)
      return wrong(part(), names_activation(step.op) ? "a number" : "t0 … t3 or a number");
    step.number = *number;
    ++next;
  }
  if (next < parts.size()) return wrong(part(), "nothing more");
  return step;
}

}  // namespace vkgemm
