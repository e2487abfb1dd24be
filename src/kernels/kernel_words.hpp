// kernel_words.hpp: the SPIR-V that a driver gets for a kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm {

// Returns false if VKGEMM_SPECIALISE was 0 at the first call: then the driver sets the
// specialization constants.
bool specialises_modules();

// A function of an application, which stands in place of lib/epilogue/steps.glsl's.
struct LinkedFunction {
  std::string name;
  std::vector<std::uint32_t> words;
  double cost = 0.0;  // EpilogueFunction::cost
};

// Returns the words of a module for these values of its specialization constants, by SpecId. The
// entry point has the module's name. `function`: the one that
// the epilogue calls, or null. Errors: unsupported if the module is not built in; those of
// link_function().
Result<std::vector<std::uint32_t>> kernel_words(std::string_view module,
                                                std::span<const std::uint32_t> constants,
                                                bool specialised = specialises_modules(),
                                                const LinkedFunction* function = nullptr);

// Identifies the words of all kernels: it differs if a module, the specialiser or `specialised`
// does.
std::string kernels_digest(bool specialised = specialises_modules());

}  // namespace vkgemm
