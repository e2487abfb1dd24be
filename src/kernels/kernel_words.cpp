#include "kernels/kernel_words.hpp"

#include "base/environment.hpp"
#include "base/errors.hpp"
#include "embedded/embedded.hpp"
#include "kernels/steps.hpp"
#include "specialise/specialise.hpp"

namespace vkgemm {

bool specialises_modules() {
  static const bool specialises = environment_variable("VKGEMM_SPECIALISE") != "0";
  return specialises;
}

Result<std::vector<std::uint32_t>> kernel_words(std::string_view module,
                                                std::span<const std::uint32_t> constants,
                                                bool specialised) {
  const embedded::Module* const found = embedded::find_module(module);
  if (found == nullptr) return unsupported(*why_not_built(module));
  std::vector<std::uint32_t> words = embedded::spirv(*found);
  if (!specialised) return words;
  return specialise(words, constants);
}

std::string kernels_digest(bool specialised) {
  return std::string(embedded::digest()) + (specialised ? "" : " not specialised");
}

}  // namespace vkgemm
