// integers.cpp: s8, whose products are added exactly, in s32, and the types of results.
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "problem/data_type.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm {
namespace {

MaybeError check(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const DataType type = problem.a.type, sums = input_of(type).accumulator;
  const auto range = static_cast<std::uint64_t>(row_of(type).largest) + 1;  // of a magnitude
  const std::uint64_t deepest = static_cast<std::uint64_t>(row_of(sums).largest) / (range * range);
  if (problem.k > deepest) {
    return unsupported(concat("k is ", problem.k, " and a.type is ", to_string(type),
                              ": sums of at most ", deepest, " products fit ", to_string(sums)));
  }
  if (problem.d.type != sums) return std::nullopt;
  const auto alone = [sums](const auto&... other) {
    return unsupported(
        concat("d.type is ", to_string(sums), " and ", other..., ": D holds the sums alone"));
  };
  const auto off = [&](std::string_view field, const auto& value, const auto& fallback) {
    if (value == fallback) return MaybeError();
    return MaybeError(alone("epilogue.", field, " is ", value));
  };
  const auto named = [&](std::string_view field, auto value, auto fallback) {
    return off(field, to_string(value), to_string(fallback));
  };
  const Epilogue plain;
  if (auto error = off("alpha", epilogue.alpha, plain.alpha)) return error;
  if (auto error = off("beta", epilogue.beta, plain.beta)) return error;
  if (auto error = named("row_scales", epilogue.row_scales, plain.row_scales)) return error;
  if (auto error = named("column_scales", epilogue.column_scales, plain.column_scales))
    return error;
  if (auto error = named("bias", epilogue.bias, plain.bias)) return error;
  if (auto error = named("activation", epilogue.activation, plain.activation)) return error;
  if (epilogue.aux) return alone("epilogue.aux is true");
  if (epilogue.clamp_min) return alone("epilogue.clamp_min is ", *epilogue.clamp_min);
  if (epilogue.clamp_max) return alone("epilogue.clamp_max is ", *epilogue.clamp_max);
  if (epilogue.steps[0].op != StepOp::none) {
    return alone("epilogue.steps[0] is ", to_string(epilogue.steps[0]));
  }
  if (problem.gated) {
    return alone("gated.gate is ", to_string(problem.gated->gate));
  }
  if (problem.row_reduction) {
    return alone("row_reduction.op is ", to_string(problem.row_reduction->op));
  }
  return std::nullopt;
}

}  // namespace

extern constexpr Input s8_input{
    .name = "s8",
    .given = DataType::s8,
    .multiplied = DataType::s8,
    .accumulator = DataType::s32,
    .matrix_units = MatrixUnits::listed,
    .packed_in_fragments = true,
    .sum_kernel = "sum_integer_slices",
    .check = check,
    .is_loaded = [](const DeviceCaps& caps) { return caps.int8_arithmetic; },
    .needs = byte_features};

extern constexpr Input s8_codes_input = [] {
  Input input = s8_input;
  input.name = "s8_codes";
  input.accumulator = DataType::f32;
  input.group_sums = DataType::s32;
  input.packed_in_fragments = false;
  input.sum_kernel = Input{}.sum_kernel;
  input.check = nullptr;
  return input;
}();

