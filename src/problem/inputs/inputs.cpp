// inputs.cpp: the list of inputs.
#include <algorithm>

#include "base/text.hpp"
#include "problem/data_type.hpp"
#include "problem/inputs/codes.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm {

extern const Input f16_input, bf16_input, f32_input, s8_input, s8_codes_input, f16_codes_input;
extern const Input e4m3_input;
extern const Input bf16x9_input, bf16x6_input, f16x3_input;

std::span<const Input* const> inputs() noexcept {
  // The first input of a type is that of plain elements.
  static constexpr const Input* all[] = {
      &f16_input,       &bf16_input, &f32_input,    &s8_input,     &s8_codes_input,
      &f16_codes_input, &e4m3_input, &bf16x9_input, &bf16x6_input, &f16x3_input};
  return all;
}

const Input* find_input(DataType given, F32Arithmetic arithmetic) noexcept {
  const auto all = inputs();
  const auto found = std::ranges::find_if(all, [&](const Input* input) {
    return input->given == given && input->arithmetic == arithmetic;
  });
  return found != all.end() ? *found : nullptr;
}

const Input* find_input(const Problem& problem, const Matrix& operand) noexcept {
  const DataType own = is_float8(operand.type) ? exact_type : operand.type;
  const DataType type = problem.multiply_as.value_or(own);
  if (problem.quantised_b && type == DataType::s8) return &s8_codes_input;
  if (problem.quantised_b && type == exact_type && problem.a_group_k != 0 &&
      are_float8(problem.quantised_b->type)) {
    return &f16_codes_input;
  }
  return problem.multiply_as ? find_input(type) : find_input(type, problem.f32_arithmetic);
}

const Input* find_input(F32Arithmetic arithmetic) noexcept {
  return find_input(DataType::f32, arithmetic);
}

namespace {

// An operand of a type that has no input of its own.
MaybeError check_own_types(const Problem& problem) {
  for (const auto& [name, type] :
       {std::pair("a", problem.a.type), std::pair("b", problem.b.type)}) {
    if (is_input(type) || is_float8(type)) continue;
    return unsupported(concat(name, ".type is ", to_string(type),
                              ": without multiply_as, f16 or bf16, it is not multiplied"));
  }
  return std::nullopt;
}

}  // namespace

bool is_multiplied_as(DataType type) noexcept {
  const Input* const input = find_input(type);
  return input != nullptr && input->packed_in_rows;
}

MaybeError check_multiply_as(const Problem& problem) {
  if (!problem.multiply_as) return check_own_types(problem);
  const DataType type = *problem.multiply_as;
  const auto with = [&](const auto&... other) {
    return concat(other..., " and multiply_as is ", to_string(type), ": ");
  };
  // Nothing is converted to these.
  const bool is_own =
      problem.quantised_b ? type == DataType::s8 : is_float8(type) && is_input(type);
  if (!is_multiplied_as(type) && !is_own) {
    return unsupported(concat("multiply_as is ", to_string(type),
                              ": f16 and bf16 are supported, s8 with a quantised B, and e4m3 "
                              "without"));
  }
  if (problem.f32_arithmetic != F32Arithmetic::ieee) {
    return invalid_argument(
        concat(with("f32_arithmetic is ", to_string(problem.f32_arithmetic)), "it must be ieee"));
  }
  if (problem.quantised_b && problem.b.type != type) {
    return unsupported(concat(with("quantised_b.type is ", to_string(problem.quantised_b->type),
                                   ", b.type is ", to_string(problem.b.type)),
                              "codes are multiplied as b.type"));
  }
  for (const auto& [name, given] :
       {std::pair("a", problem.a.type), std::pair("b", problem.b.type)}) {
    if (is_own ? given == type : is_element(given)) continue;
    return unsupported(concat(with(name, ".type is ", to_string(given)), "it must be ",
                              is_own ? to_string(type) : element_types));
  }
  return std::nullopt;
}

std::optional<DataType> native_type(const Problem& problem, const DeviceCaps& caps) noexcept {
  const DataType type = problem.a.type;
  const bool is_plain = problem.a.packing == Packing::plain && problem.b.packing == Packing::plain;
  if (problem.multiply_as || !is_float8(type) || problem.b.type != type || !is_plain ||
      problem.quantised_b) {
    return std::nullopt;
  }
  const auto multiplies = [&](const auto& shape) { return shape.input == type && is_used(shape); };
  const bool has_matrices = std::ranges::any_of(caps.fragment_shapes, multiplies) ||
                            std::ranges::any_of(caps.flexible_shapes, multiplies);
  return has_matrices ? std::optional(type) : std::nullopt;
}

std::string describe_inputs(const Problem& problem, DataType multiplied) {
  const DataType a = problem.a.type, b = problem.b.type;
  if (!problem.multiply_as && !is_float8(a) && !is_float8(b)) return std::string(to_string(a));
  return concat(to_string(a), " by ", to_string(b), " as ", to_string(multiplied));
}

bool is_result(DataType type) noexcept {
  return is_element(type) ||
         std::ranges::find(inputs(), type, &Input::accumulator) != inputs().end();
}

}  // namespace vkgemm
