#include "kernels/lowering.hpp"

#include <limits>

#include "kernels/computation.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/footprint.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/column_sums.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/split_k.hpp"
#include "kernels/steps.hpp"
#include "kernels/workspace.hpp"
#include "problem/inputs/input.hpp"
#include "problem/operands.hpp"

namespace vkgemm {
namespace {

using gpu::GemmParams;

void set_tiling(Constants& constants, const Config& c) {
  constants.set(SPEC_LOCAL_SIZE, invocations(c));
  constants.set(SPEC_TILE_M, c.tile_m);
  constants.set(SPEC_TILE_N, c.tile_n);
  constants.set(SPEC_TILE_K, c.tile_k);
  // Sizes that a main loop has no use for: shared code may divide by them.
  for (const std::size_t id : {SPEC_FRAGMENT_M, SPEC_FRAGMENT_N, SPEC_FRAGMENT_K, SPEC_SUBGROUPS_M,
                               SPEC_SUBGROUPS_N, SPEC_SUBGROUPS_K, SPEC_SUBTILES}) {
    constants.set(id, std::uint32_t{1});
  }
  constants.set(SPEC_SWIZZLE, c.swizzle);
}

void set_operands(Constants& constants, const Config& c, const ResolvedProblem& p) {
  constants.set(SPEC_A_COL_MAJOR, p.a.layout == Layout::col_major);
  constants.set(SPEC_B_COL_MAJOR, p.b_in_columns());
  const LoopDescriptor& loop = descriptor(c);
  const std::uint32_t a_vector = p.a_allows_vectors() ? loop.load_vector(p.a) : 0;
  const std::uint32_t b_vector = p.b_allows_vectors() ? loop.load_vector(p.b) : 0;
  constants.set(SPEC_A_VECTOR, a_vector);
  constants.set(SPEC_B_VECTOR, b_vector);
  constants.set(SPEC_A_PADDED, c.pack_a);
  constants.set(SPEC_B_PADDED, c.pack_b);
  const auto converted_type = [&](const ResolvedMatrix& operand) {
    return p.converts(operand) ? row_of(operand.type).constant : TYPE_NONE;
  };
  constants.set(SPEC_A_TYPE, converted_type(p.a));
  constants.set(SPEC_B_TYPE, converted_type(p.b));
  constants.set(SPEC_BYTE_TYPES, p.converts_bytes(p.a) || p.converts_bytes(p.b));
  constants.set(SPEC_SUM_BATCH, p.summed > 1);
  // Element by element loads are slow and long: unrolled they only take longer to compile.
  const bool vectors = a_vector != 0 && b_vector != 0;
  const std::uint32_t unroll = vectors && loop.unroll_k != nullptr ? loop.unroll_k(c) : 1;
  constants.set(SPEC_UNROLL_K, unroll);
  if (c.static_shape) {
    constants.set(SPEC_STATIC_N, p.n);
    constants.set(SPEC_STATIC_K, p.k);
    constants.set(SPEC_STATIC_LDA, p.a.ld);
    constants.set(SPEC_STATIC_LDB, p.ld_b());
  }
  // Groups end anywhere.
  constants.set(SPEC_EDGES,
                p.is_grouped(GroupAlong::m) || p.m % c.tile_m != 0 || p.n % d_tile_n(c, p) != 0);
  // Slices of K are whole steps, but need not be whole unrolled ones.
  constants.set(SPEC_K_TAIL, p.is_grouped(GroupAlong::k) ||
                                 p.k % (std::uint64_t{c.tile_k} * unroll) != 0 ||
                                 (c.slices > 1 && unroll > 1));
}

// The product does nothing but scale: whatever else an epilogue adds has coordinates, which slices
// of accumulators have and their fragments don't.
bool narrows_slices(const Config& c, const ResolvedProblem& p, const DeviceCaps& caps) {
  const auto narrows = descriptor(c).narrows_slices;
  if (narrows == nullptr || !narrows(c, p.input_type(), caps) || c.slices != 1 || p.rows ||
      p.gated) {
    return false;
  }
  const Epilogue& e = p.epilogue;
  return !p.scatters_rows() && !p.has_c() && !p.has_bias() && !p.has_aux() && !p.has_scales() &&
         !p.a.line_scales() && e.activation == Activation::none && !p.has_steps() && !e.clamp_min &&
         !e.clamp_max && size_in_bytes(p.d.type) == 2 && p.d.layout == Layout::row_major &&
         p.d.allows_vectors(16);
}

GemmParams make_params(const ResolvedProblem& p) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Epilogue& e = p.epilogue;
  GemmParams out{};
  out.m = narrow(p.m);
  out.n = narrow(p.n);
  out.k = narrow(p.k);
  out.batch = narrow(p.summed > 1 ? p.summed : p.batch);
  set_strides(out, p);
  if (p.gated && (p.b.halves_apart || p.gated->b != GatedB::separate)) {
    out.b_right = p.right_offset() * p.b.element_bytes();
  }
  out.alpha = p.k == 0 ? 0.0f : e.alpha;  // an empty sum stays 0, also times Inf
  out.beta = e.beta;
  out.clamp_min = e.clamp_min.value_or(-infinity);
  out.clamp_max = e.clamp_max.value_or(infinity);
  return out;
}

// Up to this depth the truncation of matrix units shows beside what ieee rounds (bench/NOTES.md).
constexpr std::uint64_t shallow = 256;

// One more than all parts have: see shaders/lib/inputs/fragments.glsl.
std::uint32_t last_order(const ResolvedProblem& p) {
  const Input& input = *p.input;
  const bool takes_all = input.parts > 1 && input.products == input.parts * input.parts;
  const bool is_shallow = p.k <= shallow || (p.grouping && p.grouping->along == GroupAlong::k);
  return input.last_order + (takes_all && is_shallow ? 1 : 0);
}

// All steps for one chunk, whose product this is.
DispatchPlan lower_chunk(const Computation& computation, const ComputedProblem& product_of_chunk,
                         const Target& target) {
  const Config& config = computation.config();
  const ResolvedProblem& problem = *product_of_chunk;
  const DeviceCaps& caps = target.caps;
  const LoopDescriptor& loop = descriptor(config);
  DispatchPlan out;
  Step& product = out.product;
  Constants constants(product.key.constants);
  set_tiling(constants, config);
  set_operands(constants, config, problem);
  constants.set(SPEC_LAST_ORDER, last_order(problem));
  constants.set(SPEC_NARROW_SLICES, narrows_slices(config, problem, caps));
  GemmParams params = make_params(problem);
  params.slices = config.slices;
  product.params = params;
  out.line_scales = problem.a.line_scales();
  if (adds_in_product(config)) set_epilogue(constants, problem, loop.stores_x4);
  out.workspace = workspace_layout(config, computation.chunk(), caps.limits);
  if (loop.specialize != nullptr) loop.specialize(constants, config);
  out.shared_memory_bytes = shared_memory_bytes(config, problem, caps);
  product.key.module = module_name("gemm", config.main_loop(), *problem.input);
  product.key.required_subgroup_size = required_subgroup_size(config, caps.limits);
  product.dispatches = cut_grid(tile_count(config, problem), problem.batch, caps.limits);
  Lowering lowering{computation, config, product_of_chunk, target, out, constants};
  for (const Part* part : parts()) part->lower(lowering);
  if (config.rows == RowStrategy::two_pass) {
    add_second_pass(out, computation, problem, caps.limits);
  }
  return out;
}

// The steps of the last chunk are those of the others, in other grids.
void add_last_chunk(DispatchPlan& plan, const DispatchPlan& last) {
  const auto add = [](Step& step, const Step& of_last) {
    step.last_dispatches = of_last.dispatches;
    step.key.constants[SPEC_EDGES] |= of_last.key.constants[SPEC_EDGES];
  };
  for (std::size_t i = 0; plan.chunks->with_copies && i < plan.before.size(); ++i) {
    add(plan.before[i], last.before[i]);
  }
  add(plan.product, last.product);
  for (std::size_t i = 0; i < plan.after.size(); ++i) add(plan.after[i], last.after[i]);
}

// Sets the pitches of the operands of a problem.
void set_pitches(RowChunks& chunks, const ResolvedProblem& problem) {
  for (const Operand& operand : operands_of(problem)) {
    chunks.row_pitch.*operand.address = operand.row_step;
    chunks.batch_pitch.*operand.address = operand.batch_step;
  }
  if (!problem.a.line_scales()) return;
  chunks.row_pitch.row_scales = sizeof(float);
  chunks.batch_pitch.row_scales = chunks.batch_pitch.a;
  chunks.batch_pitch.column_scales = chunks.batch_pitch.b;
}

DispatchPlan lower_all(const Computation& computation, const Target& target) {
  DispatchPlan out = lower_chunk(computation, computation.product(), target);
  if (const auto& chunks = computation.chunks()) {
    out.chunks = chunks;
    add_last_chunk(out, lower_chunk(computation, computation.last_product(), target));
    set_pitches(*out.chunks, chunks->with_copies ? computation.asked() : *computation.whole());
    set_sum_pitches(*out.chunks, computation.config(), *computation.product());
  }
  return out;
}

// Kernels that have no such module have parameters that fit into what Vulkan guarantees.
void read_parameters_in_memory(Step& step) {
  const std::string_view module = in_memory(step.key.module);
  if (module.empty()) return;
  step.key.module = module;
  step.in_memory = true;
}

}  // namespace

DispatchPlan lower(const Config& config, const ResolvedProblem& problem, const Target& target) {
  DispatchPlan out = lower_all(Computation(problem, config), target);
  if (!parameters_in_memory(target.caps.limits)) return out;
  read_parameters_in_memory(out.product);
  for (Step& step : out.after) read_parameters_in_memory(step);
  return out;
}

}  // namespace vkgemm
