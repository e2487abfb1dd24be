#include "kernels/computation.hpp"

#include <algorithm>
#include <numeric>

#include "base/arithmetic.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/row_sums.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/tiling.hpp"
#include "kernels/workspace.hpp"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {
namespace {

// Chunks of a product whose A is copied chunk for chunk: more would be too little work each.
constexpr std::uint64_t most_copied_chunks = 64;

// The depth that is multiplied. Zeros pad it if both operands are packed.
std::uint64_t multiplied_depth(const ResolvedProblem& problem, const Config& config) {
  const bool pads = config.pack_a && config.pack_b && !problem.is_grouped(GroupAlong::k);
  return pads ? rounded_up(problem.k, std::uint64_t{config.tile_k}) : problem.k;
}

// True if packed() would change the problem.
bool changes_operands(const ResolvedProblem& problem, const Config& config) {
  return (config.pack_a && !problem.a.is_packed()) || (config.pack_b && !problem.b.is_packed()) ||
         multiplied_depth(problem, config) != problem.k;
}

// The problem with packed operands: copies in the workspace. In fragment order the leading
// dimension of a copy is its width, and nothing else is as if it lay in rows.
ResolvedProblem packed(const ResolvedProblem& problem, const Config& config) {
  const LoopDescriptor& loop = descriptor(config);
  ResolvedProblem out = problem;
  const auto slots = [&](std::uint64_t capacity, std::uint32_t slot) {
    return problem.group_slots(capacity, slot) * slot;
  };
  const std::uint64_t rows =
      problem.is_grouped(GroupAlong::m) ? slots(problem.m, config.tile_m) : problem.m;
  out.k = multiplied_depth(problem, config);
  const std::uint64_t depth =
      problem.is_grouped(GroupAlong::k) ? slots(problem.k, config.tile_k) : out.k;
  for (const bool of_a : {true, false}) {
    ResolvedMatrix& matrix = of_a ? out.a : out.b;
    if (!(of_a ? config.pack_a : config.pack_b) || matrix.is_packed()) continue;
    matrix.layout = of_a ? Layout::col_major : Layout::row_major;
    matrix.form = Form::copied_packed;
    matrix.halves_apart = !of_a && problem.gated;
    if (loop.takes_fragments()) matrix.fragments = loop.fragment_order(config, of_a);
    set_input(matrix, *problem.input);
    matrix.by_slots = problem.is_grouped(GroupAlong::k) || (of_a && problem.grouping);
    matrix.ld = rounded_up(std::max<std::uint64_t>(of_a ? rows : problem.n, 1),
                           std::uint64_t{packed_width});
    (of_a ? matrix.rows : matrix.cols) = matrix.ld;
    (of_a ? matrix.cols : matrix.rows) = depth;
    if (matrix.batch_stride != 0) matrix.batch_stride = matrix.packed_elements();
    matrix.alignment = workspace_unit;
    matrix.bytes = 0;  // no span of the caller's
  }
  return out;
}

// The first chunk of a problem, or the last one. The last chunk of a copy keeps the leading
// dimension, and with it the tiles: zeros fill its missing rows.
ResolvedProblem chunk_of(const ResolvedProblem& problem, const RowChunks& chunks,
                         bool last = false) {
  const auto size = [last](std::uint64_t each, std::uint64_t all) {
    return last && all % each != 0 ? all % each : each;
  };
  ResolvedProblem out = problem;
  out.m = size(chunks.rows, chunks.all_rows);
  out.batch = size(chunks.batches, chunks.all_batches);
  out.whole_m = chunks.all_rows;
  out.whole_batch = chunks.all_batches;
  return out;
}

}  // namespace

Computation::Computation(const ResolvedProblem& asked, const Config& config)
    : asked_(asked), config_(config) {
  if (changes_operands(asked, config)) {
    whole_ = packed(asked, config);
    cut_copies();
  }
  if (config.rows == RowStrategy::two_pass && asked.rows) cut_values();
  if (asked.adds_rows()) {
    values_ = *chunk();
    values_->d = row_sum_values(*values_);
    values_->epilogue.zero_point = 0;
  }
  if (chunks_) last_ = chunk_of(*product(), *chunks_, true);
}

// Leaves the product whole if that fits, or if no number of chunks does.
void Computation::cut_copies() {
  const ResolvedProblem& p = asked_;
  const Config& c = config_;
  if (whole_->a.form != Form::copied_packed || p.is_grouped(GroupAlong::k) || p.k == 0 ||
      !descriptor(c).takes_fragments() || c.tile_n < 2 || c.slices > 1 ||
      c.rows == RowStrategy::two_pass || p.max_workspace_bytes == 0 ||
      (p.grouping && sums_columns(p.epilogue)) || p.has_row_index() || calls_function(p.epilogue)) {
    return;
  }
  // A device that has fragments has its parameters in push constants.
  if (workspace_layout(c, whole()).bytes <= p.max_workspace_bytes) return;
  RowChunks chunks{.rows = p.m,
                   .batches = p.batch,
                   .all_rows = p.m,
                   .all_batches = p.batch,
                   .with_copies = true};
  const auto fits = [&] {
    chunk_ = packed(chunk_of(p, chunks), c);
    return workspace_layout(c, chunk()).bytes <= p.max_workspace_bytes;
  };
  const std::uint64_t least = std::lcm(std::uint64_t{c.tile_m}, packed_width);
  const auto rows_of = [&](std::uint64_t parts) {
    return rounded_up(divided_up(p.m, parts), least);
  };
  const auto smallest_fits = [&] {
    chunks.rows = std::min(p.m, rows_of(most_copied_chunks));
    chunks.batches = 1;
    const bool fit = fits();
    chunks.rows = p.m;
    chunks.batches = p.batch;
    return fit;
  };
  // Fewer matrices first, then fewer rows of one.
  const auto cut = [&] {
    for (std::uint64_t parts = 2; chunks.batches > 1; ++parts) {
      chunks.batches = divided_up(p.batch, parts);
      if (chunks.count() > most_copied_chunks) return false;
      if (fits()) return true;
    }
    for (std::uint64_t parts = 2; parts <= most_copied_chunks; ++parts) {
      chunks.rows = rows_of(parts);
      if (chunks.count() > most_copied_chunks) return false;
      if (fits()) return true;
    }
    return false;
  };
  if (smallest_fits() && cut()) {
    chunks_ = chunks;
  } else {
    chunk_.reset();
  }
}

void Computation::cut_values() {
  const ResolvedProblem& p = *chunk();
  const RowChunks chunks = row_chunks(config_, p);
  values_ = chunk_of(p, chunks);
  values_->rows.reset();
  values_->epilogue.zero_point = 0;
  if (!values_stand_in_d(p)) values_->d = value_matrix(p, chunks);
  if (!chunks.is_whole()) chunks_ = chunks;
}

}  // namespace vkgemm
