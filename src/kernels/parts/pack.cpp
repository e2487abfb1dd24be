#include "kernels/parts/pack.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/text.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"
#include "lib/footprint.h"

namespace vkgemm {
namespace {

// Elements: a cache line of 16-bit ones.
constexpr std::uint64_t ld_multiple = 64;

// Describes the packed copy of an operand that is `width` wide along M or N. In fragment order the
// leading dimension is its width, and nothing else is as if it lay in rows.
void pack(ResolvedMatrix& matrix, bool is_a, std::uint64_t width, std::uint64_t depth) {
  matrix.layout = is_a ? Layout::col_major : Layout::row_major;
  matrix.ld = rounded_up(std::max<std::uint64_t>(width, 1), ld_multiple);
  (is_a ? matrix.rows : matrix.cols) = matrix.ld;
  (is_a ? matrix.cols : matrix.rows) = depth;
  if (matrix.batch_stride != 0) matrix.batch_stride = matrix.ld * depth;
  matrix.alignment = 256;
  matrix.bytes = 0;  // no span of the caller's
}

// How many there are of so many matrices.
std::uint64_t copies(const ResolvedMatrix& copy, std::uint64_t count) {
  return copy.batch_stride != 0 ? count : 1;
}

bool check(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  if (!c.pack_a && !c.pack_b) return true;
  const std::string_view name = c.pack_a && c.pack_b ? "ab" : c.pack_a ? "a" : "b";
  if (size_in_bytes(p.a.type) != 2) {
    return s.refuse("pack is ", name, ": inputs of type ", to_string(p.a.type),
                    " are not packed, 16-bit ones are");
  }
  const Limits& limits = s.caps.limits;
  constexpr std::uint32_t shared = PACK_BYTES;
  if (limits.max_invocations < PACK_LOCAL_SIZE || limits.max_shared_memory_bytes < shared) {
    return s.refuse("pack is ", name, ": the kernel that packs takes ", PACK_LOCAL_SIZE,
                    " invocations and ", shared, " bytes of shared memory, the device has ",
                    limits.max_invocations, " and ", limits.max_shared_memory_bytes);
  }
  for (const ResolvedMatrix* matrix : {c.pack_a ? &p.a : nullptr, c.pack_b ? &p.b : nullptr}) {
    if (matrix == nullptr) continue;
    constexpr std::uint64_t most_ld = std::numeric_limits<std::int32_t>::max();
    const std::uint64_t depth = matrix->layout == Layout::col_major ? matrix->cols : matrix->rows;
    const std::uint64_t matrices = copies(*matrix, matrix == &p.a ? p.a_count() : p.b_count());
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

// Bytes behind a copy in fragment order that are read and not used: by tiles at the edge, and by
// loads that are ahead.
std::uint64_t bytes_beyond(const ResolvedMatrix& copy, const Config& c) {
  const LoopDescriptor& loop = descriptor(c);
  if (!loop.takes_fragments()) return 0;
  const std::uint64_t width = loop.steps_beyond(c) * copy.ld + std::max(c.tile_m, c.tile_n);
  return width * c.tile_k * size_in_bytes(copy.type);  // tile_k: fragment_k or more
}

// Bytes that are copied, and those that the copies of `count` matrices take.
std::uint64_t copied_bytes(const ResolvedMatrix& copy, std::uint64_t count) {
  const std::uint64_t depth = copy.layout == Layout::col_major ? copy.cols : copy.rows;
  return copy.ld * depth * size_in_bytes(copy.type) * copies(copy, count);
}
std::uint64_t packed_bytes(const ResolvedMatrix& copy, const Config& c, std::uint64_t count) {
  return rounded_up(copied_bytes(copy, count) + bytes_beyond(copy, c), 256);
}

// The constants of pack_fragments.comp: no others, so that tiles share its pipelines.
void set_fragments(Constants& constants, const Config& config, bool is_a) {
  PipelineKey product;
  Constants all(product.constants);
  descriptor(config).specialize(all, config);
  for (const std::size_t id : {SPEC_FRAGMENT_M, SPEC_FRAGMENT_N, SPEC_FRAGMENT_K, SPEC_SWAP_A}) {
    if (is_a || id != SPEC_SWAP_A) constants.set(id, product.constants[id]);
  }
  constants.set(SPEC_PACKS_B, !is_a);
  // Slots of groups, by which shared code divides.
  for (const std::size_t id : {SPEC_TILE_M, SPEC_TILE_K}) constants.set(id, std::uint32_t{1});
}

// What the kernel finds groups by, each of which begins at a slot of its own.
void set_slots(Step& step, const Config& config, const Grouping& grouping) {
  Constants constants(step.key.constants);
  set_groups(constants, grouping);
  if (grouping.along == GroupAlong::m) constants.set(SPEC_TILE_M, config.tile_m);
  if (grouping.along == GroupAlong::k) constants.set(SPEC_TILE_K, config.tile_k);
  auto& params = step.block<gpu::PackParams>();
  params.groups = grouping.groups;
  params.candidates = invocations(config);
}

// Copies an operand of the problem to `copy`.
Step pack_step(bool is_a, const ResolvedProblem& problem, const ResolvedMatrix& copy,
               const Config& config, const Limits& limits) {
  const ResolvedMatrix& source = is_a ? problem.a : problem.b;
  const std::uint64_t count = copies(copy, is_a ? problem.a_count() : problem.b_count());
  const bool vectors = is_a ? problem.a_allows_vectors() : problem.b_allows_vectors();
  const std::uint64_t depth = is_a ? copy.cols : copy.rows;
  Step step;
  step.copied = is_a ? &Addresses::a : &Addresses::b;
  Constants constants(step.key.constants);
  step.key.module = "pack";
  if (descriptor(config).takes_fragments()) {
    step.key.module = module_name("pack", config.main_loop(), source.type);
    step.key.required_subgroup_size = required_subgroup_size(config, limits);
    set_fragments(constants, config, is_a);
  }
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{PACK_LOCAL_SIZE});
  constants.set(SPEC_A_COL_MAJOR, source.layout == copy.layout);
  constants.set(SPEC_A_VECTOR, vectors ? load_width(source) : 0);
  gpu::PackParams params{};
  params.width = narrow(is_a ? problem.m : problem.n);
  params.depth = narrow(problem.k);
  params.source_ld = narrow(source.ld);
  params.copy_ld = narrow(copy.ld);
  params.copy_depth = narrow(depth);
  params.source_batch = source.batch_stride * size_in_bytes(source.type);
  params.copy_batch = copy.batch_stride * size_in_bytes(copy.type);
  step.params = params;
  if (copy.by_slots) set_slots(step, config, *problem.grouping);
  const std::uint64_t tiles = divided_up(copy.ld, PACK_TILE) * divided_up(depth, PACK_TILE);
  step.dispatches = cut_grid(tiles, count, limits);
  return step;
}

void lower(Lowering& l) {
  if (l.original.k == 0) return;  // neither is read
  const auto copy = [&](bool is_a, const ResolvedMatrix& target) {
    l.plan.before.push_back(pack_step(is_a, l.original, target, l.config, l.target.caps.limits));
  };
  if (l.config.pack_a) copy(true, l.problem.a);
  if (l.config.pack_b) copy(false, l.problem.b);
}

void add_workspace(WorkspaceLayout& out, const Config& c, const ResolvedProblem& p) {
  if (c.pack_a) out.add(&Addresses::a, packed_bytes(p.a, c, p.a_count()));
  if (c.pack_b) out.add(&Addresses::b, packed_bytes(p.b, c, p.b_count()));
}

// Copies run beside each other, then comes a barrier.
double cost(const Config& config, const ResolvedProblem& original, const TimingModel& timing,
            const ProductCost&) {
  if (!config.pack_a && !config.pack_b) return 0.0;
  const ResolvedProblem seen = packed(original, config);
  const auto bytes_of = [&](bool is_packed, const ResolvedMatrix& copy, std::uint64_t count) {
    return static_cast<double>(is_packed ? copied_bytes(copy, count) : 0);
  };
  const double bytes = bytes_of(config.pack_a, seen.a, seen.a_count()) +
                       bytes_of(config.pack_b, seen.b, seen.b_count());
  return timing.sum + 2.0 * bytes / kilobyte / timing.copy;
}

std::string describe(const Config& c, const ResolvedProblem&, const DispatchPlan&) {
  if (!c.pack_a && !c.pack_b) return {};
  return concat("packing: ", c.pack_a && c.pack_b ? "2 operands" : "1 operand",
                ", by dispatches before");
}

}  // namespace

ResolvedProblem packed(const ResolvedProblem& problem, const Config& config) {
  ResolvedProblem out = problem;
  const auto slots = [&](std::uint64_t capacity, std::uint32_t slot) {
    return slot_count(capacity, slot, problem.grouping->groups) * slot;
  };
  std::uint64_t rows = problem.m;
  if (problem.is_grouped(GroupAlong::m)) rows = slots(problem.m, config.tile_m);
  // Where both are copied, the depth is padded with zeros, too.
  if (config.pack_a && config.pack_b && !problem.is_grouped(GroupAlong::k))
    out.k = rounded_up(problem.k, std::max(config.tile_k, 1u));
  std::uint64_t depth = out.k;
  if (problem.is_grouped(GroupAlong::k)) depth = slots(problem.k, config.tile_k);
  if (config.pack_a) pack(out.a, true, rows, depth);
  if (config.pack_b) pack(out.b, false, problem.n, depth);
  out.a.by_slots = config.pack_a && problem.grouping.has_value();
  out.b.by_slots = config.pack_b && problem.is_grouped(GroupAlong::k);
  return out;
}

extern constexpr Part pack_part{.check = check,
                                .lower = lower,
                                .describe = describe,
                                .cost = cost,
                                .add_workspace = add_workspace};

}  // namespace vkgemm
