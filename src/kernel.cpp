// kernel.cpp: what a dispatch needs to know, from what was decided.
#include "kernel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "legality.hpp"
#include "lowering.hpp"
#include "pack.hpp"

#include "residency.hpp"
#include "row_reduction.hpp"
#include "tuning.hpp"

namespace vkgemm {
namespace {

using gpu::GemmParams;
static_assert(sizeof(GemmParams) == 248 && offsetof(GemmParams, m) == 104 &&
                  offsetof(GemmParams, first_tile) == 136 && offsetof(GemmParams, alpha) == 144 &&
                  offsetof(GemmParams, control) == 168 && offsetof(GemmParams, offsets) == 192 &&
                  offsetof(GemmParams, eps) == 232 && offsetof(GemmParams, b_right) == 240,
              "the layout that GLSL gives the same block");

// What every Vulkan implementation has, should a limit be unknown.
constexpr std::uint32_t least_workgroup_count = 65535;

// The word that tells of bad offsets.
constexpr std::uint64_t bad_group_bytes = sizeof(std::uint32_t);

std::uint64_t workgroup_limit(const Limits& limits, std::size_t axis) {
  const std::uint32_t limit = limits.max_workgroup_count[axis];
  return limit != 0 ? limit : least_workgroup_count;
}

std::uint32_t bias_constant(Bias bias) {
  switch (bias) {
    case Bias::none:
      return BIAS_NONE;
    case Bias::along_n:
      return BIAS_ALONG_N;
    case Bias::along_m:
      return BIAS_ALONG_M;
  }
  return BIAS_NONE;
}

// In the order of the enumerators.
std::uint32_t gate_constant(Gate gate) {
  static_assert(GATE_GLU == GATE_SIGMOID_TANH + static_cast<int>(Gate::glu));
  return GATE_SIGMOID_TANH + static_cast<std::uint32_t>(gate);
}

std::uint32_t activation_constant(Activation activation) {
  switch (activation) {
    case Activation::none:
      return ACTIVATION_NONE;
    case Activation::relu:
      return ACTIVATION_RELU;
    case Activation::gelu_erf:
      return ACTIVATION_GELU_ERF;
    case Activation::gelu_tanh:
      return ACTIVATION_GELU_TANH;
    case Activation::silu:
      return ACTIVATION_SILU;
    case Activation::sigmoid:
      return ACTIVATION_SIGMOID;
    case Activation::tanh:
      return ACTIVATION_TANH;
  }
  return ACTIVATION_NONE;
}

std::string_view module_name(const Config& config, const ResolvedProblem& p) {
  constexpr std::string_view names[2][4][3] = {
      {
          {"gemm_nv_f16", "gemm_nv_bf16", "gemm_nv_f32"},
          {"gemm_khr_f16", "gemm_khr_bf16", "gemm_khr_f32"},
          {"gemm_fma_f16", "gemm_fma_bf16", "gemm_fma_f32"},
          {"gemm_thin_f16", "gemm_thin_bf16", "gemm_thin_f32"},
      },
      {
          {"grouped_nv_f16", "grouped_nv_bf16", "grouped_nv_f32"},
          {"grouped_khr_f16", "grouped_khr_bf16", "grouped_khr_f32"},
          {"grouped_fma_f16", "grouped_fma_bf16", "grouped_fma_f32"},
          {"grouped_thin_f16", "grouped_thin_bf16", "grouped_thin_f32"},
      },
  };
  const std::size_t kernel = is_thin(config) ? 3 : static_cast<std::size_t>(config.path);
  return names[p.grouping ? 1 : 0][kernel][static_cast<std::size_t>(p.a.type)];
}

// What SPEC_A_VECTOR and SPEC_B_VECTOR say: 0 if rows are loaded element by element, else a
// power of two of elements that divides the leading dimension. The compiler of nv aligns its loads
// by it; on the other paths any value but 0 means the same, and one value makes one pipeline.
std::uint32_t load_vector(Path path, const ResolvedMatrix& matrix, bool allowed) {
  constexpr std::uint32_t width = 16;
  constexpr std::uint64_t most = 64;  // elements: a 128-byte line of f16, more helps nobody
  if (!allowed) return 0;
  std::uint64_t elements = width / size_in_bytes(matrix.type);
  while (path == Path::nv && elements < most && matrix.ld % (2 * elements) == 0) elements *= 2;
  return narrow(elements);
}

bool allows_aux_vectors(const ResolvedProblem& p) {
  const bool right_half = p.gated && p.gated->b != GatedB::interleaved;
  return allows_epilogue_vectors(p.aux) && !(right_half && p.n % 4 != 0);
}

// Columns of a column-major B that are l and r by turns are two halves, each with twice the ld.
std::uint64_t ldb_of(const ResolvedProblem& p) {
  const bool by_turns = p.is_gated(GatedB::interleaved) && p.b.layout == Layout::col_major;
  return by_turns ? 2 * p.b.ld : p.b.ld;
}

void set_tiling(Constants& constants, const Config& c) {
  constants.set(SPEC_LOCAL_SIZE, c.invocations);
  constants.set(SPEC_TILE_M, c.tile_m);
  constants.set(SPEC_TILE_N, c.tile_n);
  constants.set(SPEC_TILE_K, c.tile_k);
  constants.set_size(SPEC_FRAGMENT_M, c.fragment_m);
  constants.set_size(SPEC_FRAGMENT_N, c.fragment_n);
  constants.set_size(SPEC_FRAGMENT_K, c.fragment_k);
  constants.set_size(SPEC_SUBGROUPS_M, c.subgroups_m);
  constants.set_size(SPEC_SUBGROUPS_N, c.subgroups_n);
  constants.set(SPEC_SUBTILES, c.subtiles);
  constants.set(SPEC_SWIZZLE, c.swizzle);
  constants.set(SPEC_STAGES, c.stages);
  constants.set(SPEC_PEEL, c.path != Path::nv && c.peel);
}

void set_gate(Constants& constants, const Gated& gated) {
  constants.set(SPEC_GATE, gate_constant(gated.gate));
  constants.set(SPEC_GATE_INTERLEAVED, gated.b == GatedB::interleaved);
}

void set_operands(Constants& constants, const Config& c, const ResolvedProblem& p) {
  constants.set(SPEC_A_COL_MAJOR, p.a.layout == Layout::col_major);
  constants.set(SPEC_B_COL_MAJOR, p.b.layout == Layout::col_major);
  const std::uint32_t a_vector = load_vector(c.path, p.a, p.a_allows_vectors());
  const std::uint32_t b_vector = load_vector(c.path, p.b, p.b_allows_vectors());
  constants.set(SPEC_A_VECTOR, a_vector);
  constants.set(SPEC_B_VECTOR, b_vector);
  constants.set(SPEC_A_PADDED, c.pack_a);
  constants.set(SPEC_B_PADDED, c.pack_b);
  // Element by element nv's loads are slow and long: unrolled they only take longer to compile.
  const std::uint32_t unroll = a_vector != 0 && b_vector != 0 ? c.unroll_k : 1;
  constants.set(SPEC_UNROLL_K, unroll);
  if (c.static_shape) {
    constants.set(SPEC_STATIC_N, p.n);
    constants.set(SPEC_STATIC_K, p.k);
    constants.set(SPEC_STATIC_LDA, p.a.ld);
    constants.set(SPEC_STATIC_LDB, ldb_of(p));
  }
  // Groups end anywhere.
  constants.set(SPEC_EDGES,
                p.is_grouped(GroupAlong::m) || p.m % c.tile_m != 0 || p.n % d_tile_n(c, p) != 0);
  // Slices of K are whole steps, but need not be whole unrolled ones.
  constants.set(SPEC_K_TAIL, p.is_grouped(GroupAlong::k) ||
                                 p.k % (std::uint64_t{c.tile_k} * unroll) != 0 ||
                                 (c.slices > 1 && unroll > 1));
  if (p.gated) set_gate(constants, *p.gated);
}

void set_grouping(Constants& constants, const Config& c, const Grouping& grouping) {
  const bool along_m = grouping.along == GroupAlong::m;
  constants.set(SPEC_GROUPED,
                along_m ? std::uint32_t{GROUPED_ALONG_M} : std::uint32_t{GROUPED_ALONG_K});
  constants.set(SPEC_OFFSETS_64, grouping.offsets == OffsetType::int64);
  constants.set(SPEC_PERSISTENT, c.schedule == Schedule::persistent);
}

// `quads`: it works on four elements at once, where they allow it. nv's own takes whole matrices.
void set_epilogue(Constants& constants, const ResolvedProblem& p, bool quads) {
  const Epilogue& e = p.epilogue;
  constants.set(SPEC_C_VECTOR, quads && p.has_c() && allows_epilogue_vectors(p.c));
  constants.set(SPEC_D_VECTOR, quads && p.has_d() && allows_epilogue_vectors(p.d));
  constants.set(SPEC_AUX_VECTOR, quads && p.has_aux() && allows_aux_vectors(p));
  constants.set(SPEC_C_TYPE, p.has_c() ? type_constant(p.c.type) : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_D_TYPE, p.has_d() ? type_constant(p.d.type) : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_AUX_TYPE, p.has_aux() ? type_constant(p.aux.type) : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_BIAS_TYPE,
                p.has_bias() ? type_constant(e.bias_type) : std::uint32_t{TYPE_NONE});
  const auto stands_in_columns = [](const ResolvedMatrix& matrix) {
    return matrix.layout == Layout::col_major;
  };
  constants.set(SPEC_C_COL_MAJOR,
                (p.has_c() && stands_in_columns(p.c)) || (p.has_aux() && stands_in_columns(p.aux)));
  constants.set(SPEC_D_COL_MAJOR, p.has_d() && stands_in_columns(p.d));
  constants.set(SPEC_BIAS, bias_constant(e.bias));
  constants.set(SPEC_ACTIVATION, activation_constant(e.activation));
  constants.set(SPEC_CLAMP, e.clamp_min.has_value() || e.clamp_max.has_value());
}

// The module that adds partial results knows neither tiles nor A and B: one pipeline for all.
PipelineKey sum_key(const ResolvedProblem& p) {
  PipelineKey key;
  key.module = "sum_slices";
  Constants constants(key);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{SUM_LOCAL_SIZE});
  constexpr std::size_t divisors[] = {SPEC_TILE_M, SPEC_TILE_N, SPEC_TILE_K, SPEC_SWIZZLE};
  for (const std::size_t id : divisors) constants.set_size(id, 1);
  set_epilogue(constants, p, true);
  if (p.gated) set_gate(constants, *p.gated);
  return key;
}

// Copies `source`, which is `width` wide along M or N and K deep, to `copy`.
Step pack_step(const ResolvedMatrix& source, const ResolvedMatrix& copy, std::uint64_t width,
               std::uint64_t k, std::uint64_t batch, const Limits& limits) {
  const bool is_a = copy.layout == Layout::col_major;
  const std::uint64_t depth = is_a ? copy.cols : copy.rows;
  Step step;
  step.copied = is_a ? &GemmParams::a : &GemmParams::b;
  step.key.module = "pack";
  Constants constants(step.key);
  constants.set(SPEC_LOCAL_SIZE, std::uint32_t{PACK_LOCAL_SIZE});
  constants.set(SPEC_A_COL_MAJOR, source.layout == copy.layout);
  constants.set(SPEC_A_VECTOR, load_vector(Path::khr, source, source.allows_vectors(16)));
  GemmParams& params = step.params;
  params.m = narrow(width);
  params.k = narrow(k);
  params.n = narrow(depth);
  params.lda = narrow(source.ld);
  params.ldd = narrow(copy.ld);
  params.a_batch = source.batch_stride * size_in_bytes(source.type);
  params.d_batch = copy.batch_stride * size_in_bytes(copy.type);
  const std::uint64_t tiles = divided_up(copy.ld, PACK_TILE) * divided_up(depth, PACK_TILE);
  step.dispatches = cut_grid(tiles, copy.batch_stride != 0 ? batch : 1, limits);
  return step;
}

// No more than there are tiles.
std::uint32_t persistent_workgroups(const Config& config, const ResolvedProblem& problem,
                                    const DeviceCaps& caps) {
  const std::uint64_t wanted =
      config.workgroups != 0
          ? config.workgroups
          : resident_workgroups(config, built_in_table(caps.architecture).timing, problem, caps);
  const std::uint64_t most = workgroup_limit(caps.limits, 0);
  return narrow(std::min({wanted, most, tile_count(config, problem) * problem.batch}));
}

// Of the dispatch whose workgroups wait for one another. More than are resident at a time are of no
// use, and do no harm.
std::uint32_t launched_workgroups(const Config& config, const ResolvedProblem& problem,
                                  const Limits& limits) {
  if (config.workgroups != 0) return config.workgroups;
  const std::uint64_t items = tile_count(config, problem) * problem.batch * config.slices;
  return narrow(std::min(items, workgroup_limit(limits, 0)));
}

GemmParams make_params(const ResolvedProblem& p) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Epilogue& e = p.epilogue;
  const auto stride = [](const ResolvedMatrix& matrix) {
    return matrix.batch_stride * size_in_bytes(matrix.type);
  };
  GemmParams out{};
  out.a_batch = stride(p.a);
  out.b_batch = stride(p.b);
  out.d_batch = stride(p.d);
  out.m = narrow(p.m);
  out.n = narrow(p.n);
  out.k = narrow(p.k);
  out.batch = narrow(p.batch);
  out.lda = narrow(p.a.ld);
  out.ldb = narrow(ldb_of(p));
  out.ldd = narrow(p.d.ld);
  if (p.has_c()) {
    out.c_batch = stride(p.c);
    out.ldc = narrow(p.c.ld);
  }
  if (p.has_aux()) {
    out.aux_batch = stride(p.aux);
    out.ld_aux = narrow(p.aux.ld);
  }
  if (p.gated && p.gated->b != GatedB::separate) {
    out.b_right = p.right_offset() * size_in_bytes(p.b.type);
  }
  if (p.has_bias()) out.bias_batch = e.bias_batch_stride * size_in_bytes(e.bias_type);
  out.alpha = p.k == 0 ? 0.0f : e.alpha;  // an empty sum stays 0, also times Inf
  out.beta = e.beta;
  out.clamp_min = e.clamp_min.value_or(-infinity);
  out.clamp_max = e.clamp_max.value_or(infinity);
  return out;
}

}  // namespace

