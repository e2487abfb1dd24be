// legality_rows.cpp: which strategy can reduce which rows.
#include <bit>
#include <limits>

#include "../shaders/lib/gemm_params.h"
#include "kernel.hpp"
#include "legality_case.hpp"
#include "row_reduction.hpp"

namespace vkgemm {
namespace {

// Each workgroup takes one ticket; a dispatch along x sets the words to zero.
constexpr std::uint64_t most_tickets = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t most_words = std::uint64_t{65535} * RESET_LOCAL_SIZE;

bool check_panel(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  const std::uint64_t tiles = tile_count(c, p);
  if (is_scalar(p.rows->op)) {  // nobody waits
    const std::uint64_t blocks = p.m / MERGE_LOCAL_SIZE + 1;
    if (dispatch_count(blocks, p.batch, s.caps.limits) <= most_dispatches) return true;
    return s.refuse("rows is panel: ", p.m, " rows in each of ", p.batch,
                    " matrices need too many dispatches to merge, at most ", most_dispatches,
                    " are recorded");
  }
  if (tiles > most_tickets / p.batch || control_word_count(c, p) > most_words) {
    return s.refuse("rows is panel: ", tiles, " tiles in each of ", p.batch,
                    " matrices are too many to count");
  }
  if (!s.caps.device_barrier.available) {
    return s.refuse("rows is panel: ", s.caps.device_barrier.reason);
  }
  // All workgroups of a panel, and of those that are begun beside it, must be resident at once.
  const std::uint64_t panels = std::min<std::uint64_t>(c.swizzle, tiles / tile_columns(c, p));
  const std::uint64_t waiting = tile_columns(c, p) * panels;
  if (const std::uint64_t units = s.caps.limits.compute_units; units != 0 && waiting > units) {
    return s.refuse("rows is panel: ", tile_columns(c, p),
                    " tiles in each row of tiles, in bands of ", panels, ", are ", waiting,
                    " workgroups that wait for each other, the device has ", units,
                    " compute units");
  }
  return true;
}

bool check_tiles(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  const std::string_view rows = to_string(c.rows);
  if (c.path == Path::nv || is_thin(c)) {
    return s.refuse("rows is ", rows, ": ",
                    c.path == Path::nv ? "path nv" : "the kernel for few rows",
                    " hides where its values stand, two_pass it can");
  }
  if (c.slices > 1) {
    return s.refuse("rows is ", rows, ": slices is ", c.slices, ", only two_pass adds slices");
  }
  if (!std::has_single_bit(c.tile_n) || c.tile_n < least_row_tile_n || c.tile_n > most_row_tile_n) {
    return s.refuse("rows is ", rows, ": tile_n is ", c.tile_n, ", not a power of two from ",
                    least_row_tile_n, " to ", most_row_tile_n);
  }
  switch (c.rows) {
    case RowStrategy::resident:
      if (tile_columns(c, p) == 1) return true;
      return s.refuse("rows is resident: tile_n is ", c.tile_n, ", less than n, ", p.n);
    case RowStrategy::panel:
      return check_panel(s);
    default:
      if (!is_scalar(p.rows->op)) return true;
      return s.refuse("rows is recompute: ", to_string(p.rows->op),
                      " is one number a row, which needs no second product, panel gives it");
  }
}

bool check_two_pass(const Case& s) {
  const Config& c = s.config;
  if (c.pack_a || c.pack_b) return s.refuse("pack: not built for rows in two passes");
  const Limits& limits = s.caps.limits;
  constexpr std::uint32_t shared = ROW_LOCAL_SIZE * 2 * sizeof(float);
  if (limits.max_invocations < ROW_LOCAL_SIZE || limits.max_shared_memory_bytes < shared) {
    return s.refuse("rows is two_pass: the kernel that reduces takes ", ROW_LOCAL_SIZE,
                    " invocations and ", shared, " bytes of shared memory, the device has ",
                    limits.max_invocations, " and ", limits.max_shared_memory_bytes);
  }
  const Parts parts = row_parts(c, s.problem);
  const std::uint64_t each =
      dispatch_count(parts.rows, parts.batches, limits) +
      dispatch_count(tile_count(c, value_problem(c, s.problem)), parts.batches, limits);
  if (parts.count() > most_dispatches / each) {
    return s.refuse("rows is two_pass: ", parts.count(), " parts of ", parts.rows,
                    " rows need too many dispatches, at most ", most_dispatches, " are recorded");
  }
  return true;
}

}  // namespace

bool check_rows(const Case& s) {
  const RowStrategy strategy = s.config.rows;
  const std::string_view name = to_string(strategy);
  if (name == "?") {
    return s.refuse("rows is ", static_cast<unsigned>(strategy), ": no such enumerator");
  }
  if (!s.problem.rows) {
    return strategy == RowStrategy::none ||
           s.refuse("rows is ", name, ": the problem has no row_reduction");
  }
  if (strategy == RowStrategy::none) {
    return s.refuse("rows is none: row_reduction ", to_string(s.problem.rows->op),
                    " needs resident, panel, recompute or two_pass");
  }
  return strategy == RowStrategy::two_pass ? check_two_pass(s) : check_tiles(s);
}

}  // namespace vkgemm
