// Tests of what the kernels' SPIR-V says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "embedded/embedded.hpp"

namespace vkgemm {
namespace {

// The memory semantics of a module's control barriers.
std::vector<std::uint32_t> barrier_semantics(std::span<const std::uint32_t> words) {
  constexpr std::uint32_t op_constant = 43, op_control_barrier = 224;
  constexpr std::size_t header_words = 5;
  std::map<std::uint32_t, std::uint32_t> constants;
  std::vector<std::uint32_t> semantics;
  for (std::size_t at = header_words; at < words.size(); at += words[at] >> 16) {
    const std::uint32_t op = words[at] & 0xffff;
    if (op == op_constant) constants[words[at + 2]] = words[at + 3];
    if (op == op_control_barrier) semantics.push_back(constants.at(words[at + 3]));
  }
  return semantics;
}

// D may be C, and another invocation may hold the element that this one has read: the barrier
// between them is one of buffers, which a plain barrier() is not.
TEST(Shaders, NvReadsAllOfCBeforeItStoresD) {
  constexpr std::uint32_t acquire_release = 0x8, buffers = 0x40;
  std::size_t modules = 0;
  for (const embedded::Module& module : embedded::modules()) {
    if (!std::string_view(module.name).starts_with("gemm_nv_")) continue;
    ++modules;
    const std::vector<std::uint32_t> words = embedded::spirv(module);
    EXPECT_TRUE(std::ranges::any_of(barrier_semantics(words), [](std::uint32_t semantics) {
      return (semantics & acquire_release) != 0 && (semantics & buffers) != 0;
    })) << module.name;
  }
  EXPECT_GT(modules, 0u);
}

}  // namespace
}  // namespace vkgemm
