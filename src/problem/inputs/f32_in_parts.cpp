// f32_in_parts.cpp: f32 as numbers of 16 bits that matrix units multiply (F32Arithmetic).
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm {
namespace {

// Lines' scales are of all of K and of A and B alone.
MaybeError check_scaled_lines(const Problem& problem) {
  const auto asked = [&](const auto&... other) {
    return concat("f32_arithmetic is ", to_string(problem.f32_arithmetic), " and ", other...);
  };
  if (problem.grouping && problem.grouping->along == GroupAlong::k) {
    return unsupported(asked("grouping.along is k: groups would share their lines' scales"));
  }
  const Epilogue& epilogue = problem.epilogue;
  const std::pair<std::string_view, Scales> factors[] = {{"row_scales", epilogue.row_scales},
                                                         {"column_scales", epilogue.column_scales}};
  for (const auto& [field, scales] : factors) {
    if (scales == Scales::none) continue;
    return unsupported(
        asked("epilogue.", field, " is ", to_string(scales), ": not built together"));
  }
  return std::nullopt;
}

// Products are those up to last_order, and a scale stands in front of a line as one more element.
constexpr bool is_sound(const Input& input) {
  std::uint32_t products = 0;
  for (std::uint32_t q = 0; q < input.parts; ++q) {
    for (std::uint32_t r = 0; r < input.parts; ++r) products += q + r <= input.last_order ? 1 : 0;
  }
  return products == input.products && (!input.scales_lines || input.bytes() == sizeof(float));
}

}  // namespace

extern constexpr Input bf16x9_input{.name = "f32_in_bf16",
                                    .given = DataType::f32,
                                    .multiplied = DataType::bf16,
                                    .matrix_units = MatrixUnits::listed_bfloat16,
                                    .packed_in_fragments = true,
                                    .family = "f32_parts",
                                    .arithmetic = F32Arithmetic::bf16x9,
                                    .arithmetic_name = "bf16x9",
                                    .parts = 3,
                                    .last_order = 4,
                                    .products = 9};

extern constexpr Input bf16x6_input = [] {
  Input input = bf16x9_input;
  input.arithmetic = F32Arithmetic::bf16x6;
  input.arithmetic_name = "bf16x6";
  input.last_order = 2;
  input.products = 6;
  input.product_error = 0x1p-23;
  return input;
}();

extern constexpr Input f16x3_input{.name = "f32_in_f16",
                                   .given = DataType::f32,
                                   .multiplied = DataType::f16,
                                   .matrix_units = MatrixUnits::listed,
                                   .packed_in_fragments = true,
                                   .family = "f32_parts",
                                   .arithmetic = F32Arithmetic::f16x3,
                                   .arithmetic_name = "f16x3",
                                   .parts = 2,
                                   .last_order = 1,
                                   .products = 3,
                                   .scales_lines = true,
                                   .product_error = 0x1p-21,
                                   .check = check_scaled_lines};

static_assert(is_sound(bf16x9_input) && is_sound(bf16x6_input) && is_sound(f16x3_input));

}  // namespace vkgemm
