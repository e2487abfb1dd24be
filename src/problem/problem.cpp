// problem.cpp: names of the problem's parts, and the command line that repeats a problem.
#include "vkgemm/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "base/enum_names.hpp"
#include "base/text.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/fields.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm {
namespace {

// The command line of a problem under construction.
class CommandLine {
 public:
  explicit CommandLine(const Problem& problem) : problem_(problem) {}

  void number(const Field& field, const auto& value, const auto& usual) {
    add(field, value != usual, concat(value));
  }
  template <class Enum>
  void enumerator(const Field& field, const Enum& value, const Enum& usual) {
    constexpr bool is_switch = std::is_same_v<Enum, Packing> || std::is_same_v<Enum, GroupedB>;
    add(field, value != usual, is_switch ? "" : to_string(value));
    if constexpr (std::is_same_v<Enum, Packing>) {
      if (value == Packing::packed_rows) text_ += "-rows";
      if (value == Packing::packed_fragments) text_ += "-fragments";
    }
  }
  template <class Enum>
  void enumerator(const Field& field, const std::optional<Enum>& value,
                  const std::optional<Enum>&) {
    if (value) add(field, true, to_string(*value));
  }
  void boolean(const Field& field, bool value, bool usual) { add(field, value != usual, ""); }
  void size(const Field& field, const auto& value, const auto&) {
    if (value) add(field, true, concat(*value));
  }
  void real(const Field& field, const auto& value, const auto& usual) { size(field, value, usual); }

  void part(const Field& field, const Matrix& matrix, const Matrix&) {
    add(field, matrix.type != problem_.a.type, to_string(matrix.type));
  }
  void part(const Field&, const Epilogue& epilogue, const Epilogue& usual) {
    add_matrix("a", problem_.a, Layout::row_major);
    add_matrix("b", problem_.b, Layout::row_major);
    add_matrix("d", problem_.d, Layout::row_major);
    FieldsOf<Epilogue>::visit(*this, epilogue, usual);
  }
  void list(const Field& field, const std::array<EpilogueStep, most_steps>& steps, const auto&) {
    const std::string text = text_of(steps);
    add(field, !text.empty(), text);
  }
  void list(const Field& field, const std::array<TensorShape, most_tensors>& tensors, const auto&) {
    const std::string text = text_of(tensors);
    add(field, !text.empty(), text);
    for (std::size_t i = 0; i < most_tensors; ++i) {
      if (tensors[i] != TensorShape::none) add_typed(tensor_names[i], tensor_matrices[i]);
    }
  }
  void part(const Field& field, const SplitK& split, const SplitK& usual) {
    add(field, split != usual, text_of(split));
  }
  void part(const Field& field, const std::optional<Gated>& gated, const auto&) {
    if (gated) add(field, true, text_of(*gated));
  }
  void part(const Field& field, const std::optional<Quantisation>& codes, const auto&) {
    if (codes) add(field, true, to_string(*codes));
  }
  template <class Part>
  void part(const Field&, const std::optional<Part>& part, const auto&) {
    const Part usual;
    if (part) FieldsOf<Part>::visit(*this, *part, usual);
  }

  std::string take() { return std::move(text_); }

 private:
  void add(const Field& field, bool differs, std::string_view value) {
    if (field.option == nullptr || !field.used || !(differs || field.always)) return;
    if (!text_.empty()) text_ += ' ';
    text_ += option_name(field.option, matrix_);
    if (!value.empty()) text_.append(1, ' ').append(value);
    if (field.matrix != nullptr) add_typed(field.matrix == &Problem::c ? "c" : "aux", field.matrix);
  }

  void add_typed(std::string_view name, Matrix Problem::*matrix) {
    matrix_ = name;
    add({.option = matrix_type.option, .always = true}, true, to_string((problem_.*matrix).type));
    add_matrix(name, problem_.*matrix, problem_.d.layout);
  }

  // All but its type.
  void add_matrix(std::string_view name, const Matrix& matrix, Layout usual) {
    matrix_ = name;
    const Matrix defaults{.type = matrix.type, .layout = usual};
    FieldsOf<Matrix>::visit(*this, matrix, defaults);
  }

  const Problem& problem_;
  std::string text_;
  std::string_view matrix_;  // of the options with a %
};

}  // namespace

std::string option_name(std::string_view names, std::string_view matrix) {
  std::string name(names.substr(0, names.find(',')));
  if (const std::size_t at = name.find('%'); at != std::string::npos) name.replace(at, 1, matrix);
  return name;
}