std::uint32_t type_constant(DataType type) {
  switch (type) {
    case DataType::f16:
      return TYPE_F16;
    case DataType::bf16:
      return TYPE_BF16;
    case DataType::f32:
      return TYPE_F32;
  }
  return TYPE_NONE;
}

Step reset_step(std::uint64_t words, std::uint64_t state_bytes, const Limits& limits) {
  constexpr std::uint64_t piece_bytes = 16;
  Step step;
  step.key.module = "reset";
  Constants(step.key).set(SPEC_LOCAL_SIZE, std::uint32_t{RESET_LOCAL_SIZE});
  step.params.m = narrow(words);
  step.params.n = narrow(divided_up(state_bytes, piece_bytes));
  const std::uint64_t most = std::max(step.params.m, step.params.n);
  step.dispatches = cut_grid(divided_up(most, RESET_LOCAL_SIZE), 1, limits);
  return step;
}

std::size_t PipelineKeyHash::operator()(const PipelineKey& key) const noexcept {
  // FNV-1a, a word at a time.
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3u; };
  for (const char c : key.module) add(static_cast<unsigned char>(c));
  for (const std::uint32_t value : key.constants) add(value);
  add(key.required_subgroup_size);
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

std::uint64_t tile_count(const Config& config, const ResolvedProblem& problem) {
  const std::uint64_t rows = problem.is_grouped(GroupAlong::m)
                                 ? problem.m / config.tile_m + problem.grouping->groups
                                 : divided_up(problem.m, config.tile_m);
  return rows * divided_up(problem.n, d_tile_n(config, problem));
}

