// fold.hpp: computes the results of instructions whose operands are known.
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

// Returns the bits of a result that has `width` bits. Returns nothing for other instructions than
// those of integers and bools, and where the specification leaves the result undefined: division by
// zero, shifts by the operand's width or more.
std::optional<std::uint64_t> fold(spv::Op op, std::uint32_t width,
                                  std::span<const Scalar> operands);

// Does the same for an instruction of GLSL.std.450.
std::optional<std::uint64_t> fold_glsl(std::uint32_t instruction, std::uint32_t width,
                                       std::span<const Scalar> operands);

// Returns the bits of a result that one operand alone decides, as 0 decides a product.
std::optional<std::uint64_t> absorb(spv::Op op, bool is_first, const Scalar& operand);

}  // namespace vkgemm::spirv
