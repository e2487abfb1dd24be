#include "kernels/dispatch_plan.hpp"

#include <cstddef>
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
static_assert(are_blocks(static_cast<const Parameters*>(nullptr)));

using gpu::GemmParams;
static_assert(sizeof(GemmParams) == 176 && offsetof(GemmParams, a) == 32 &&
              offsetof(GemmParams, a_batch) == 64 && offsetof(GemmParams, c) == 104 &&
              offsetof(GemmParams, bias) == 128 && offsetof(GemmParams, b_right) == 168);
static_assert(sizeof(gpu::SplitParams) == 200 && offsetof(gpu::SplitParams, control) == 176);
static_assert(sizeof(gpu::GroupedParams) == 200 && offsetof(gpu::GroupedParams, groups) == 192);
static_assert(sizeof(gpu::ReduceTilesParams) == 240 &&
              offsetof(gpu::ReduceTilesParams, row_stage) == 232);
static_assert(sizeof(gpu::PackParams) == 64 && offsetof(gpu::PackParams, width) == 40);
static_assert(sizeof(gpu::ResetParams) == 40 && offsetof(gpu::ResetParams, control_words) == 32);
static_assert(sizeof(gpu::ReduceRowsParams) == 88 && offsetof(gpu::ReduceRowsParams, m) == 64);
static_assert(sizeof(gpu::MergeParams) == 32 && offsetof(gpu::MergeParams, m) == 24);

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

std::uint64_t RowChunks::count() const noexcept {
  return divided_up(all_rows, rows) * divided_up(all_batches, batches);
}

}  // namespace vkgemm