namespace {

// D of 8-bit integers may have a zero point.
MaybeError check_zero_point(const Problem& problem) {
  const std::int32_t zero = problem.epilogue.zero_point;
  if (zero == 0) return std::nullopt;
  const DataTypeRow& d = row_of(problem.d.type);
  if (!is_integer(d.type) || !is_byte(d.type)) {
    return invalid_argument(concat("epilogue.zero_point is ", zero, " and d.type is ", d.name,
                                   ": only D of s8 or u8 has one"));
  }
  if (problem.row_reduction && problem.row_reduction->op == RowOp::quantise) {
    return invalid_argument(concat("epilogue.zero_point is ", zero,
                                   " and row_reduction.op is quantise, whose codes have none"));
  }
  if (zero >= d.least && zero <= d.largest) return std::nullopt;
  return invalid_argument(concat("epilogue.zero_point is ", zero, ": for d.type ", d.name,
                                 " it must be from ", d.least, " to ", d.largest));
}

MaybeError check_codes(const Problem& problem) {
  if (!problem.row_reduction || problem.row_reduction->op != RowOp::quantise) return std::nullopt;
  const auto refuse = [](std::string_view field, DataType type, DataType wanted) {
    return unsupported(concat(field, " is ", to_string(type), " and row_reduction.op is quantise: ",
                              "it must be ", to_string(wanted)));
  };
  if (problem.d.type != DataType::s8) return refuse("d.type", problem.d.type, DataType::s8);
  const DataType values = problem.row_reduction->value_type;
  if (values == DataType::f32) return std::nullopt;
  return refuse("row_reduction.value_type", values, DataType::f32);
}

}  // namespace

namespace {

// Scales of A's rows and groups of K.
MaybeError check_row_groups(const Problem& problem, const Input* input) {
  const std::uint32_t group = problem.a_group_k;
  if (group == 0) return std::nullopt;
  if (input == nullptr || !input->group_sums) {
    return invalid_argument(
        concat("a_group_k is ", group, " and a.type is ", to_string(problem.a.type),
               " and b.type is ", to_string(problem.b.type),
               problem.quantised_b
                   ? concat(" and quantised_b.type is ", to_string(problem.quantised_b->type))
                   : std::string(" and quantised_b is not set"),
               ": codes multiplied as s8 have groups, and e4m3 and e5m2 multiplied as f16"));
  }
  if (!groups_rows(group)) return unsupported(concat("a_group_k is ", group, row_group_sizes));
  if (problem.epilogue.row_scales != Scales::none) return std::nullopt;
  return invalid_argument(concat("a_group_k is ", group,
                                 " and epilogue.row_scales is none: row_scales has a number for "
                                 "each row and group"));
}

}  // namespace

// Sums of integers are of one kind of product.
MaybeError check_types(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  const std::pair<std::string_view, DataType> inputs[] = {{"a", problem.a.type},
                                                          {"b", problem.b.type}};
  for (const auto& [name, type] : inputs) {
    if (!is_element(type)) {
      return unsupported(
          concat(name, ".type is ", to_string(type), ": A and B are ", element_types));
    }
  }
  const Input* const input = find_input(problem, problem.a);
  if (auto error = check_row_groups(problem, input)) return error;
  if (!is_element(problem.d.type) &&
      (problem.quantised_b || input == nullptr || problem.d.type != input->accumulator)) {
    return unsupported(concat("d.type is ", to_string(problem.d.type), " and a.type is ",
                              to_string(problem.a.type), ": D is ", element_types,
                              ", or of s8 inputs s32"));
  }
  struct Other {
    std::string_view field;
    std::optional<DataType> type;
    bool (*accepts)(DataType) noexcept = is_wide_float;
    std::string_view types = wide_float_types;
  };
  const Other others[] = {
      {"c.type", epilogue.beta != 0.0f ? std::optional(problem.c.type) : std::nullopt, is_element,
       element_types},
      {"aux.type", epilogue.aux ? std::optional(problem.aux.type) : std::nullopt, is_element,
       element_types},
      {"epilogue.bias_type",
       epilogue.bias != Bias::none ? std::optional(epilogue.bias_type) : std::nullopt},
      {"row_reduction.vector_type",
       problem.row_reduction ? std::optional(problem.row_reduction->vector_type) : std::nullopt},
      {"row_reduction.value_type",
       problem.row_reduction ? std::optional(problem.row_reduction->value_type) : std::nullopt}};
  for (const auto& [field, type, accepts, types] : others) {
    if (type && !accepts(*type)) {
      return unsupported(concat(field, " is ", to_string(*type), ": it must be ", types));
    }
  }
  if (auto error = check_codes(problem)) return error;
  return check_zero_point(problem);
}

}  // namespace vkgemm
