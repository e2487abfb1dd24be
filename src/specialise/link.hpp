// link.hpp: puts a function of an application in place of a function of a SPIR-V module.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm {

// Returns `module` with its calls of one function replaced by calls of the function `name` of
// `library`. The function that gives way is the one that reads the specialization constant with
// SpecId `mark` by OpBitcast. `name` is the name in GLSL, which the library's OpNames have.
//
// - The library's functions, and what they need of types, constants and variables, are added.
//   Types that the module has serve both. Its entry points and debug instructions are left out.
// - The module's instructions keep their ids. Its specialization constants remain.
//
// The function is pure and calls no Vulkan function.
//
// Errors: invalid_argument if either module is damaged, or if the library has no function of that
// name and type; unsupported if the library uses what its functions may not: memory, global
// variables without a constant value, specialization constants, capabilities other than Shader,
// or instructions that do not compute.
Result<std::vector<std::uint32_t>> link_function(std::span<const std::uint32_t> module,
                                                 std::uint32_t mark,
                                                 std::span<const std::uint32_t> library,
                                                 std::string_view name);

}  // namespace vkgemm