std::uint64_t dispatch_count(std::uint64_t tiles, std::uint64_t batches, const Limits& limits) {
  return divided_up(tiles, workgroup_limit(limits, 0)) *
         divided_up(batches, workgroup_limit(limits, 1));
}

std::vector<Dispatch> cut_grid(std::uint64_t tiles, std::uint64_t batches, const Limits& limits) {
  const std::uint64_t most_tiles = workgroup_limit(limits, 0);
  const std::uint64_t most_batches = workgroup_limit(limits, 1);
  std::vector<Dispatch> out;
  if (tiles == 0 || batches == 0) return out;
  out.reserve(static_cast<std::size_t>(dispatch_count(tiles, batches, limits)));
  for (std::uint64_t batch = 0; batch < batches; batch += most_batches) {
    for (std::uint64_t tile = 0; tile < tiles; tile += most_tiles) {
      out.push_back({.tiles = narrow(std::min(most_tiles, tiles - tile)),
                     .batches = narrow(std::min(most_batches, batches - batch)),
                     .first_tile = narrow(tile),
                     .first_batch = narrow(batch)});
    }
  }
  return out;
}

std::uint64_t partial_ld(const ResolvedProblem& problem) {
  return divided_up(problem.n, 4) * (problem.gated ? 8 : 4);
}

