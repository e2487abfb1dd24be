#include "kernels/dispatch_plan.hpp"

#include <algorithm>
#include <cstddef>

namespace vkgemm {
namespace {

using gpu::GemmParams;

// The layout that GLSL gives the same blocks: no padding but at the end, which `unused` fills.
template <class Block>
constexpr bool begins_with_chunk = offsetof(Block, first_tile) == 0 &&
                                   offsetof(Block, first_batch) == 4;
static_assert(begins_with_chunk<GemmParams> && begins_with_chunk<gpu::PackParams> &&
              begins_with_chunk<gpu::ResetParams> && begins_with_chunk<gpu::ReduceRowsParams> &&
              begins_with_chunk<gpu::MergeParams>);
static_assert(sizeof(GemmParams) == 248 && offsetof(GemmParams, a) == 8 &&
              offsetof(GemmParams, b_right) == 104 && offsetof(GemmParams, m) == 176 &&
              offsetof(GemmParams, alpha) == 212 && offsetof(GemmParams, row_stage) == 244);
static_assert(sizeof(gpu::PackParams) == 64 && offsetof(gpu::PackParams, width) == 40);
static_assert(sizeof(gpu::ResetParams) == 40 && offsetof(gpu::ResetParams, control_words) == 32);
static_assert(sizeof(gpu::ReduceRowsParams) == 88 && offsetof(gpu::ReduceRowsParams, m) == 64);
static_assert(sizeof(gpu::MergeParams) == 32 && offsetof(gpu::MergeParams, m) == 24);

// The pipeline layout, and what is asked of a device, are for the largest.
static_assert(sizeof(GemmParams) ==
              std::max({sizeof(GemmParams), sizeof(gpu::PackParams), sizeof(gpu::ResetParams),
                        sizeof(gpu::ReduceRowsParams), sizeof(gpu::MergeParams)}));

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
