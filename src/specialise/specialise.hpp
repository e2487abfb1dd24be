// specialise.hpp: sets the specialization constants of a SPIR-V module before a driver sees it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm {

// Returns the module that `words` becomes if each specialization constant with SpecId i has the
// value constants[i]. Constants without a value keep their defaults. A Boolean is true if its value
// is not 0.
//
// - The result has no specialization constants. Its entry points keep their names.
// - Integer and Boolean instructions with known operands are folded; floating-point ones are not.
// - Branches that are never taken are removed, and blocks, functions, variables, constants, types
// and
//   decorations that are no longer reached. So are all names and other debug instructions.
// - Instructions keep their order, ids keep their meaning. Loops are not unrolled, calls not
// inlined.
// - Instructions that the specialiser doesn't know stay as they are.
//
// Pure: no state, no Vulkan calls. Takes 1 to 5 ms for this library's modules.
//
// Errors: invalid_argument if `words` is not a SPIR-V module with valid ids; unsupported for
// control flow that only a rewrite of whole constructs could mend. Input that spirv-val rejects
// never crashes it, but may give output that spirv-val rejects, too.
//
// The propagation is that of M. Wegman, F. Zadeck, Constant Propagation with Conditional Branches,
// ACM TOPLAS 13(2), 1991.
Result<std::vector<std::uint32_t>> specialise(std::span<const std::uint32_t> words,
                                              std::span<const std::uint32_t> constants);

}  // namespace vkgemm
