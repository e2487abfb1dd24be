#include "kernels/dispatch_plan.hpp"

#include <cstddef>
#include <type_traits>
#include <variant>

namespace vkgemm {
namespace {

// The layout that GLSL gives the same blocks: no padding but at the end, which `unused` fills.
template <class Block>
constexpr bool is_block = [] {
  using Head = std::remove_reference_t<decltype(head_of(std::declval<Block&>()))>;
  return offsetof(Head, first_tile) == 0 && offsetof(Head, first_batch) == 4 &&
         sizeof(Block) % 8 == 0 && sizeof(Block) <= gpu::most_parameter_bytes;
}();
template <class... Blocks>
constexpr bool are_blocks(const std::variant<Blocks...>*) {
  return (is_block<Blocks> && ...);
}
static_assert(are_blocks(static_cast<const gpu::Parameters*>(nullptr)));

// Scalars stand at multiples of their size, as in std430 …
static_assert(alignof(std::uint64_t) == 8 && alignof(float) == 4);
// … and those of blocks that begin with GemmParams directly behind it.
static_assert([] {
  using gpu::uint;
  struct Longer {
    VKGEMM_GEMM_FIELDS
    uint next;
  };
  return offsetof(Longer, next) == sizeof(gpu::GemmParams);
}());

// Vulkan 1.4's least maximum. On a device that has less, kernels read such blocks in memory …
static_assert(gpu::most_parameter_bytes <= 256);

// … but for those that fit into Vulkan 1.3's, as do the blocks that bring the others there.
constexpr std::size_t guaranteed_bytes = 128;
template <class... Blocks>
constexpr bool fit(const std::variant<Blocks...>*) {
  return ((sizeof(Blocks) <= guaranteed_bytes || requires(Blocks b) { b.gemm; } ||
           std::is_same_v<Blocks, gpu::GemmParams>)&&...);
}
static_assert(fit(static_cast<const gpu::Parameters*>(nullptr)));
static_assert(is_block<gpu::CarryParams> && sizeof(gpu::CarryParams) <= guaranteed_bytes);
static_assert(is_block<gpu::InMemoryParams>);

// The fields that all products read stand in the first line of constants.
static_assert(offsetof(gpu::GemmParams, a) == 32 && offsetof(gpu::GemmParams, a_batch) == 64);

}  // namespace

std::size_t PipelineKeyHash::operator()(const PipelineKey& key) const noexcept {
  // FNV-1a, a word at a time.
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3u; };
  for (const char c : key.module) add(static_cast<unsigned char>(c));
  for (const std::uint32_t value : key.constants) add(value);
  add(key.required_subgroup_size);
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

}  // namespace vkgemm
