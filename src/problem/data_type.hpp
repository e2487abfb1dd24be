// data_type.hpp: all that is to be known of an element type, one row each. RECIPES.md says how to
// add one. Pure.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "lib/abi.h"
#include "problem/numbers.hpp"
#include "vkgemm/convert.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

// The bytes of operands that kernels load at a time.
inline constexpr std::uint32_t load_bytes = 16;

// The largest dimension of a matrix: kernels index with 32 bits and keep one bit for sums.
inline constexpr std::uint64_t largest_size = (std::uint64_t{1} << 31) - 1;

struct DataTypeRow {
  DataType type = DataType::f16;
  std::string_view name;       // in texts and in the names of shader modules
  std::uint32_t constant = 0;  // in shaders: TYPE_*
  std::string_view npy;        // NumPy's name; that of the bits' type where it has none
  VkComponentTypeKHR component = VK_COMPONENT_TYPE_MAX_ENUM_KHR;
  HostNumber number;
  double unit_roundoff = 0.0;  // a rounding to it errs by at most this, relatively …
  double smallest = 0.0;       // … and by this, absolutely, where it has subnormals
  double largest = 0.0;        // from here on it rounds to infinity, or saturates
  double least = 0.0;          // of an integer
};

// In the order of the enumerators.
inline constexpr DataTypeRow data_types[] = {
    {.type = DataType::f16,
     .name = "f16",
     .constant = TYPE_F16,
     .npy = "<f2",
     .component = VK_COMPONENT_TYPE_FLOAT16_KHR,
     .number = host_number<std::uint16_t, float, from_f16, to_f16>,
     .unit_roundoff = 0x1p-11,
     .smallest = 0x1p-24,
     .largest = 65520.0},
    {.type = DataType::bf16,
     .name = "bf16",
     .constant = TYPE_BF16,
     .npy = "<u2",
     .component = VK_COMPONENT_TYPE_BFLOAT16_KHR,
     .number = host_number<std::uint16_t, float, from_bf16, to_bf16>,
     .unit_roundoff = 0x1p-8,
     .smallest = 0x1p-126,
     .largest = 0x1.ffp127},
    {.type = DataType::f32,
     .name = "f32",
     .constant = TYPE_F32,
     .npy = "<f4",
     .component = VK_COMPONENT_TYPE_FLOAT32_KHR,
     .number = host_number<float, double, exact_double<float>, double_to_float>,
     .unit_roundoff = 0x1p-23,
     .smallest = 0x1p-126,
     .largest = 0x1.ffffffp127},
    // Integers, and what is narrowed to them is one.
    {.type = DataType::s8,
     .name = "s8",
     .constant = TYPE_S8,
     .npy = "|i1",
     .component = VK_COMPONENT_TYPE_SINT8_KHR,
     .number = host_integer<std::int8_t>,
     .largest = 127.0,
     .least = -128.0},
    {.type = DataType::s32,
     .name = "s32",
     .constant = TYPE_S32,
     .npy = "<i4",
     .component = VK_COMPONENT_TYPE_SINT32_KHR,
     .number = host_integer<std::int32_t>,
     .largest = 0x7fffffffp0,
     .least = -0x1p31},
    {.type = DataType::u8,
     .name = "u8",
     .constant = TYPE_U8,
     .npy = "|u1",
     .number = host_integer<std::uint8_t>,
     .largest = 255.0},
    // Floats of 8 bits, which saturate.
    {.type = DataType::e4m3,
     .name = "e4m3",
     .constant = TYPE_E4M3,
     .npy = "|u1",
     .component = VK_COMPONENT_TYPE_FLOAT8_E4M3_EXT,
     .number = host_number<std::uint8_t, float, from_e4m3, to_e4m3>,
     .unit_roundoff = 0x1p-4,
     .smallest = 0x1p-10,
     .largest = 448.0},
    {.type = DataType::e5m2,
     .name = "e5m2",
     .constant = TYPE_E5M2,
     .npy = "|u1",
     .component = VK_COMPONENT_TYPE_FLOAT8_E5M2_EXT,
     .number = host_number<std::uint8_t, float, from_e5m2, to_e5m2>,
     .unit_roundoff = 0x1p-3,
     .smallest = 0x1p-17,
     .largest = 57344.0},
};

// The row of an enumerator.
constexpr const DataTypeRow& row_of(DataType type) noexcept {
  return data_types[static_cast<std::size_t>(type)];
}

constexpr bool is_floating(DataType type) noexcept { return row_of(type).unit_roundoff != 0.0; }
constexpr bool is_integer(DataType type) noexcept { return !is_floating(type); }
constexpr bool is_byte(DataType type) noexcept { return size_in_bytes(type) == 1; }
constexpr bool is_float8(DataType type) noexcept { return is_floating(type) && is_byte(type); }

// The features of a device that kernels of 8-bit types need.
inline constexpr std::string_view byte_features =
    "shaderInt8, storageBuffer8BitAccess and shaderIntegerDotProduct";

// The elements along K that share a scale of a row of s8.
constexpr bool groups_rows(std::uint32_t group) noexcept {
  return group == 0 || group == 32 || group == 64 || group == 128;
}
inline constexpr std::string_view row_group_sizes = ": it must be 32, 64, 128, or 0 for all of K";

// The types of all matrices, and of tensors of steps: all but sums of integers, which D alone
// holds.
constexpr bool is_element(DataType type) noexcept { return is_floating(type) || is_byte(type); }
// An element of a mask has eight bits. Sums of columns and amax are numbers of the epilogue.
inline constexpr DataType mask_type = DataType::u8;
inline constexpr DataType sum_type = DataType::f32;
inline constexpr std::string_view element_types = "f16, bf16, f32, s8, u8, e4m3 or e5m2";

// The types of vectors: bias, gamma, beta and the values of rows.
constexpr bool is_wide_float(DataType type) noexcept { return is_floating(type) && !is_byte(type); }
inline constexpr std::string_view wide_float_types = "f16, bf16 or f32";

static_assert(
    [] {
      struct ShaderType {
        std::uint32_t constant, bytes;
      };
#define VKGEMM_SHADER_TYPE(name, NAME, bytes) {TYPE_##NAME, bytes},
      constexpr ShaderType shader_types[] = {VKGEMM_TYPES(VKGEMM_SHADER_TYPE)};
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

}  // namespace vkgemm
