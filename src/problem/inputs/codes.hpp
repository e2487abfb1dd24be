// codes.hpp: a quantised B in bytes, before and after it is packed. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/quantised.h"
#include "vkgemm/problem.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// The family of table rows that are for codes alone.
inline constexpr std::string_view codes_family = "quantised";

// True if codes may be multiplied as elements of this type; if they must then be integers, too.
bool multiplies_codes(DataType type) noexcept;
bool multiplies_integers(DataType type) noexcept;
// True if codes are 8-bit floats.
bool are_float8(CodeType type) noexcept;

// A type of codes, when it is packed (lib/quantised.h).
struct CodeForm {
  std::uint32_t codes = CODES_NONE;  // the constant CODES
  // The group and the type of scales that the type has. Group 0: those of the Quantisation.
  std::uint32_t group_k = 0;
  DataType scale_type = DataType::f16;
  bool has_levels = false;               // scales are products of an f16 and an integer
  std::uint32_t zeros = ZEROS_NONE;      // ZEROS_MINIMA, or as the Quantisation says
  std::uint32_t source = SOURCE_ARRAYS;  // of its blocks; SOURCE_ARRAYS: ggml has none
  bool has_arrays = true;                // codes may lie in arrays, too
};
const CodeForm& form_of(CodeType type) noexcept;

inline std::uint32_t bits_of(CodeType type) noexcept { return CODE_BITS(form_of(type).codes); }

// The type of scales in packed bytes, of one level; and the constants SCALE_TYPE, CODE_ZEROS and
// CODE_SOURCE.
DataType packed_scale_type(const Quantisation& quantisation) noexcept;
std::uint32_t scale_constant(const Quantisation& quantisation) noexcept;
std::uint32_t zeros_of(const Quantisation& quantisation) noexcept;
std::uint32_t source_of(const Quantisation& quantisation) noexcept;

// True if scales multiply codes, not sums: scales in two levels, zero points of floats, minima.
bool scales_codes_alone(const Quantisation& quantisation) noexcept;

// As much of it as packed bytes depend on: the rest is at its default.
Quantisation as_packed(const Quantisation& quantisation) noexcept;

// The depth of a block of packed codes, of which K is a multiple there; 0: all of K.
std::uint32_t code_depth(const Quantisation& quantisation) noexcept;

// Bytes of a packed matrix of `width` × `depth` elements, both below 2^32 and with their padding.
std::uint64_t packed_bytes(const Quantisation& quantisation, std::uint64_t width,
                           std::uint64_t depth) noexcept;

// A contradiction within it, or with A and B.
std::optional<Error> check_quantised(const Problem& problem);

// An array of the source: its bytes for one matrix and all, how far apart lines and matrices are,
// and how its address is aligned.
struct CodeArray {
  std::uint64_t bytes = 0;
  std::uint64_t line = 0;  // of scales and zero points: in elements
  std::uint64_t matrix = 0;
  std::uint32_t alignment = 1;
};

// The quantisation, with the group and the layout that a type has, and the group that a layout has.
Quantisation with_group(Quantisation quantisation);

// The arrays that B is packed from.
struct CodeSource {
  CodeArray codes, scales, zeros;
};

// B as the problem says that it lies before it is packed, `matrices` of them.
Result<CodeSource> code_source(const Problem& problem, std::uint64_t matrices);

}  // namespace vkgemm
