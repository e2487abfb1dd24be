// floats.cpp: f16, bf16, f32 and e4m3, multiplied as they are.
#include "problem/inputs/input.hpp"

namespace vkgemm {

extern constexpr Input f16_input{.name = "f16",
                                 .given = DataType::f16,
                                 .multiplied = DataType::f16,
                                 .matrix_units = MatrixUnits::listed,
                                 .packed_in_rows = true,
                                 .packed_in_fragments = true};

// Scales multiply sums over groups of K.
extern constexpr Input f16_codes_input = [] {
  Input input = f16_input;
  input.name = "f16_codes";
  input.group_sums = DataType::f32;
  input.packed_in_fragments = false;
  return input;
}();

extern constexpr Input bf16_input{.name = "bf16",
                                  .given = DataType::bf16,
                                  .multiplied = DataType::bf16,
                                  .matrix_units = MatrixUnits::listed_bfloat16,
                                  .packed_in_rows = true,
                                  .packed_in_fragments = true,
                                  .pack_kernel = "pack_bf16"};

// 8-bit floats on matrices of them.
extern constexpr Input e4m3_input{
    .name = "e4m3",
    .given = DataType::e4m3,
    .multiplied = DataType::e4m3,
    .matrix_units = MatrixUnits::listed,
    .is_loaded = [](const DeviceCaps& caps) { return caps.int8_arithmetic; },
    .needs = byte_features};

// True f32 arithmetic, which matrix units don't have.
extern constexpr Input f32_input{
    .name = "f32", .given = DataType::f32, .multiplied = DataType::f32};

}  // namespace vkgemm
