// legality_workspace.cpp: whether slices of K and packed operands are possible.
#include <limits>
#include <string_view>

#include "../shaders/lib/gemm_params.h"
#include "kernel.hpp"
#include "legality_case.hpp"

namespace vkgemm {
namespace {

// Workspaces that no device has.
constexpr std::uint64_t most_workspace_bytes = std::uint64_t{1} << 48;

// Each workgroup takes one more than there are.
constexpr std::uint64_t most_tickets = std::uint64_t{1} << 31;

// What the tiers without a second dispatch need.
bool check_tier(const Case& s) {
  const Config& c = s.config;
  if (c.tier == SplitTier::two_dispatches) return true;
  const std::string_view tier = to_string(c.tier);
  if (tier == "?") {
    return s.refuse("tier is ", static_cast<unsigned>(c.tier), ": no such enumerator");
  }
  if (c.slices == 1) return s.refuse("tier is ", tier, ": slices is 1, nothing is to be added");
  if (c.path == Path::nv) {
    return s.refuse("tier is ", tier,
                    ": path nv cannot show what it stores to other workgroups of ",
                    "the same dispatch, tier two_dispatches it can");
  }
  if (c.tier == SplitTier::device_barrier && !s.caps.device_barrier.available) {
    return s.refuse("tier is ", tier, ": ", s.caps.device_barrier.reason);
  }
  // Tickets and tiles are counted in 32 bits, and one dispatch sets the words to zero.
  const std::uint64_t tiles = tile_count(c, s.problem);
  constexpr std::uint64_t most_words = std::uint64_t{65535} * RESET_LOCAL_SIZE;
  if (tiles > most_words / s.problem.batch || control_word_count(c, s.problem) > most_words ||
      tiles * s.problem.batch > most_tickets / c.slices) {
    return s.refuse("tier is ", tier, ": ", tiles, " tiles in each of ", s.problem.batch,
                    " matrices are too many to count");
  }
  return true;
}

}  // namespace

bool check_split(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  if (!check_tier(s)) return false;
  if (c.slices == 1) return true;
  const std::uint32_t most_z = s.caps.limits.max_workgroup_count[2];
  if (most_z != 0 && c.slices > most_z) {
    return s.refuse("slices is ", c.slices, ", the device has at most ", most_z,
                    " workgroups in z");
  }
  const std::uint64_t matrices = p.batch * c.slices;
  const std::uint64_t row_bytes = partial_ld(p) * sizeof(float);
  if (p.batch > most_workspace_bytes / c.slices || matrices > most_workspace_bytes / row_bytes ||
      p.m > most_workspace_bytes / row_bytes / matrices) {
    return s.refuse("slices is ", c.slices, ": partial results of ", p.m, " rows of ", row_bytes,
                    " bytes in each of ", p.batch, " matrices take more than ",
                    most_workspace_bytes, " bytes");
  }
  constexpr std::uint64_t most_blocks = std::numeric_limits<std::int32_t>::max();
  const std::uint64_t blocks = sum_block_count(p);
  if (blocks > most_blocks || dispatch_count(blocks, p.batch, s.caps.limits) > most_dispatches) {
    return s.refuse("slices is ", c.slices, ": ", blocks,
                    " workgroups to add the partial results are too many");
  }
  return true;
}

bool check_pack(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  if (!c.pack_a && !c.pack_b) return true;
  const std::string_view name = c.pack_a && c.pack_b ? "ab" : c.pack_a ? "a" : "b";
  if (size_in_bytes(p.a.type) != 2) {
    return s.refuse("pack is ", name, ": inputs of type ", to_string(p.a.type),
                    " are not packed, 16-bit ones are");
  }
  const Limits& limits = s.caps.limits;
  constexpr std::uint32_t shared = PACK_TILE * (PACK_TILE / 2 + 1) * sizeof(std::uint32_t);
  if (limits.max_invocations < PACK_LOCAL_SIZE || limits.max_shared_memory_bytes < shared) {
    return s.refuse("pack is ", name, ": the kernel that packs takes ", PACK_LOCAL_SIZE,
                    " invocations and ", shared, " bytes of shared memory, the device has ",
                    limits.max_invocations, " and ", limits.max_shared_memory_bytes);
  }
  for (const ResolvedMatrix* matrix : {c.pack_a ? &p.a : nullptr, c.pack_b ? &p.b : nullptr}) {
    if (matrix == nullptr) continue;
    constexpr std::uint64_t most_ld = std::numeric_limits<std::int32_t>::max();
    const std::uint64_t depth = matrix->layout == Layout::col_major ? matrix->cols : matrix->rows;
    const std::uint64_t matrices = matrix->batch_stride != 0 ? p.batch : 1;
    const std::uint64_t tiles = (matrix->ld / PACK_TILE) * (depth / PACK_TILE + 1);
    if (matrix->ld > most_ld || depth > most_ld || tiles > most_ld ||
        matrices > most_workspace_bytes / (matrix->ld * (depth + 1) * sizeof(std::uint16_t)) ||
        dispatch_count(tiles, matrices, s.caps.limits) > most_dispatches) {
      return s.refuse("pack is ", name, ": ", matrices, " copies of ", matrix->ld, " by ", depth,
                      " elements are too large");
    }
  }
  return true;
}

}  // namespace vkgemm
