#include "kernels/parts/pack.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/computation.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"
#include "kernels/verdicts.hpp"
#include "kernels/workspace.hpp"
#include "lib/footprint.h"
#include "problem/inputs/input.hpp"

namespace vkgemm {
namespace {

// What packed operands are read beyond their end is known before the configuration is: so many
// steps of fragments, and so wide a tile.
constexpr std::uint64_t most_steps_beyond = 2;
constexpr std::uint64_t most_tile_beyond = 512;

// Packed matrices tell A from B by their layout.
bool is_a(const ResolvedMatrix& packed) { return packed.layout == Layout::col_major; }

// Matrices of which there are `count` products: one may serve all.
std::uint64_t matrices(const ResolvedMatrix& matrix, std::uint64_t count) {
  return matrix.batch_stride != 0 ? count : 1;
}

std::string order_text(const ResolvedMatrix& matrix, const std::optional<FragmentOrder>& order) {
  if (!order) return matrix.quantisation ? "codes" : "rows";
  return concat("fragments of ", order->mn, "x", order->k, " for subgroups of ",
                order->subgroup_size, order->swapped ? ", swapped" : "",
                order->interleaved ? ", interleaved" : "");
}

// The order in which a configuration takes a packed operand; nothing: in rows.
std::optional<FragmentOrder> order_taken(const Config& config, const ResolvedMatrix& matrix) {
  const LoopDescriptor& loop = descriptor(config);
  if (!loop.takes_fragments()) return std::nullopt;
  return loop.fragment_order(config, is_a(matrix));
}

// An operand that the caller packed is taken as it is.
bool check_given(const Case& s, const ResolvedMatrix& matrix, std::string_view name, bool packs) {
  if (matrix.form != Form::given_packed) return true;
  const Config& c = s.config;
  if (!packs) return s.refuse(name, " is packed: pack has to name it");
  const LoopDescriptor& loop = descriptor(c);
  const std::optional<FragmentOrder> taken = order_taken(c, matrix);
  if (taken != matrix.fragments) {
    return s.refuse([&] {
      return concat(name, " is packed in ", order_text(matrix, matrix.fragments), ", main loop ",
                    to_string(c.main_loop()), " takes it in ", order_text(matrix, taken));
    });
  }
  if (s.problem->k > matrix.lines()) {
    return s.refuse("tile_k is ", c.tile_k, ": ", name, " is packed ", matrix.lines(), " deep, ",
                    s.problem->k, " would be read");
  }
  if (taken && (loop.steps_beyond(c) > most_steps_beyond ||
                std::max(c.tile_m, c.tile_n) > most_tile_beyond)) {
    return s.refuse("tile ", tile_of(c), ": packed operands are read at most ", most_steps_beyond,
                    " steps and ", most_tile_beyond, " elements beyond their end");
  }
  return true;
}

bool check(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  if (!check_given(s, p.a, p.transposed ? "b" : "a", c.pack_a) ||
      !check_given(s, p.b, p.transposed ? "a" : "b", c.pack_b)) {
    return false;
  }
  const bool copies_a = p.a.form == Form::copied_packed, copies_b = p.b.form == Form::copied_packed;
  if (!copies_a && !copies_b) return true;
  const std::string_view name = copies_a && copies_b ? "ab" : copies_a ? "a" : "b";
  if (p.input->group_sums)
    return s.refuse("pack is ", name, ": scales multiply sums over groups of K, and A is plain");
  if (!p.input->packed_in_fragments) {
    return s.refuse("pack is ", name, ": inputs of type ", to_string(p.input_type()),
                    " are not packed, 16-bit ones and s8 are");
  }
  if (!p.input->packed_in_rows && !descriptor(c).takes_fragments()) {
    return s.refuse("pack is ", name, " and inputs are ", to_string(p.input_type()), ": main loop ",
                    to_string(c.main_loop()), " takes them plain");
  }
  for (const ResolvedMatrix* matrix : {copies_a ? &p.a : nullptr, copies_b ? &p.b : nullptr}) {
    if (matrix == nullptr) continue;
    const std::uint64_t count = matrix == &p.a ? p.a_count() : p.b_count();
    const auto reason = why_not_packed(*matrix, matrices(*matrix, count), s.caps.limits);
    if (reason) return s.refuse("pack is ", name, ": ", *reason);
  }
  return true;
}

// Bytes behind a copy in fragment order that are read and not used: by tiles at the edge, and by
// loads that are ahead.
std::uint64_t bytes_beyond(const ResolvedMatrix& copy, std::uint64_t steps, std::uint64_t tile) {
  if (!copy.fragments) return 0;
  return (steps * copy.ld + tile) * copy.fragments->k * copy.element_bytes();
}

// Bytes that are copied, and those that the copy takes.
std::uint64_t copied_bytes(const ResolvedMatrix& copy, std::uint64_t count) {
  if (copy.form != Form::copied_packed) return 0;
  return copy.packed_elements() * copy.element_bytes() * matrices(copy, count);
}
std::uint64_t workspace_bytes(const ResolvedMatrix& copy, const Config& c, std::uint64_t count) {
  const LoopDescriptor& loop = descriptor(c);
  const std::uint64_t steps = loop.takes_fragments() ? loop.steps_beyond(c) : 0;
  return copied_bytes(copy, count) + bytes_beyond(copy, steps, std::max(c.tile_m, c.tile_n));
}

// What the kernel finds groups by, each of which begins at a slot of its own.
void set_slots(Step& step, const Config& config, const ResolvedProblem& problem) {
  const auto& grouping = *problem.grouping;
  Constants constants(step.key.constants);
  set_groups(constants, problem);
  if (grouping.along == GroupAlong::m) constants.set(SPEC_TILE_M, config.tile_m);
  if (grouping.along == GroupAlong::k) constants.set(SPEC_TILE_K, config.tile_k);
  auto& params = step.block<gpu::PackParams>();
  params.groups = grouping.groups;
  params.candidates = invocations(config);
  if (problem.gathers_rows() && step.copied == &Addresses::a) {
    constants.set(SPEC_GATHER, grouping.a_terms);
    params.source_rows = narrow(grouping.a_rows);
  }
}

// Rows in two passes are copied whole, for all chunks.
void lower(Lowering& l) {
  const ResolvedProblem& asked = l.computation.asked();
  if (asked.k == 0) return;  // nothing is read
  const bool whole = l.config.rows == RowStrategy::two_pass;
  const ResolvedProblem& chunk = whole ? *l.computation.whole() : *l.problem;
  for (const ResolvedMatrix* copy : {&chunk.a, &chunk.b}) {
    if (copy->form != Form::copied_packed) continue;
    Step& step = l.plan.before.emplace_back(pack_step(asked, chunk, *copy, l.target.caps.limits));
    if (copy->by_slots) set_slots(step, l.config, asked);
  }
}

void add_workspace(WorkspaceLayout& out, const Config& c, const ComputedProblem& computed) {
  const ResolvedProblem& p = *computed;
  if (p.a.form == Form::copied_packed) out.add(&Addresses::a, workspace_bytes(p.a, c, p.a_count()));
  if (p.b.form == Form::copied_packed) out.add(&Addresses::b, workspace_bytes(p.b, c, p.b_count()));
}

// The factor of copies whose lines have scales: the source is read twice, and a workgroup takes
// whole lines.
double slower_with_scales(const ResolvedProblem& seen, const TimingModel& timing) {
  double workgroups = 0.0;
  for (const ResolvedMatrix* copy : {&seen.a, &seen.b}) {
    if (copy->form != Form::copied_packed || !copy->line_scales()) continue;
    const std::uint64_t count = copy == &seen.a ? seen.a_count() : seen.b_count();
    workgroups += static_cast<double>(pack_tiles(*copy) * matrices(*copy, count));
  }
  if (!(workgroups > 0.0)) return 1.0;
  return 1.5 * std::max(timing.compute_units / workgroups, 1.0);
}

// Bytes that are read and written.
double transfer_time(double bytes, const TimingModel& timing) {
  return 2.0 * bytes / kilobyte / timing.copy;
}

// Copies run beside each other, then comes a barrier.
double cost(const Config& config, const Computation& computation, const TimingModel& timing,
            const ProductCost&) {
  if (!config.pack_a && !config.pack_b) return 0.0;
  const ResolvedProblem& seen = *computation.whole();
  const ResolvedProblem& asked = computation.asked();
  // Half of what is read and written.
  const auto moved = [&](const ResolvedMatrix& copy, const ResolvedMatrix& source,
                         std::uint64_t count) {
    const auto all = static_cast<double>(copied_bytes(copy, count));
    return asked.converts(source) ? all * (source.element_bytes() + copy.element_bytes()) /
                                        (2.0 * copy.element_bytes())
                                  : all;
  };
  const double bytes =
      moved(seen.a, asked.a, seen.a_count()) + moved(seen.b, asked.b, seen.b_count());
  if (!(bytes > 0.0)) return 0.0;
  const auto& chunks = computation.chunks();
  // Each chunk waits for its copy, and the next copy for it. Slices of K have no such chunks.
  const bool in_chunks = chunks && chunks->with_copies && config.slices == 1;
  const double waits = in_chunks ? 2.0 * static_cast<double>(chunks->count()) - 1.0 : 1.0;
  return waits * timing.sum + transfer_time(bytes, timing) * slower_with_scales(seen, timing);
}

std::string describe(const Config& c, const ResolvedProblem& problem, const DispatchPlan& plan) {
  if (!c.pack_a && !c.pack_b) return {};
  const int given = problem.a.is_packed() + problem.b.is_packed();
  const int copied = c.pack_a + c.pack_b - given;
  std::string text = "packing: ";
  if (copied != 0) {
    text += concat(copied, copied == 1 ? " operand" : " operands", ", by dispatches before");
    if (plan.chunks && plan.chunks->with_copies) {
      const RowChunks& parts = *plan.chunks;
      text += concat(", in ", parts.count(), " parts of ");
      text += parts.batches < parts.all_batches ? concat(parts.batches, " matrices")
                                                : concat(parts.rows, " rows");
    }
  }
  if (given != 0) {
    text += concat(copied != 0 ? "; " : "", given, given == 1 ? " operand" : " operands",
                   ", by the caller");
  }
  return text;
}

}  // namespace

Config as_given(Config config, const ResolvedProblem& problem, const DeviceCaps& caps) {
  const bool converts = descriptor(config).converts;
  const auto needs_copy = [&](const ResolvedMatrix& operand) {
    return operand.is_packed() || (!converts && problem.converts(operand));
  };
  config.pack_a = config.pack_a || needs_copy(problem.a);
  config.pack_b = config.pack_b || needs_copy(problem.b);
  if (const auto fit = descriptor(config).fit_packed) fit(config, problem, caps);
  return config;
}

bool takes_given(const Config& config, const ResolvedProblem& problem) {
  const auto takes = [&](const ResolvedMatrix& matrix, bool packs) {
    return matrix.form != Form::given_packed ||
           (packs && order_taken(config, matrix) == matrix.fragments);
  };
  return takes(problem.a, config.pack_a) && takes(problem.b, config.pack_b);
}

double least_copy_time(const Config& config, const ResolvedProblem& problem,
                       const TimingModel& timing) {
  const auto bytes = [&](const ResolvedMatrix& matrix, bool packs, std::uint64_t count) {
    if (!packs || matrix.is_packed()) return std::uint64_t{0};
    const std::uint64_t elements = matrix.rows * matrix.cols * matrices(matrix, count);
    // Half of what is read and written.
    const std::uint64_t both = matrix.element_bytes() + problem.input->bytes();
    return elements * (problem.converts(matrix) ? both / 2 : matrix.element_bytes());
  };
  const std::uint64_t copied = bytes(problem.a, config.pack_a, problem.a_count()) +
                               bytes(problem.b, config.pack_b, problem.b_count());
  if (copied == 0) return 0.0;
  return timing.sum + transfer_time(static_cast<double>(copied), timing);
}

void set_order(ResolvedMatrix& matrix, const std::optional<FragmentOrder>& order) {
  matrix.fragments = order;
  if (matrix.bytes == 0) return;
  // Operands that end beyond 2^64 are longer than any span.
  const std::uint64_t beyond = bytes_beyond(matrix, most_steps_beyond, most_tile_beyond);
  const std::uint64_t most = UINT64_MAX - beyond - matrix.alignment;
  matrix.bytes = rounded_up(std::min(matrix.bytes, most) + beyond, matrix.alignment);
}

std::optional<std::string> why_not_packed(const ResolvedMatrix& copy, std::uint64_t count,
                                          const Limits& limits) {
  if (auto why = why_not_built("pack")) return why;
  const std::uint32_t shared =
      copy.fragments ? PACK_FRAGMENTS_BYTES(copy.element_bytes(), copy.line_scales()) : PACK_BYTES;
  if (limits.max_invocations < PACK_LOCAL_SIZE || limits.max_shared_memory_bytes < shared) {
    return concat("the kernel that packs takes ", PACK_LOCAL_SIZE, " invocations and ", shared,
                  " bytes of shared memory, the device has ", limits.max_invocations, " and ",
                  limits.max_shared_memory_bytes);
  }
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  const std::uint64_t depth = copy.lines();
  const std::uint64_t halves = copy.halves_apart ? 2 : 1;
  const std::uint64_t tiles = halves * (copy.ld / PACK_TILE) * (depth / PACK_TILE + 1);
  if (copy.ld > most || depth > most || tiles > most ||
      count > most_workspace_bytes / (halves * copy.ld * (depth + 1) * copy.element_bytes()) ||
      dispatch_count(tiles, count, limits) > most_dispatches) {
    return concat(count, " copies of ", copy.ld, " by ", depth, " elements are too large");
  }
  return std::nullopt;
}

std::uint64_t pack_tiles(const ResolvedMatrix& copy) {
  // Scales are of whole lines, and so are a workgroup's then.
  const std::uint64_t along_k = copy.line_scales() ? 1 : divided_up(copy.lines(), PACK_TILE);
  return divided_up(copy.ld * (copy.halves_apart ? 2 : 1), PACK_TILE) * along_k;
}

// The loop that takes fragments, whose kernels pack them, too.
MainLoop fragment_loop() {
  const auto loops = main_loops();
  return (*std::ranges::find_if(loops, &LoopDescriptor::takes_fragments))->loop;
}

void pack_fragments(Step& step, Constants& constants, const ResolvedMatrix& copy,
                    const Limits& limits) {
  const FragmentOrder& order = *copy.fragments;
  step.key.module = module_name(step.key.module, fragment_loop(), *copy.input);
  if (limits.subgroup_size_control) step.key.required_subgroup_size = order.subgroup_size;
  constants.set(SPEC_FRAGMENT_M, order.mn);
  constants.set(SPEC_FRAGMENT_N, order.mn);
  constants.set(SPEC_FRAGMENT_K, order.k);
  constants.set(SPEC_INTERLEAVE_K, order.interleaved);
}

Step pack_step(const ResolvedProblem& problem, const ResolvedProblem& chunk,
               const ResolvedMatrix& copy, const Limits& limits) {
  const bool of_a = is_a(copy);
  const ResolvedMatrix& source = of_a ? problem.a : problem.b;
  Step step;
  step.copied = of_a ? &Addresses::a : &Addresses::b;
  step.key.module = copy.fragments ? "pack" : copy.input->pack_kernel;
  Constants constants(step.key.constants);
  if (const auto& order = copy.fragments) {
    pack_fragments(step, constants, copy, limits);
    constants.set(SPEC_SWAP_A, order->swapped);
    constants.set(SPEC_PACKS_B, !of_a);
    // Slots of groups, by which shared code divides.
    for (const std::size_t id : {SPEC_TILE_M, SPEC_TILE_K}) constants.set(id, std::uint32_t{1});
  }
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{PACK_LOCAL_SIZE});
  const bool k_outer = source.layout == copy.layout;
  constants.set(SPEC_A_COL_MAJOR, k_outer);
  const bool vectors = of_a ? problem.a_allows_vectors() : problem.b_allows_vectors();
  constants.set(SPEC_A_VECTOR, vectors ? load_width(source) : 0);
  if (problem.converts(source)) {
    constants.set(SPEC_A_TYPE, row_of(source.type).constant);
    constants.set(SPEC_BYTE_TYPES, is_byte(source.type));
  }
  gpu::PackParams params{};
  if (copy.halves_apart) {
    constants.set(SPEC_PACK_HALVES, std::uint32_t{1});
    constants.set(SPEC_GATE_INTERLEAVED, k_outer && problem.is_gated(GatedB::interleaved));
    if (!problem.is_gated(GatedB::separate)) {
      params.b_right = problem.right_offset() * size_in_bytes(source.type);
    }
  }
  params.width = narrow(of_a ? chunk.m : problem.n);
  params.depth = narrow(problem.k);
  params.source_ld = narrow(of_a ? source.ld : problem.ld_b());
  params.copy_ld = narrow(copy.ld);
  params.copy_depth = narrow(copy.lines());
  params.source_batch = source.batch_stride * size_in_bytes(source.type);
  params.copy_batch = copy.batch_stride * copy.element_bytes();
  step.params = params;
  const std::uint64_t tiles = pack_tiles(copy);
  const std::uint64_t count = of_a ? chunk.a_count() : chunk.b_count();
  step.dispatches = cut_grid(tiles, matrices(copy, count), limits);
  return step;
}

extern constexpr Part pack_part{.check = check,
                                .lower = lower,
                                .describe = describe,
                                .cost = cost,
                                .add_workspace = add_workspace};

}  // namespace vkgemm
