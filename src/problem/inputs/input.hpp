// input.hpp: the description of an input, the form in which A and B come to a product. floats.cpp,
// integers.cpp and f32_in_parts.cpp hold the inputs, inputs.cpp their list. codes.hpp describes a
// quantised B, which isn't an Input. ../../RECIPES.md says how to add one. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/errors.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

// The cooperative matrices that multiply an input. Multiply-adds take every input, widened to its
// accumulator.
enum class MatrixUnits : std::uint8_t {
  none,
  listed,           // those of a shape that the device lists
  listed_bfloat16,  // the same, if VK_KHR_shader_bfloat16 is there
};

struct Input {
  std::string_view name;                // of shader modules, and of the file in shaders/lib/inputs
  DataType given = DataType::f16;       // the type of the caller's elements
  DataType multiplied = DataType::f16;  // the type of what main loops multiply
  DataType accumulator = DataType::f32;
  // The type of exact sums over groups of K, which scales multiply; nothing: there are none.
  std::optional<DataType> group_sums = std::nullopt;
  MatrixUnits matrix_units = MatrixUnits::none;
  bool packed_in_rows = false;       // K is the outer direction (pack.comp)
  bool packed_in_fragments = false;  // pack_fragments.comp
  std::string_view sum_kernel = "sum_slices";
  std::string_view pack_kernel = "pack";  // packs in rows
  std::string_view family =
      {};  // of table rows that are for this input alone; empty: there is none

  // An f32 as `parts` numbers that add up to it. Part q of A is multiplied by part r of B if q + r
  // is at most last_order.
  F32Arithmetic arithmetic = F32Arithmetic::ieee;
  std::string_view arithmetic_name = "ieee";
  std::uint32_t parts = 1;
  std::uint32_t last_order = 0;
  std::uint32_t products = 1;
  bool scales_lines = false;   // by powers of two, of lines along M and N
  double product_error = 0.0;  // of a product, relative to it, at most

  // A contradiction between the input and other fields; null: there is none.
  MaybeError (*check)(const Problem&) = nullptr;
  // True if kernels may load it; null: on every device. `needs`: the features.
  bool (*is_loaded)(const DeviceCaps&) = nullptr;
  std::string_view needs;

  // True if packing converts the caller's elements to another type.
  constexpr bool is_converted() const noexcept { return given != multiplied; }
  constexpr std::uint32_t bytes() const noexcept { return parts * size_in_bytes(multiplied); }
  // The type in which matrix units add up products.
  constexpr DataType sums() const noexcept { return group_sums.value_or(accumulator); }
};

std::span<const Input* const> inputs() noexcept;

// The input of elements of a type; null: there is none.
const Input* find_input(DataType given, F32Arithmetic arithmetic = F32Arithmetic::ieee) noexcept;
// The type as which 8-bit floats are multiplied by default: it has all of their numbers.
inline constexpr DataType exact_type = DataType::f16;

// The input that an operand of the problem becomes; null: there is none.
const Input* find_input(const Problem& problem, const Matrix& operand) noexcept;

// The same of a type and an arithmetic that were checked.
inline const Input& input_of(DataType given,
                             F32Arithmetic arithmetic = F32Arithmetic::ieee) noexcept {
  return *find_input(given, arithmetic);
}
inline const Input& input_of(const Problem& problem) noexcept {
  return *find_input(problem, problem.a);
}
// The input of f32 that an arithmetic names; null: no arithmetic has this value.
const Input* find_input(F32Arithmetic arithmetic) noexcept;

// True if elements of this type are multiplied as they are.
inline bool is_input(DataType type) noexcept { return find_input(type) != nullptr; }
// True if D may have it, with some input.
bool is_result(DataType type) noexcept;

// True if kernels may load elements of a type.
inline bool loads(const DeviceCaps& caps, const Input& input) {
  return input.is_loaded == nullptr || input.is_loaded(caps);
}

// True if kernels use matrices of such a shape that a device lists.
template <class Shape>
bool is_used(const Shape& shape) noexcept {
  const Input* const input = find_input(shape.input);
  return input != nullptr && input->matrix_units != MatrixUnits::none &&
         shape.accumulator == input->accumulator;
}

// True if A and B of mixed types may be multiplied in this type.
bool is_multiplied_as(DataType type) noexcept;

// The 8-bit float of plain A and B, if the device has matrices of it; nothing: multiply_as is set,
// or they become f16.
std::optional<DataType> native_type(const Problem& problem, const DeviceCaps& caps) noexcept;

// "f16", or "f32 by bf16 as bf16" if A or B may be converted.
std::string describe_inputs(const Problem& problem, DataType multiplied);

// A contradiction of Problem::multiply_as with other fields, or of types without it.
MaybeError check_multiply_as(const Problem& problem);

// Contradictions among types that are not those of A and B.
MaybeError check_types(const Problem& problem);

}  // namespace vkgemm
