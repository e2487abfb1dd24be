// Damaged SPIR-V and any constants: an error that says something, or a module that can be read.
// The input is no SPIR-V, but edits of a module that is built in: its number, the constants' seed,
// then five bytes for each word that changes: where, and its new value, a small one if the fourth
// is 0.
#include <numeric>
#include <vector>

#include "embedded/embedded.hpp"
#include "fuzz.hpp"
#include "specialise/module.hpp"
#include "specialise/specialise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  if (size < 2 || size > 4096) return 0;
  // Small modules first: most of the time would go into reading large ones.
  static const std::vector<std::vector<std::uint32_t>> modules = [] {
    std::vector<std::vector<std::uint32_t>> words;
    for (const embedded::Module& module : embedded::modules()) {
      if (module.bytes < 100000) words.push_back(embedded::spirv(module));
    }
    return words;
  }();
  std::vector<std::uint32_t> words = modules[data[0] % modules.size()];
  std::vector<std::uint32_t> constants(data[1]);
  std::iota(constants.begin(), constants.end(), data[1] % 16);
  for (std::size_t at = 2; at + 5 <= size; at += 5) {
    const std::size_t place = data[at] + data[at + 1] * 256U + data[at + 2] * 65536U;
    const std::uint32_t high = data[at + 3];
    words[place % words.size()] = high << 24 | (high == 0 ? 0 : place) | data[at + 4];
  }
  const auto made = specialise(words, constants);
  if (!made) {
    fuzz::require(!made.error().message.empty(), "an error says something");
    return 0;
  }
  ++fuzz::accepted;
  fuzz::require(spirv::Module::parse(*made).has_value(), "the result is a module");
  return 0;
}