std::string text_of(const Gated& gated) {
  std::string text(to_string(gated.gate));
  const Gated usual;
  if (gated.b != usual.b) text += concat(':', to_string(gated.b));
  if (gated.swapped) text += ":swapped";
  if (gated.limit != usual.limit) text += concat(":limit=", gated.limit);
  if (gated.slope != usual.slope) text += concat(":slope=", gated.slope);
  if (gated.offset != usual.offset) text += concat(":offset=", gated.offset);
  return text;
}

std::string text_of(std::span<const EpilogueStep> steps) {
  std::string text;
  for (const EpilogueStep& step : steps) {
    if (step.op != StepOp::none) text += concat(text.empty() ? "" : ",", to_string(step));
  }
  return text;
}

std::string text_of(std::span<const TensorShape> tensors) {
  const auto none = [](TensorShape shape) { return shape == TensorShape::none; };
  std::string text;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (std::ranges::all_of(tensors.subspan(i), none)) break;
    text += concat(i == 0 ? "" : ",", to_string(tensors[i]));
  }
  return text;
}

std::string text_of(const SplitK& split) {
  std::string text = split.slices == 0 ? "auto" : concat(split.slices);
  if (split.reduction_mode) text += concat(':', to_string(*split.reduction_mode));
  return text;
}

template <class Enum>
std::string_view enumerator_name(Enum value) noexcept {
  return name_of(enumerator_names<Enum>, value);
}
std::string_view to_string(DataType type) noexcept { return enumerator_name(type); }
std::string_view to_string(Layout layout) noexcept { return enumerator_name(layout); }
std::string_view to_string(Packing packing) noexcept { return enumerator_name(packing); }
std::string_view to_string(Activation activation) noexcept { return enumerator_name(activation); }
std::string_view to_string(StepOp op) noexcept { return enumerator_name(op); }
std::string_view to_string(StepOperand operand) noexcept { return enumerator_name(operand); }
std::string_view to_string(TensorShape shape) noexcept { return enumerator_name(shape); }
std::string_view to_string(Bias bias) noexcept { return enumerator_name(bias); }
std::string_view to_string(Scales scales) noexcept { return enumerator_name(scales); }
std::string_view to_string(Gate gate) noexcept { return enumerator_name(gate); }
std::string_view to_string(GatedB b) noexcept { return enumerator_name(b); }
std::string_view to_string(OffsetType type) noexcept { return enumerator_name(type); }
std::string_view to_string(GroupAlong along) noexcept { return enumerator_name(along); }
std::string_view to_string(GroupedB b) noexcept { return enumerator_name(b); }
std::string_view to_string(GroupBounds bounds) noexcept { return enumerator_name(bounds); }
std::string_view to_string(RowOp op) noexcept { return enumerator_name(op); }
std::string_view to_string(F32Arithmetic arithmetic) noexcept {
  const Input* const input = find_input(arithmetic);
  return input != nullptr ? input->arithmetic_name : "?";
}

// Defines the inverse of to_string().
#define VKGEMM_PARSE(Enum, parse)                             \
  std::optional<Enum> parse(std::string_view text) noexcept { \
    return find_name<Enum>(enumerator_names<Enum>, text);     \
  }
VKGEMM_PARSE(DataType, parse_data_type)
VKGEMM_PARSE(Layout, parse_layout)
VKGEMM_PARSE(Activation, parse_activation)
VKGEMM_PARSE(StepOp, parse_step_op)
VKGEMM_PARSE(StepOperand, parse_step_operand)
VKGEMM_PARSE(TensorShape, parse_tensor_shape)
VKGEMM_PARSE(Bias, parse_bias)
VKGEMM_PARSE(Scales, parse_scales)
VKGEMM_PARSE(Gate, parse_gate)
VKGEMM_PARSE(GatedB, parse_gated_b)
VKGEMM_PARSE(OffsetType, parse_offset_type)
VKGEMM_PARSE(GroupAlong, parse_group_along)
VKGEMM_PARSE(GroupBounds, parse_group_bounds)
VKGEMM_PARSE(RowOp, parse_row_op)
#undef VKGEMM_PARSE
std::optional<F32Arithmetic> parse_f32_arithmetic(std::string_view text) noexcept {
  for (const Input* input : inputs()) {
    if (input->arithmetic_name == text) return input->arithmetic;
  }
  return std::nullopt;
}

std::string to_command_line(const Problem& problem) {
  const Problem usual;
  CommandLine line(problem);
  FieldsOf<Problem>::visit(line, problem, usual);
  return line.take();
}

}  // namespace vkgemm
