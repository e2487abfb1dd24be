// kernel.hpp: lowers (configuration, problem, device) to what a dispatch needs. Pure data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../shaders/lib/gemm_params.h"
#include "resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Whether it is the kernel for few rows (shaders/lib/matrix_thin.glsl).
constexpr bool is_thin(const Config& config) noexcept {
  return config.path == Path::fma && config.fragment_k == THIN_PIECE;
}

// f32 accumulators of one invocation.
constexpr std::uint32_t accumulator_count(const Config& c) noexcept {
  return is_thin(c) ? c.fragment_m * c.fragment_n : c.tile_m * c.tile_n / c.invocations;
}

// Columns of D that one workgroup computes.
constexpr std::uint32_t d_tile_n(const Config& c, const ResolvedProblem& problem) noexcept {
  return problem.gated ? c.tile_n / 2 : c.tile_n;
}

// Which pipeline: a shader module and the value of every specialization constant, by id.
struct PipelineKey {
  std::string_view module;  // static storage: the name of an embedded module
  std::array<std::uint32_t, SPEC_COUNT> constants{};
  std::uint32_t required_subgroup_size = 0;  // 0: any

  bool operator==(const PipelineKey&) const = default;
};

struct PipelineKeyHash {
  std::size_t operator()(const PipelineKey& key) const noexcept;
};

// One vkCmdDispatch of x × y (× slices of K) workgroups: tiles first_tile… of batches first_batch…,
// or, persistent, all tiles of all batches.
struct Dispatch {
  std::uint32_t tiles = 0;
  std::uint32_t batches = 0;
  std::uint32_t first_tile = 0;
  std::uint32_t first_batch = 0;
  std::uint32_t slices = 1;
  bool operator==(const Dispatch&) const = default;
};

// Tiles of D in one matrix of the batch; with groups of rows, as many as there may be at most.
std::uint64_t tile_count(const Config& config, const ResolvedProblem& problem);

// How many dispatches cut_grid() makes, without making them.
std::uint64_t dispatch_count(std::uint64_t tiles, std::uint64_t batches, const Limits& limits);

// Cuts a grid of tiles × batches into dispatches that respect maxComputeWorkGroupCount.
std::vector<Dispatch> cut_grid(std::uint64_t tiles, std::uint64_t batches, const Limits& limits);

// Leading dimension of split-K's partial results: N, padded to 16 bytes; with a gate twice.
std::uint64_t partial_ld(const ResolvedProblem& problem);

// Workgroups that add the partial results of one matrix of the batch.
std::uint64_t sum_block_count(const ResolvedProblem& problem);

// Words that workgroups of one dispatch share; none but for split-K without a second dispatch.
std::uint64_t control_word_count(const Config& config, const ResolvedProblem& problem);

// What stands where in the workspace of a problem as packed() shows it. Bytes; each part begins at
// a multiple of 256 of them.
struct WorkspaceLayout {
  std::uint64_t a = 0;  // the copies come first
  std::uint64_t b = 0;
  std::uint64_t partial = 0;
  std::uint64_t control = 0;
  std::uint64_t states = 0;  // of rows, in tiles
  std::uint64_t values = 0;  // of rows, in two passes
  std::uint64_t bytes = 0;   // of it all
};
WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen);

// Whether a step stores, or reads, the values between the two passes of a row reduction: these are
// then its D, or its A.
enum class ValueAccess : std::uint8_t { none, writes, reads };

// One pipeline, dispatched once or, if the grid is large, in chunks.
struct Step {
  PipelineKey key;
  gpu::GemmParams params{};  // all but addresses, first_tile and first_batch
  std::vector<Dispatch> dispatches;

  // Of a part of the problem that has fewer rows, or matrices, than the others (Parts).
  std::vector<Dispatch> last_dispatches = {};
  ValueAccess values = ValueAccess::none;

  // Of a copy, see pack.hpp: which operand it reads, and what the product reads instead.
  std::uint64_t gpu::GemmParams::*copied = nullptr;
  std::uint64_t copy_offset = 0;  // in the workspace
};

// A row reduction in two passes whose values don't fit the workspace: so many rows of so many
// matrices at a time, and how far apart rows of the operands are, in bytes.
struct Parts {
  std::uint64_t rows = 0;
  std::uint64_t batches = 0;
  std::uint64_t all_rows = 0;
  std::uint64_t all_batches = 0;
  gpu::GemmParams row_pitch{};  // in the members that are addresses

  bool is_whole() const noexcept { return rows >= all_rows && batches >= all_batches; }
  std::uint64_t count() const noexcept;
};

struct Kernel {
  std::vector<Step> before;  // beside each other, then a barrier
  Step product;
  std::vector<Step> after;  // each behind a barrier
  bool values_in_d = false;
  std::optional<Parts> parts;  // product and after, again and again, with barriers between
  WorkspaceLayout workspace;
  std::uint64_t shared_memory_bytes = 0;
};

// The configuration must be legal for the problem and the device.
Kernel lower(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps);

}  // namespace vkgemm
