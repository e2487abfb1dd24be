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

// True if codes may be multiplied as elements of this type.
constexpr bool multiplies_codes(DataType type) noexcept { return size_in_bytes(type) == 2; }

// The value of the constant CODES.
std::uint32_t constant_of(CodeType type) noexcept;

constexpr std::uint32_t bits_of(CodeType type) noexcept {
  return CODE_BITS(CODES_NONE + 1 + static_cast<int>(type));
}

// The type of scales in packed bytes.
DataType packed_scale_type(const Quantisation& quantisation) noexcept;

// As much of it as packed bytes depend on: the rest is at its default.
Quantisation as_packed(const Quantisation& quantisation) noexcept;

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

// With the group that a type or a layout has.
Quantisation with_group(Quantisation q);

// The arrays that B is packed from.
struct CodeSource {
  CodeArray codes, scales, zeros;
};

// B as the problem says that it lies before it is packed, `matrices` of them.
Result<CodeSource> code_source(const Problem& problem, std::uint64_t matrices);

}  // namespace vkgemm
