// rows.hpp: reductions of whole rows: what their strategies need of memory. Pure.
#pragma once

#include <cstdint>

#include "kernels/part.hpp"
#include "lib/abi.h"

namespace vkgemm {

// Widths of the tiles that reduce_tiles.comp takes: the least that row_panel_state.glsl counts on,
// and the widest that is a part of a block (row_state.glsl).
inline constexpr std::uint32_t least_row_tile_n = ROW_LEAST_TILE_N;
inline constexpr std::uint32_t most_row_tile_n = ROW_BLOCK;

// True if a workgroup keeps the values of its tile until the rows are known (reduce_tiles.comp).
constexpr bool keeps_tiles(RowStrategy strategy) noexcept {
  return strategy == RowStrategy::resident || strategy == RowStrategy::panel ||
         strategy == RowStrategy::recompute;
}

// Tiles of one row of tiles.
std::uint64_t tile_columns(const Config& config, const ResolvedProblem& problem);

// How the values between two passes lie: in D, or in the workspace.
bool values_stand_in_d(const ResolvedProblem& problem);
RowChunks row_chunks(const Config& config, const ResolvedProblem& problem);

ResolvedMatrix value_matrix(const ResolvedProblem& problem, const RowChunks& chunks);

// Bytes of the workspace, and words that workgroups share in it.
std::uint64_t row_control_words(const Config& config, const ResolvedProblem& problem);
std::uint64_t row_state_bytes(const Config& config, const ResolvedProblem& problem);
std::uint64_t row_value_bytes(const Config& config, const ResolvedProblem& problem);

// Shared memory that reduce_tiles.comp needs beside that of the product.
std::uint64_t row_part_bytes(const Config& config, const ResolvedProblem& problem);

// A bound on the microseconds that a strategy takes beside a product, which takes `product`.
double least_row_time(RowStrategy strategy, const ResolvedProblem& problem,
                      const TimingModel& timing, double product);

// Adds the second pass of two_pass over the values of a product, that of the first chunk or of the
// last one, whose plan it is.
void add_second_pass(DispatchPlan& plan, const Computation& computation,
                     const ResolvedProblem& product, const Limits& limits);

}  // namespace vkgemm
