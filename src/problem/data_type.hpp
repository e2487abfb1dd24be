// data_type.hpp: all that is to be known of an element type, one row each. README.md says how to
// add one. Pure.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "lib/abi.h"
#include "vkgemm/problem.hpp"

namespace vkgemm {

// The bytes of operands that kernels load at a time.
inline constexpr std::uint32_t load_bytes = 16;

// The largest dimension of a matrix: kernels index with 32 bits and keep one bit for sums.
inline constexpr std::uint64_t largest_size = (std::uint64_t{1} << 31) - 1;

// The cooperative matrices that multiply a type. Multiply-adds take every type, widened to the
// accumulator's.
enum class MatrixUnits : std::uint8_t {
  none,
  listed,           // those of a shape that the device lists
  listed_bfloat16,  // the same, if VK_KHR_shader_bfloat16 is there
};

struct DataTypeRow {
  DataType type = DataType::f16;
  std::string_view name;       // in texts and in the names of shader modules
  std::uint32_t constant = 0;  // in shaders: TYPE_*
  std::string_view npy;        // NumPy's name; that of the bits' type where it has none
  VkComponentTypeKHR component = VK_COMPONENT_TYPE_MAX_ENUM_KHR;
  double unit_roundoff = 0.0;  // a rounding to it errs by at most this, relatively …
  double smallest = 0.0;       // … and by this, absolutely, where it has subnormals
  double largest = 0.0;        // from here on it rounds to infinity
  MatrixUnits matrix_units = MatrixUnits::none;
  DataType accumulator = DataType::f32;  // of its products
};

// In the order of the enumerators.
inline constexpr DataTypeRow data_types[] = {
    {.type = DataType::f16,
     .name = "f16",
     .constant = TYPE_F16,
     .npy = "<f2",
     .component = VK_COMPONENT_TYPE_FLOAT16_KHR,
     .unit_roundoff = 0x1p-11,
     .smallest = 0x1p-24,
     .largest = 65520.0,
     .matrix_units = MatrixUnits::listed},
    {.type = DataType::bf16,
     .name = "bf16",
     .constant = TYPE_BF16,
     .npy = "<u2",
     .component = VK_COMPONENT_TYPE_BFLOAT16_KHR,
     .unit_roundoff = 0x1p-8,
     .smallest = 0x1p-126,
     .largest = 0x1.ffp127,
     .matrix_units = MatrixUnits::listed_bfloat16},
    // True f32 arithmetic, which matrix units don't have.
    {.type = DataType::f32,
     .name = "f32",
     .constant = TYPE_F32,
     .npy = "<f4",
     .component = VK_COMPONENT_TYPE_FLOAT32_KHR,
     .unit_roundoff = 0x1p-23,
     .smallest = 0x1p-126,
     .largest = 0x1.ffffffp127,
     .matrix_units = MatrixUnits::none},
    // Integers, and what is narrowed to them is one.
    {.type = DataType::s8,
     .name = "s8",
     .constant = TYPE_S8,
     .npy = "|i1",
     .component = VK_COMPONENT_TYPE_SINT8_KHR,
     .largest = 127.0,
     .matrix_units = MatrixUnits::listed,
     .accumulator = DataType::s32},
    {.type = DataType::s32,
     .name = "s32",
     .constant = TYPE_S32,
     .npy = "<i4",
     .component = VK_COMPONENT_TYPE_SINT32_KHR,
     .largest = 0x7fffffffp0,
     .accumulator = DataType::s32},
};

// The row of an enumerator.
constexpr const DataTypeRow& row_of(DataType type) noexcept {
  return data_types[static_cast<std::size_t>(type)];
}

static_assert(
    [] {
      struct ShaderType {
        std::uint32_t constant, bytes;
      };
#define VKGEMM_SHADER_TYPE(name, bytes) {TYPE_##name, bytes},
      constexpr ShaderType shader_types[] = {VKGEMM_TYPES(VKGEMM_SHADER_TYPE)
                                                 VKGEMM_INTEGERS(VKGEMM_SHADER_TYPE)};
#undef VKGEMM_SHADER_TYPE
      if (std::size(shader_types) != std::size(data_types)) return false;
      for (std::size_t i = 0; i < std::size(data_types); ++i) {
        const DataTypeRow& row = data_types[i];
        if (static_cast<std::size_t>(row.type) != i || row.constant != shader_types[i].constant ||
            size_in_bytes(row.type) != shader_types[i].bytes) {
          return false;
        }
      }
      return true;
    }(),
    "the rows here and in types.h are in the order of the enumerators, and agree");

// True if operands of it can be packed: in rows, with K as the outer direction, or in fragments.
constexpr bool is_packed_in_rows(DataType type) noexcept { return size_in_bytes(type) == 2; }
constexpr bool is_packable(DataType type) noexcept {
  return is_packed_in_rows(type) || type == DataType::s8;
}

// True if cooperative matrices multiply it anywhere.
constexpr bool on_matrix_units(DataType type) noexcept {
  return row_of(type).matrix_units != MatrixUnits::none;
}

// True if kernels use matrices of such a shape that a device lists.
template <class Shape>
constexpr bool is_used(const Shape& shape) noexcept {
  return on_matrix_units(shape.input) && shape.accumulator == row_of(shape.input).accumulator;
}

}  // namespace vkgemm
