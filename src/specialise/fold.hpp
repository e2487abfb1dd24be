// fold.hpp: the value of an instruction whose operands are known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "specialise/module.hpp"

namespace vkgemm::spirv {

// A bool or an integer. Bits above its width are 0.
struct Scalar {
  std::uint64_t bits = 0;
  std::uint32_t width = 32;

  bool operator==(const Scalar&) const = default;
};

constexpr std::uint64_t mask_of(std::uint32_t width) noexcept {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

// The bits of a result of so many bits. Nothing if the specification leaves the value undefined, as
// it does for a division by zero and for shifts by the width or more, or if the instruction is none
// of integers and bools.
std::optional<std::uint64_t> fold(spv::Op op, std::uint32_t width,
                                  std::span<const Scalar> operands);

// The same for an instruction of GLSL.std.450.
std::optional<std::uint64_t> fold_glsl(std::uint32_t instruction, std::uint32_t width,
                                       std::span<const Scalar> operands);

// The bits of a result that one operand alone decides, as 0 does for a product.
std::optional<std::uint64_t> absorb(spv::Op op, bool is_first, const Scalar& operand);

}  // namespace vkgemm::spirv
