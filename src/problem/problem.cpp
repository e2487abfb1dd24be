// problem.cpp: names of the problem's parts, and the command line that repeats a problem.
#include "vkgemm/problem.hpp"

#include <array>
#include <cstddef>

#include "base/enum_names.hpp"
#include "base/text.hpp"
#include "lib/epilogue/activation.h"
#include "problem/data_type.hpp"
#include "problem/inputs/input.hpp"
#include "problem/row_op.hpp"

namespace vkgemm {
namespace {

// Names in the order of the enumerators.
constexpr std::array<std::string_view, 2> layout_names{"row_major", "col_major"};
constexpr std::array<std::string_view, 2> packing_names{"plain", "packed"};
#define VKGEMM_NAME(name, NAME, value) std::string_view(#name),
constexpr std::array activation_names{std::string_view("none"), VKGEMM_ACTIVATIONS(VKGEMM_NAME)};
#undef VKGEMM_NAME
constexpr std::array<std::string_view, 6> gate_names{"sigmoid_tanh", "geglu_erf", "geglu_tanh",
                                                     "swiglu",       "reglu",     "glu"};
constexpr std::array<std::string_view, 3> gated_b_names{"halves", "separate", "interleaved"};
constexpr std::array<std::string_view, 2> offset_type_names{"int32", "int64"};
constexpr std::array<std::string_view, 2> along_names{"m", "k"};
constexpr std::array<std::string_view, 2> grouped_b_names{"shared", "per_group"};
constexpr std::array<std::string_view, 3> bias_names{"none", "along_n", "along_m"};
constexpr std::array<std::string_view, 3> scales_names{"none", "shared", "per_matrix"};

// A command line under construction: " --flag value", nothing for what is at its default.
class Arguments {
 public:
  template <class T>
  void add(std::string_view flag, const T& value) {
    if (!text_.empty()) text_ += ' ';
    append_to(text_, flag);
    text_ += ' ';
    append_to(text_, value);
  }
  void add_switch(std::string_view flag) {
    if (!text_.empty()) text_ += ' ';
    text_ += flag;
  }

