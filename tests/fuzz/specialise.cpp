// The specialiser returns an error with a message, or a module, for damaged SPIR-V and any
// constants. The input edits an embedded module: byte 0 selects the module, byte 1 the constants,
// and each further five bytes replace a word: three bytes of its index, two of its value.
#include <numeric>
#include <vector>

#include "embedded/embedded.hpp"
#include "fuzz.hpp"
#include "specialise/module.hpp"
#include "specialise/specialise.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  if (size < 2 || size > 4096) return 0;
  // Large modules would take most of the time.
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
    const std::uint32_t place = data[at] + data[at + 1] * 256U + data[at + 2] * 65536U;
    const std::uint32_t high = data[at + 3];
    // Small values are likely ids.
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
