// specialise.hpp: sets the specialization constants of a SPIR-V module before a driver sees it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm {

// Returns the module with its specialization constants set: the constant with SpecId i gets the
// value constants[i], or keeps its default if there is no constants[i]. A Boolean is true if its
// value is not 0.
//
// - The result has no specialization constants, except each OpSpecConstantOp that cannot be folded.
// - Entry points keep their names.
// - Integer and Boolean instructions with known operands are folded; floating-point ones are not.
// - Branches that are never taken are removed. Blocks, functions, variables, constants, types and
//   decorations that nothing uses any more are removed, and so are all debug instructions.
// - The remaining instructions keep their order and ids. Loops are not unrolled, calls not inlined.
// - Instructions that the specialiser does not know are kept.
//
// The function is pure and calls no Vulkan function.
//
// Errors: invalid_argument if `words` is no SPIR-V module with valid ids; unsupported if control
// flow cannot be kept structured. A damaged module never crashes the specialiser, but the result
// may be invalid, too.
//
// Source: M. Wegman, F. Zadeck, Constant Propagation with Conditional Branches, ACM TOPLAS 13(2),
// 1991.
Result<std::vector<std::uint32_t>> specialise(std::span<const std::uint32_t> words,
                                              std::span<const std::uint32_t> constants);

}  // namespace vkgemm
