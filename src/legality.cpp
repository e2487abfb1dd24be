// legality.cpp: every reason against a configuration that can be known without the device.
#include "legality.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "../shaders/lib/gemm_params.h"
#include "kernel.hpp"
#include "legality_case.hpp"
#include "pack.hpp"
#include "row_reduction.hpp"
#include "text.hpp"
#include "tuning.hpp"

namespace vkgemm {
namespace {

// Bounds on what is worth compiling at all. They keep the arithmetic below free of overflow for
// whatever a loaded table says.
constexpr std::uint32_t largest_tile = 1024;
constexpr std::uint32_t largest_unroll = 64;
constexpr std::uint32_t largest_swizzle = 65536;

// f32 accumulators that one invocation may hold. khr with 64x96 per subgroup of 32 (192 each) and
// nv with 256x256 at 256 invocations (256 each) spill on the H200 (driver 580.159.04), 80x64 (160
// each) does not. Compilers with smaller register files refuse more by rows of the tables. fma
// keeps its operands in registers beside the accumulators.
constexpr std::uint32_t most_accumulators_matrix = 160;
constexpr std::uint32_t most_accumulators_fma = 128;
// A ring holds the fragments of two steps and a slab beside them: 246 registers with 128
// (H200, driver 580.159.04).
constexpr std::uint32_t most_accumulators_ring = 128;

// Rows of a tile of the kernel for few rows: 64 accumulators beside pieces of A and B.
constexpr std::uint32_t most_thin_rows = 8;

// Workgroups that wait for one another, or take turns: what every device launches along x. Those
// that are more than resident end at once.
constexpr std::uint32_t most_waiting_workgroups = 65535;

// The words of grouped.glsl and device_barrier.glsl in shared memory. ANV does not leave out those
// that are not used. A shader that declares more than maxComputeSharedMemorySize is invalid: an
// H200 (driver 580.159.04) was lost in each of three runs where a tile of 49152 bytes left them no
// room.
constexpr std::uint64_t shared_words_bytes = 16;

// The stages of khr's other main loop, each as deep as a fragment and half as deep as the tile.
constexpr std::uint32_t ring_stages = 3;

// What the staging loops of khr and fma move at once, and what the epilogue does.
constexpr std::uint32_t group_bytes = 16;
constexpr std::uint32_t quad = 4;

// Pieces of messages that cost nothing until they are printed: is_legal() asks about every row of a
// table whenever a plan is made.
struct Size2 {
  std::uint32_t m, n;
};
struct Size3 {
  std::uint32_t m, n, k;
};
void append_to(std::string& out, const Size2& size) { out += concat(size.m, 'x', size.n); }
void append_to(std::string& out, const Size3& size) {
  out += concat(size.m, 'x', size.n, 'x', size.k);
}

Size3 tile(const Config& c) { return {c.tile_m, c.tile_n, c.tile_k}; }
Size3 fragment(const Config& c) { return {c.fragment_m, c.fragment_n, c.fragment_k}; }

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// How a slab of A or B is loaded, and on khr also how it, or half of it, stands in shared memory:
// as in memory.
struct Staged {
  std::uint32_t outer = 0;
  std::uint32_t inner = 0;
  std::uint64_t bytes() const {
    return std::uint64_t{outer} * (inner + KHR_STAGE_PAD) * sizeof(std::uint16_t);
  }
};

Staged staged_a(const Config& c, const ResolvedProblem& p, std::uint32_t depth) {
  return p.a.layout == Layout::row_major ? Staged{c.tile_m, depth} : Staged{depth, c.tile_m};
}
Staged staged_b(const Config& c, const ResolvedProblem& p, std::uint32_t depth) {
  return p.b.layout == Layout::row_major ? Staged{depth, c.tile_n} : Staged{c.tile_n, depth};
}

bool check_ranges(const Case& s) {
  const Config& c = s.config;
  struct Field {
    std::string_view name;
    std::uint32_t value, min, max;
  };
  const bool nv = c.path == Path::nv;
  const bool khr = c.path == Path::khr;
  // A path's unused fields have one value, so that equal kernels have equal configurations.
  const std::uint32_t fragment_min = nv ? 0 : 1;
  const std::uint32_t fragment_max = nv ? 0 : largest_tile;
  const std::uint32_t khr_min = khr ? 1 : 0;
  const bool barrier = c.tier == SplitTier::device_barrier;
  const bool waits = barrier || c.rows == RowStrategy::panel;
  const bool persistent = c.schedule == Schedule::persistent;
  const Field fields[] = {
      {"tile_m", c.tile_m, 1, largest_tile},
      {"tile_n", c.tile_n, 1, largest_tile},
      {"tile_k", c.tile_k, 1, largest_tile},
      {"fragment_m", c.fragment_m, fragment_min, fragment_max},
      {"fragment_n", c.fragment_n, fragment_min, fragment_max},
      {"fragment_k", c.fragment_k, fragment_min,
       khr                   ? largest_tile
       : c.path == Path::fma ? THIN_PIECE
                             : fragment_min},
      {"subgroups_m", c.subgroups_m, khr_min, khr ? largest_tile : 0},
      {"subgroups_n", c.subgroups_n, khr_min, khr ? largest_tile : 0},
      {"subgroup_size", c.subgroup_size, khr_min, khr ? 128u : 0u},
      {"invocations", c.invocations, 1, largest_tile * largest_tile},
      {"subtiles", c.subtiles, 1, khr ? largest_tile : 1},
      {"stages", c.stages, 1, khr ? ring_stages : 1},
      {"swizzle", c.swizzle, 1, largest_swizzle},
      {"unroll_k", c.unroll_k, 1, nv ? largest_unroll : 1},
      {"slices", c.slices, 1, most_slices},
      {"spin_limit", c.spin_limit, waits ? 0 : default_spin_limit,
       waits ? most_spin_limit : default_spin_limit},
      {"workgroups", c.workgroups, 0, barrier || persistent ? most_waiting_workgroups : 0},
  };
  for (const Field& f : fields) {
    if (f.value >= f.min && f.value <= f.max) continue;
    return f.min == f.max ? s.refuse(f.name, " is ", f.value, ": path ", to_string(c.path),
                                     " takes ", f.min, " only")
                          : s.refuse(f.name, " is ", f.value, ": path ", to_string(c.path),
                                     " takes ", f.min, " to ", f.max);
  }
  return true;
}

// The types that a matrix path multiplies; fma converts everything to f32.
bool check_input_type(const Case& s) {
  const Config& c = s.config;
  const DataType input = s.problem.a.type;
  if (c.path == Path::fma) return true;
  if (input == DataType::f32) {
    return s.refuse("input type f32 needs true f32 arithmetic, which path ", to_string(c.path),
                    " does not have");
  }
  if (input == DataType::bf16 && !s.caps.bf16_matrices) {
    return s.refuse("input type bf16 on path ", to_string(c.path),
                    " needs bf16 cooperative matrices (VK_KHR_shader_bfloat16)");
  }
  return true;
}

bool check_subgroups(const Case& s) {
  const Config& c = s.config;
  const Limits& limits = s.caps.limits;
  const std::uint32_t size = c.subgroup_size;
  if (size < limits.min_subgroup_size || size > limits.max_subgroup_size ||
      (size & (size - 1)) != 0) {
    return s.refuse("subgroup_size is ", size, ", the device has ", limits.min_subgroup_size,
                    " to ", limits.max_subgroup_size);
  }
  if (!limits.subgroup_size_control && limits.min_subgroup_size != limits.max_subgroup_size) {
    return s.refuse("subgroup_size ", size, " cannot be required: the device varies it from ",
                    limits.min_subgroup_size, " to ", limits.max_subgroup_size,
                    " and lacks subgroup size control");
  }
  const std::uint64_t subgroups = std::uint64_t{c.subgroups_m} * c.subgroups_n;
  if (subgroups > limits.max_subgroups_per_workgroup) {
    return s.refuse("subgroups ", c.subgroups_m, 'x', c.subgroups_n, " are ", subgroups,
                    ", the device has at most ", limits.max_subgroups_per_workgroup,
                    " in a workgroup");
  }
  if (subgroups * size != c.invocations) {
    return s.refuse("invocations is ", c.invocations, ": subgroups ", c.subgroups_m, 'x',
                    c.subgroups_n, " of ", size, " are ", subgroups * size);
  }
  return true;
}

bool is_multiple(Size3 size, DataType input, const FlexibleShape& shape) {
  return shape.input == input && shape.accumulator == DataType::f32 && shape.granularity_m != 0 &&
         shape.granularity_n != 0 && shape.granularity_k != 0 &&
         size.m % shape.granularity_m == 0 && size.n % shape.granularity_n == 0 &&
         size.k % shape.granularity_k == 0;
}

bool check_fragment(const Case& s) {
  const Config& c = s.config;
  const DataType input = s.problem.a.type;
  const FragmentShape wanted{input, DataType::f32, c.fragment_m, c.fragment_n, c.fragment_k};
  if (std::ranges::find(s.caps.fragment_shapes, wanted) != s.caps.fragment_shapes.end()) {
    return true;
  }
  const auto flexible = [&](const FlexibleShape& shape) {
    return shape.scope == MatrixScope::subgroup && is_multiple(fragment(c), input, shape);
  };
  if (!std::ranges::any_of(s.caps.flexible_shapes, flexible)) {
    return s.refuse("fragment ", fragment(c), " with ", to_string(input),
                    " inputs and f32 accumulators is not listed by the device");
  }
  const std::uint32_t most = s.caps.limits.nv_max_dimension;
  if (std::max({c.fragment_m, c.fragment_n, c.fragment_k}) > most) {
    return s.refuse("fragment ", fragment(c), ": matrices of flexible dimensions have at most ",
                    most, " rows or columns");
  }
  return true;
}

bool check_khr(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  if (!check_fragment(s) || !check_subgroups(s)) return false;
  if (c.tile_m % (c.fragment_m * c.subgroups_m) != 0 ||
      c.tile_n % (c.fragment_n * c.subgroups_n) != 0 || c.tile_k % c.fragment_k != 0) {
    return s.refuse("tile ", tile(c), " does not divide into subgroups ",
                    Size2{c.subgroups_m, c.subgroups_n}, " of ", "fragment ", fragment(c));
  }
  if (c.stages != 1 && c.stages != ring_stages) {
    return s.refuse("stages is ", c.stages, ": path khr takes 1 or ", ring_stages);
  }
  if (c.stages == ring_stages && c.tile_k != 2 * c.fragment_k) {
    return s.refuse("stages is ", c.stages, ": tile_k is ", c.tile_k, ", not twice fragment_k ",
                    c.fragment_k);
  }
  const std::uint32_t fragment_rows = c.tile_m / (c.fragment_m * c.subgroups_m);
  if (fragment_rows % c.subtiles != 0) {
    return s.refuse("subtiles is ", c.subtiles, ": does not divide the ", fragment_rows,
                    " fragments that a subgroup holds along M");
  }
  // Fragments are addressed in shared memory by groups, and rows of the epilogue's slices by quads.
  const std::uint32_t group = group_bytes / size_in_bytes(p.a.type);
  const bool a_fits = (p.a.layout == Layout::row_major ? c.fragment_k : c.fragment_m) % group == 0;
  const bool b_fits = (p.b.layout == Layout::row_major ? c.fragment_n : c.fragment_k) % group == 0;
  if (!a_fits || !b_fits || c.fragment_n % quad != 0) {
    return s.refuse("fragment ", fragment(c), " does not divide into groups of ", group,
                    " elements of ", a_fits ? "B" : "A");
  }
  return true;
}

bool check_thin(const Case& s) {
  const Config& c = s.config;
  if (c.fragment_m != c.tile_m || c.fragment_n != THIN_PIECE) {
    return s.refuse("fragment ", fragment(c), ": with fragment_k ", THIN_PIECE, " it must be ",
                    Size3{c.tile_m, THIN_PIECE, THIN_PIECE});
  }
  if (c.tile_m > most_thin_rows) {
    return s.refuse("tile ", tile(c), " has ", c.tile_m, " rows: with fragment_k ", THIN_PIECE,
                    " at most ", most_thin_rows, " stay in registers");
  }
  if (c.tile_n % THIN_PIECE != 0 || c.tile_k % THIN_PIECE != 0) {
    return s.refuse("tile ", tile(c), " does not divide into pieces of ",
                    Size2{THIN_PIECE, THIN_PIECE});
  }
  const std::uint64_t invocations = std::uint64_t{c.tile_n / THIN_PIECE} * (c.tile_k / THIN_PIECE);
  if (invocations == c.invocations) return true;
  return s.refuse("invocations is ", c.invocations, ": ", "tile ", tile(c), " has ", invocations,
                  " pieces of ", Size2{THIN_PIECE, THIN_PIECE});
}

bool check_fma(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  if (is_thin(c)) return check_thin(s);
  if (c.fragment_k != 1) {
    return s.refuse("fragment_k is ", c.fragment_k, ": path fma takes 1 or ", THIN_PIECE);
  }
  if (c.fragment_m % quad != 0 || c.fragment_n % quad != 0) {
    return s.refuse("fragment ", Size2{c.fragment_m, c.fragment_n}, ": not multiples of ", quad);
  }
  if (c.tile_m % c.fragment_m != 0 || c.tile_n % c.fragment_n != 0) {
    return s.refuse("tile ", tile(c), " does not divide into fragments of ",
                    Size2{c.fragment_m, c.fragment_n});
  }
  const std::uint32_t invocations = c.tile_m / c.fragment_m * (c.tile_n / c.fragment_n);
  if (invocations != c.invocations) {
    return s.refuse("invocations is ", c.invocations, ": ", "tile ", tile(c), " has ", invocations,
                    " fragments of ", Size2{c.fragment_m, c.fragment_n});
  }
  const std::uint32_t group = group_bytes / size_in_bytes(p.a.type);
  const Staged a = staged_a(c, p, c.tile_k);
  const Staged b = staged_b(c, p, c.tile_k);
  if (a.inner % group != 0 || b.inner % group != 0) {
    const bool is_a = a.inner % group != 0;
    return s.refuse("tile ", tile(c), " has rows of ", is_a ? a.inner : b.inner, " elements of ",
                    is_a ? "A" : "B", " to load: not a multiple of ", group);
  }
  return true;
}

// nv: tensor layouts compute offsets in 32 bits (Mesa takes them literally), from the tile's corner
// in D, C and aux, and from its corner at the beginning of K in A and B.
bool check_nv_offsets(const Case& s, std::string_view operand, const ResolvedMatrix& matrix,
                      std::uint64_t rows, std::uint64_t cols) {
  const std::uint64_t outer = matrix.layout == Layout::row_major ? rows : cols;
  constexpr std::uint64_t most = (std::uint64_t{1} << 31) - 1;
  const std::uint64_t row_bytes = matrix.ld * size_in_bytes(matrix.type);
  if (row_bytes == 0 || outer <= most / row_bytes) return true;
  return s.refuse("a workgroup's part of ", operand, " takes ", outer, " rows or columns of ",
                  row_bytes, " bytes: path nv addresses at most ", most, " bytes");
}

bool check_nv(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  const Limits& limits = s.caps.limits;
  if (c.invocations > limits.nv_max_invocations) {
    return s.refuse("invocations is ", c.invocations, ": workgroup matrices take at most ",
                    limits.nv_max_invocations);
  }
  if (std::max({c.tile_m, c.tile_n, c.tile_k}) > limits.nv_max_dimension) {
    return s.refuse("tile ", tile(c), ": workgroup matrices have at most ", limits.nv_max_dimension,
                    " rows or columns");
  }
  const auto fits = [&](const FlexibleShape& shape) {
    return shape.scope == MatrixScope::workgroup && shape.invocations == c.invocations &&
           is_multiple({c.tile_m, c.tile_n, c.tile_k}, p.a.type, shape);
  };
  if (!std::ranges::any_of(s.caps.flexible_shapes, fits)) {
    return s.refuse("tile ", tile(c), " with ", to_string(p.a.type), " inputs at ", c.invocations,
                    " invocations is no multiple of a workgroup-scope shape the device lists");
  }

  struct Operand {
    std::string_view name;
    const ResolvedMatrix* matrix;
    bool used;
  };
  // C is read element by element, in any type and with 64-bit addresses.
  // So is all that split-K's second step touches.
  const bool split = c.slices > 1;
  const Operand results[] = {{"d", &p.d, !split}, {"aux", &p.aux, p.has_aux() && !split}};
  for (const Operand& operand : results) {
    if (!operand.used) continue;
    // A second pass stores D, and then not a matrix at a time.
    if (operand.matrix->layout == Layout::col_major && operand.matrix == &p.aux) {
      return s.refuse("aux.layout is col_major and rows are reduced: not built on path nv");
    }
    const DataType type = operand.matrix->type;
    if (type != p.a.type && type != DataType::f32) {
      return s.refuse(operand.name, ".type is ", to_string(type), " with ", to_string(p.a.type),
                      " inputs: not built on path nv");
    }
    if (!check_nv_offsets(s, operand.name, *operand.matrix, c.tile_m, c.tile_n)) return false;
  }
  if (split) {
    const ResolvedMatrix partial{.type = DataType::f32, .ld = partial_ld(p)};
    if (!check_nv_offsets(s, "the partial results", partial, c.tile_m, c.tile_n)) return false;
  }
  const std::uint64_t depth = std::max<std::uint64_t>(p.k, c.tile_k);
  return check_nv_offsets(s, "a", p.a, c.tile_m, depth) &&
         check_nv_offsets(s, "b", p.b, depth, c.tile_n);
}

bool check_registers(const Case& s) {
  const Config& c = s.config;
  const std::uint32_t accumulators = accumulator_count(c);
  const std::uint32_t most = c.path == Path::fma       ? most_accumulators_fma
                             : c.stages == ring_stages ? most_accumulators_ring
                                                       : most_accumulators_matrix;
  if (accumulators <= most) return true;
  return s.refuse("tile ", tile(c), " needs ", accumulators, " accumulators in each of ",
                  c.invocations, " invocations, at most ", most, " stay in registers on path ",
                  to_string(c.path));
}

bool check_limits(const Case& s) {
  const Config& c = s.config;
  const Limits& limits = s.caps.limits;
  if (c.invocations > limits.max_invocations) {
    return s.refuse("invocations is ", c.invocations, ", the device has at most ",
                    limits.max_invocations);
  }
  const std::uint64_t shared = shared_memory_bytes(c, s.problem, s.caps);
  if (shared > limits.max_shared_memory_bytes) {
    return s.refuse("tile ", tile(c), " needs ", shared, " bytes of shared memory, the device has ",
                    limits.max_shared_memory_bytes);
  }
  if (sizeof(gpu::GemmParams) > limits.max_push_constant_bytes) {
    return s.refuse("parameters take ", sizeof(gpu::GemmParams),
                    " bytes of push constants, the device has ", limits.max_push_constant_bytes);
  }
  return true;
}

bool check_grid(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  const std::uint64_t tiles = tile_count(c, p);
  constexpr std::uint64_t most_tiles = std::numeric_limits<std::int32_t>::max();
  if (tiles > most_tiles) {
    return s.refuse("tile ", tile(c), " cuts D into ", tiles, " tiles, at most ", most_tiles,
                    " can be numbered");
  }
  // The band that a tile belongs to is found by division in 32 bits.
  const std::uint64_t band = (p.n + d_tile_n(c, p) - 1) / d_tile_n(c, p) * c.swizzle;
  if (band > std::numeric_limits<std::uint32_t>::max()) {
    return s.refuse("swizzle is ", c.swizzle, ": a band of ", band,
                    " tiles cannot be numbered in 32 bits");
  }
  const std::uint64_t dispatches =
      c.schedule == Schedule::persistent ? 1 : dispatch_count(tiles, p.batch, s.caps.limits);
  if (dispatches > most_dispatches) {
    return s.refuse("tile ", tile(c), " needs ", dispatches, " dispatches, at most ",
                    most_dispatches, " are recorded");
  }
  return true;
}

bool check_path(const Case& s) {
  switch (s.config.path) {
    case Path::nv:
      return check_nv(s);
    case Path::khr:
      return check_khr(s);
    case Path::fma:
      return check_fma(s);
  }
  return s.refuse("no such path");
}

bool check_product(const Case& s) {
  return check_grouping(s) && check_pack(s) && check_input_type(s) && check_path(s) &&
         check_registers(s) && check_limits(s) && check_grid(s) && check_split(s) &&
         check_verdicts(s);
}

// In an order that makes later checks safe: ranges first.
bool check(const Case& s) {
  const PathSupport& support = s.caps.path(s.config.path);
  if (!support.available) {
    return s.refuse("path ", to_string(s.config.path), " is off: ", support.reason);
  }
  if (!check_ranges(s) || !check_gated(s) || !check_rows(s)) return false;
  if (s.config.rows != RowStrategy::two_pass) return check_product(s);
  const ResolvedProblem values = value_problem(s.config, s.problem);
  return check_product({.config = s.config, .problem = values, .caps = s.caps, .reason = s.reason});
}

}  // namespace

std::uint64_t shared_memory_bytes(const Config& c, const ResolvedProblem& problem,
                                  const DeviceCaps& caps) {
  const bool keeps = keeps_tiles(c.rows);
  const std::uint64_t words = shared_words_bytes + (keeps ? row_part_bytes(c) : 0);
  switch (c.path) {
    case Path::nv:
      return caps.limits.nv_reserved_shared_memory_bytes + shared_words_bytes;
    case Path::khr: {
      const bool ring = c.stages == ring_stages;
      const std::uint32_t depth = ring ? c.tile_k / 2 : c.tile_k;
      const std::uint64_t stage = staged_a(c, problem, depth).bytes() +
                                  staged_b(c, problem, depth).bytes() +
                                  (ring ? KHR_RING_PAD * sizeof(std::uint16_t) : 0);
      const std::uint64_t main_loop = c.stages * stage;
      const std::uint64_t epilogue =
          std::uint64_t{c.tile_m / c.subtiles} * (c.tile_n + KHR_EPILOGUE_PAD) * sizeof(float);
      return rounded_up(std::max(main_loop, epilogue), 16) + words;
    }
    case Path::fma:
      if (is_thin(c)) {
        return std::uint64_t{c.tile_k / THIN_PIECE} * c.tile_n * sizeof(float) + words;
      }
      return std::max((std::uint64_t{c.tile_m} + FMA_STAGE_PAD + c.tile_n + FMA_STAGE_PAD) *
                          c.tile_k * sizeof(float),
                      keeps ? row_scratch_bytes(c) : 0) +
             words;
  }
  return 0;
}

bool is_legal(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps) {
  const ResolvedProblem seen = packed(problem, config);
  return check({.config = config, .problem = seen, .caps = caps}) &&
         !why_refused(config, problem, caps.architecture);
}

bool has_legal_ranges(const Config& config, const ResolvedProblem& problem,
                      const DeviceCaps& caps) {
  return check_ranges({.config = config, .problem = problem, .caps = caps});
}

std::optional<std::string> why_illegal(const Config& config, const ResolvedProblem& problem,
                                       const DeviceCaps& caps) {
  std::string reason;
  const ResolvedProblem seen = packed(problem, config);
  if (!check({.config = config, .problem = seen, .caps = caps, .reason = &reason})) {
    return reason;
  }
  return why_refused(config, problem, caps.architecture);
}

}  // namespace vkgemm
