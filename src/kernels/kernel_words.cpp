#include "kernels/kernel_words.hpp"

#include "base/environment.hpp"
#include "base/errors.hpp"
#include "embedded/embedded.hpp"
#include "kernels/steps.hpp"
#include "specialise/specialise.hpp"

namespace vkgemm {

bool specialises_modules() { return environment_variable("VKGEMM_SPECIALISE") != "0"; }

Result<std::vector<std::uint32_t>> kernel_words(std::string_view module,
                                                std::span<const std::uint32_t> constants) {
  const embedded::Module* const found = embedded::find_module(module);
  if (found == nullptr) return unsupported(*why_not_built(module));
  std::vector<std::uint32_t> words = embedded::spirv(*found);
  if (!specialises_modules()) return words;
  return specialise(words, constants);
}

std::string kernels_digest() {
  return std::string(embedded::digest()) + (specialises_modules() ? "" : " not specialised");
}

}  // namespace vkgemm
