#include "kernels/kernel_words.hpp"

#include "base/environment.hpp"
#include "base/errors.hpp"
#include "embedded/embedded.hpp"
#include "kernels/steps.hpp"
#include "lib/constants.h"
#include "specialise/link.hpp"
#include "specialise/specialise.hpp"

namespace vkgemm {

namespace {

constexpr std::string_view linked_name = "vkgemm_epilogue";

}  // namespace

bool specialises_modules() {
  static const bool specialises = environment_variable("VKGEMM_SPECIALISE") != "0";
  return specialises;
}

Result<std::vector<std::uint32_t>> kernel_words(std::string_view module,
                                                std::span<const std::uint32_t> constants,
                                                bool specialised, const LinkedFunction* function) {
  const embedded::Module* const found = embedded::find_module(module);
  if (found == nullptr) return unsupported(*why_not_built(module));
  std::vector<std::uint32_t> words = embedded::spirv(*found);
  if (function != nullptr) {
    auto linked = link_function(words, SPEC_EPILOGUE_FUNCTION, function->words, linked_name);
    if (!linked) return linked.error();
    words = *std::move(linked);
  }
  if (!specialised) return words;
  return specialise(words, constants);
}

std::string kernels_digest(bool specialised) {
  return std::string(embedded::digest()) + (specialised ? "" : " not specialised");
}

}  // namespace vkgemm