std::uint64_t sum_block_count(const ResolvedProblem& problem) {
  return divided_up(problem.m * divided_up(problem.n, 4), SUM_LOCAL_SIZE);
}

std::uint64_t control_word_count(const Config& config, const ResolvedProblem& problem) {
  if (problem.rows && config.rows == RowStrategy::panel) {
    if (is_scalar(problem.rows->op)) return 0;
    return CONTROL_WORDS + tile_count(config, problem) * problem.batch;
  }
  if (config.tier == SplitTier::two_dispatches) return 0;
  return CONTROL_WORDS + tile_count(config, problem) * problem.batch;
}

WorkspaceLayout workspace_layout(const Config& config, const ResolvedProblem& seen) {
  WorkspaceLayout out;
  const auto take = [&out](std::uint64_t bytes) {
    const std::uint64_t begin = out.bytes;
    out.bytes += divided_up(bytes, 256) * 256;
    return begin;
  };
  out.a = take(config.pack_a ? packed_bytes(seen.a, seen.batch) : 0);
  out.b = take(config.pack_b ? packed_bytes(seen.b, seen.batch) : 0);
  const std::uint64_t matrix = seen.m * partial_ld(seen) * sizeof(float);
  out.partial = take(config.slices > 1 ? seen.batch * config.slices * matrix : 0);
  out.control = take(control_word_count(config, seen) * sizeof(std::uint32_t));
  out.states = take(row_state_bytes(config, seen));
  out.values = take(row_value_bytes(config, seen));
  // With groups there is none of it.
  if (seen.grouping && seen.max_workspace_bytes >= bad_group_bytes) out.bytes = bad_group_bytes;
  return out;
}