  // --packed-a, --layout-a, --ld-a, --batch-stride-a, --alignment-a
  void add_matrix(std::string_view suffix, const Matrix& matrix, Layout default_layout) {
    if (matrix.packing == Packing::packed) add_switch(concat("--packed-", suffix));
    if (matrix.layout != default_layout) {
      add(concat("--layout-", suffix), to_string(matrix.layout));
    }
    if (matrix.ld) add(concat("--ld-", suffix), *matrix.ld);
    if (matrix.batch_stride) add(concat("--batch-stride-", suffix), *matrix.batch_stride);
    if (matrix.alignment != Matrix{}.alignment) {
      add(concat("--alignment-", suffix), matrix.alignment);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_row_reduction(Arguments& arguments, const RowReduction& rows) {
  arguments.add("--row-op", to_string(rows.op));
  if (rows.eps) arguments.add("--row-eps", *rows.eps);
  if (rows.gamma) arguments.add_switch("--with-row-gamma");
  if (rows.beta) arguments.add_switch("--with-row-beta");
  if (rows.gamma || rows.beta) arguments.add("--dtype-row-vectors", to_string(rows.vector_type));
  if (is_scalar(rows.op)) {
    arguments.add("--dtype-row-values", to_string(rows.value_type));
    if (!rows.store_d) arguments.add_switch("--without-d");
  }
}

}  // namespace

std::string_view to_string(DataType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(data_types) ? data_types[index].name : "?";
}
std::string_view to_string(F32Arithmetic arithmetic) noexcept {
  const Input* const input = find_input(arithmetic);
  return input != nullptr ? input->arithmetic_name : "?";
}
std::string_view to_string(Layout layout) noexcept { return name_of(layout_names, layout); }
std::string_view to_string(Packing packing) noexcept { return name_of(packing_names, packing); }
std::string_view to_string(Activation a) noexcept { return name_of(activation_names, a); }
std::string_view to_string(Bias bias) noexcept { return name_of(bias_names, bias); }
std::string_view to_string(Scales scales) noexcept { return name_of(scales_names, scales); }
std::string_view to_string(Gate gate) noexcept { return name_of(gate_names, gate); }
std::string_view to_string(GatedB b) noexcept { return name_of(gated_b_names, b); }
std::string_view to_string(OffsetType type) noexcept { return name_of(offset_type_names, type); }
std::string_view to_string(GroupAlong along) noexcept { return name_of(along_names, along); }
std::string_view to_string(GroupedB b) noexcept { return name_of(grouped_b_names, b); }
std::string_view to_string(RowOp op) noexcept {
  const auto index = static_cast<std::size_t>(op);
  return index < std::size(row_ops) ? row_ops[index].name : "?";
}

std::optional<DataType> parse_data_type(std::string_view text) noexcept {
  for (const DataTypeRow& row : data_types) {
    if (row.name == text) return row.type;
  }
  return std::nullopt;
}
std::optional<F32Arithmetic> parse_f32_arithmetic(std::string_view text) noexcept {
  for (const Input* input : inputs()) {
    if (input->given == DataType::f32 && input->arithmetic_name == text) return input->arithmetic;
  }
  return std::nullopt;
}
std::optional<Layout> parse_layout(std::string_view text) noexcept {
  return find_name<Layout>(layout_names, text);
}
std::optional<Activation> parse_activation(std::string_view text) noexcept {
  return find_name<Activation>(activation_names, text);
}
std::optional<Bias> parse_bias(std::string_view text) noexcept {
  return find_name<Bias>(bias_names, text);
}
std::optional<Scales> parse_scales(std::string_view text) noexcept {
  return find_name<Scales>(scales_names, text);
}
std::optional<Gate> parse_gate(std::string_view text) noexcept {
  return find_name<Gate>(gate_names, text);
}
std::optional<GatedB> parse_gated_b(std::string_view text) noexcept {
  return find_name<GatedB>(gated_b_names, text);
}
std::optional<OffsetType> parse_offset_type(std::string_view text) noexcept {
  return find_name<OffsetType>(offset_type_names, text);
}
std::optional<GroupAlong> parse_group_along(std::string_view text) noexcept {
  return find_name<GroupAlong>(along_names, text);
}
std::optional<RowOp> parse_row_op(std::string_view text) noexcept {
  for (const RowOpRow& row : row_ops) {
    if (row.name == text) return row.op;
  }
  return std::nullopt;
}

std::string to_command_line(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const Epilogue defaults;
  Arguments arguments;
  arguments.add("--m", problem.m);
  arguments.add("--n", problem.n);
  arguments.add("--k", problem.k);
  if (problem.batch != 1) arguments.add("--batch", problem.batch);

  if (problem.quantised_b) arguments.add("--quantised-b", to_string(*problem.quantised_b));
  if (problem.gated) {
    const Gated& gated = *problem.gated;
    std::string text(to_string(gated.gate));
    if (gated.b != GatedB::halves) text += concat(':', to_string(gated.b));
    arguments.add("--gated", text);
  }
  if (problem.grouping) {
    const Grouping& grouping = *problem.grouping;
    arguments.add("--group-count", grouping.groups);
    arguments.add("--group-along", to_string(grouping.along));
    if (grouping.offsets != OffsetType::int32) {
      arguments.add("--offset-type", to_string(grouping.offsets));
    }
    if (grouping.b == GroupedB::per_group) arguments.add_switch("--b-per-group");
  }

  // Always said, never inherited from one another: a line must mean the same everywhere.
  arguments.add("--dtype", to_string(problem.a.type));
  if (problem.b.type != problem.a.type) arguments.add("--dtype-b", to_string(problem.b.type));
  arguments.add("--dtype-d", to_string(problem.d.type));
  if (problem.f32_arithmetic != F32Arithmetic::ieee) {
    arguments.add("--f32", to_string(problem.f32_arithmetic));
  }
  arguments.add_matrix("a", problem.a, Layout::row_major);
  arguments.add_matrix("b", problem.b, Layout::row_major);
  arguments.add_matrix("d", problem.d, Layout::row_major);

  if (epilogue.alpha != defaults.alpha) arguments.add("--alpha", epilogue.alpha);
  if (epilogue.beta != 0.0f) {
    arguments.add("--beta", epilogue.beta);
    arguments.add("--dtype-c", to_string(problem.c.type));
    arguments.add_matrix("c", problem.c, problem.d.layout);
  }
  if (epilogue.row_scales != Scales::none) {
    arguments.add("--row-scales-mode", to_string(epilogue.row_scales));
  }
  if (epilogue.column_scales != Scales::none) {
    arguments.add("--column-scales-mode", to_string(epilogue.column_scales));
  }
  if (epilogue.bias != Bias::none) {
    arguments.add("--bias-mode", to_string(epilogue.bias));
    arguments.add("--dtype-bias", to_string(epilogue.bias_type));
    if (epilogue.bias_batch_stride != 0) {
      arguments.add("--batch-stride-bias", epilogue.bias_batch_stride);
    }
  }
  if (epilogue.activation != Activation::none) {
    arguments.add("--activation", to_string(epilogue.activation));
  }
  if (epilogue.clamp_min) arguments.add("--clamp-min", *epilogue.clamp_min);
  if (epilogue.clamp_max) arguments.add("--clamp-max", *epilogue.clamp_max);
  if (epilogue.aux) {
    arguments.add_switch("--with-aux");
    arguments.add("--dtype-aux", to_string(problem.aux.type));
    arguments.add_matrix("aux", problem.aux, problem.d.layout);
  }
  if (problem.row_reduction) add_row_reduction(arguments, *problem.row_reduction);
  const SplitK& split = problem.split_k;
  if (split != SplitK{}) {
    std::string text = split.slices == 0 ? "auto" : concat(split.slices);
    if (split.reduction_mode) text += concat(':', to_string(*split.reduction_mode));
    arguments.add("--split-k", text);
  }
  if (problem.max_dispatch_ms != 0.0) arguments.add("--max-dispatch-ms", problem.max_dispatch_ms);
  if (problem.estimate_scale != 1.0) arguments.add("--estimate-scale", problem.estimate_scale);
  return arguments.take();
}

}  // namespace vkgemm