Kernel lower(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps) {
  return problem.rows ? lower_rows(config, problem, caps) : lower_product(config, problem, caps);
}

Kernel lower_product(const Config& config, const ResolvedProblem& original,
                     const DeviceCaps& caps) {
  Kernel out;
  const ResolvedProblem problem = packed(original, config);
  out.workspace = workspace_layout(config, problem);
  out.shared_memory_bytes = shared_memory_bytes(config, problem, caps);
  const auto pack = [&](const ResolvedMatrix& source, const ResolvedMatrix& copy,
                        std::uint64_t width, std::uint64_t offset) {
    if (original.k == 0) return;  // is not read
    out.before.push_back(pack_step(source, copy, width, original.k, original.batch, caps.limits));
    out.before.back().copy_offset = offset;
  };
  if (config.pack_a) pack(original.a, problem.a, original.m, out.workspace.a);
  if (config.pack_b) pack(original.b, problem.b, original.n, out.workspace.b);
  if (const std::uint64_t words = control_word_count(config, problem); words != 0) {
    out.before.push_back(reset_step(words, row_state_bytes(config, problem), caps.limits));
  }

  Step& product = out.product;
  product.key.module = module_name(config, problem);
  // Without size control the device has one size only, which needs no saying.
  if (config.path == Path::khr && caps.limits.subgroup_size_control) {
    product.key.required_subgroup_size = config.subgroup_size;
  }
  Constants constants(product.key);
  set_tiling(constants, config);
  set_operands(constants, config, problem);
  product.params = make_params(problem);
  product.params.slices = config.slices;
  product.params.spin_limit = config.spin_limit;
  product.dispatches = cut_grid(tile_count(config, problem), problem.batch, caps.limits);
  if (problem.grouping) {
    set_grouping(constants, config, *problem.grouping);
    product.params.groups = problem.grouping->groups;
  }
  if (config.schedule == Schedule::persistent) {
    product.dispatches = {{.tiles = persistent_workgroups(config, problem, caps), .batches = 1}};
  }
  if (config.slices == 1) {
    set_epilogue(constants, problem, config.path != Path::nv);
    return out;
  }

  for (Dispatch& dispatch : product.dispatches) dispatch.slices = config.slices;
  switch (config.tier) {
    case SplitTier::two_dispatches:
      constants.set(SPEC_SPLIT, std::uint32_t{SPLIT_TWO_DISPATCHES});
      out.after.push_back(
          {.key = sum_key(problem),
           .params = product.params,
           .dispatches = cut_grid(sum_block_count(problem), problem.batch, caps.limits)});
      break;
    case SplitTier::last_arriver:
      set_epilogue(constants, problem, true);
      constants.set(SPEC_SPLIT, std::uint32_t{SPLIT_LAST_ARRIVER});
      break;
    case SplitTier::device_barrier: {
      // Whatever happens to the barrier, the last arrivers have what they need.
      set_epilogue(constants, problem, true);
      out.after.push_back(product);
      Constants fallback(out.after.back().key);
      fallback.set(SPEC_SPLIT, std::uint32_t{SPLIT_LAST_ARRIVER});
      fallback.set(SPEC_GUARDED, true);
      constants.set(SPEC_SPLIT, std::uint32_t{SPLIT_DEVICE_BARRIER});
      product.dispatches = {
          {.tiles = launched_workgroups(config, problem, caps.limits), .batches = 1}};
      break;
    }
  }
  return out;
}

}  // namespace vkgemm
