// nv.cpp: the main loop on workgroup-scope matrices of VK_NV_cooperative_matrix2.
#include "kernels/loops/loops.hpp"
#include "kernels/parts/split_k.hpp"
#include "kernels/steps.hpp"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {
namespace {

// f32 accumulators of an invocation: 256x256 at 256 invocations (256 each) spills on the H200
// (driver 580.159.04).
constexpr std::uint32_t most_accumulators = 160;

constexpr Parameter parameters[] = {
    of_loop<NvLoop, &NvLoop::invocations>({.name = "invocations",
                                           .fields = {"invocations"},
                                           .min = 1,
                                           .max = largest_tile * largest_tile,
                                           .forms_tile = true,
                                           .scales = true}),
    of_loop<NvLoop, &NvLoop::unroll_k>({.name = "unroll_k",
                                        .fields = {"unroll_k"},
                                        .min = 1,
                                        .max = 64,
                                        .left_out = 1,
                                        .scales = true}),
};

const NvLoop& nv(const Config& c) { return std::get<NvLoop>(c.loop); }

// Tensor layouts compute offsets in 32 bits (Mesa takes them literally), from the tile's corner in
// D, C and aux, and from its corner at the beginning of K in A and B.
bool check_offsets(const Case& s, std::string_view operand, const ResolvedMatrix& matrix,
                   std::uint64_t rows, std::uint64_t cols) {
  const std::uint64_t outer = matrix.layout == Layout::row_major ? rows : cols;
  constexpr std::uint64_t most = (std::uint64_t{1} << 31) - 1;
  const std::uint64_t row_bytes = matrix.ld * size_in_bytes(matrix.type);
  if (row_bytes == 0 || outer <= most / row_bytes) return true;
  return s.refuse("a workgroup's part of ", operand, " takes ", outer, " rows or columns of ",
                  row_bytes, " bytes: path nv addresses at most ", most, " bytes");
}

bool check(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  const Limits& limits = s.caps.limits;
  if (p.b.quantisation) return s.refuse("quantised_b: not built on main loop nv");
  const std::uint32_t invocations = nv(c).invocations;
  if (invocations > limits.nv_max_invocations) {
    return s.refuse("invocations is ", invocations, ": workgroup matrices take at most ",
                    limits.nv_max_invocations);
  }
  if (std::max({c.tile_m, c.tile_n, c.tile_k}) > limits.nv_max_dimension) {
    return s.refuse("tile ", tile_of(c), ": workgroup matrices have at most ",
                    limits.nv_max_dimension, " rows or columns");
  }
  const auto fits = [&](const FlexibleShape& shape) {
    return shape.scope == MatrixScope::workgroup && shape.invocations == invocations &&
           is_multiple(tile_of(c), p.input_type(), shape);
  };
  if (!std::ranges::any_of(s.caps.flexible_shapes, fits)) {
    return s.refuse("tile ", tile_of(c), " with ", to_string(p.input_type()), " inputs at ",
                    invocations,
                    " invocations is no multiple of a workgroup-scope shape the device lists");
  }

  struct Operand {
    std::string_view name;
    const ResolvedMatrix* matrix;
    bool used;
  };
  // C is read element by element, in any type and with 64-bit addresses, and so is all that
  // split-K's second step touches.
  const bool split = c.slices > 1;
  const Operand results[] = {{"d", &p.d, !split}, {"aux", &p.aux, p.has_aux() && !split}};
  for (const Operand& operand : results) {
    if (!operand.used) continue;
    // A second pass stores D, and then not a matrix at a time.
    if (operand.matrix->layout == Layout::col_major && operand.matrix == &p.aux) {
      return s.refuse("aux.layout is col_major and rows are reduced: not built on path nv");
    }
    const DataType type = operand.matrix->type;
    if (type != p.input_type() && type != DataType::f32) {
      return s.refuse(operand.name, ".type is ", to_string(type), " with ",
                      to_string(p.input_type()), " inputs: not built on path nv");
    }
    if (!check_offsets(s, operand.name, *operand.matrix, c.tile_m, c.tile_n)) return false;
  }
  for (std::size_t i = 0; i < most_tensors && !split; ++i) {
    // Functions of single elements return a value; the extension says nothing of their stores.
    const StepOp writer = writer_of(p.epilogue, i);
    if (writer != StepOp::none) {
      return s.refuse("a step ", writes(writer), tensor_names[i], ": not built on path nv");
    }
  }
  if (split) {
    const ResolvedMatrix partial{.type = DataType::f32, .ld = partial_ld(p)};
    if (!check_offsets(s, "the partial results", partial, c.tile_m, c.tile_n)) return false;
  }
  const std::uint64_t depth = std::max<std::uint64_t>(p.k, c.tile_k);
  return check_offsets(s, "a", p.a, c.tile_m, depth) && check_offsets(s, "b", p.b, depth, c.tile_n);
}

// The compiler aligns its loads by a power of two of elements that divides the leading dimension.
std::uint32_t load_vector(const ResolvedMatrix& matrix) {
  constexpr std::uint32_t most = 64;  // elements: a 128-byte line of f16, more helps nobody
  std::uint32_t elements = load_width(matrix);
  while (elements < most && matrix.ld % (2 * std::uint64_t{elements}) == 0) elements *= 2;
  return elements;
}

void propose(std::vector<Config>& out, const ResolvedProblem& problem, const DeviceCaps& caps) {
  for (const FlexibleShape& shape : caps.flexible_shapes) {
    if (shape.scope != MatrixScope::workgroup || shape.input != problem.input_type()) continue;
    for (const std::uint32_t m : {32u, 64u, 128u, 256u}) {
      for (const std::uint32_t n : {32u, 64u, 128u, 256u}) {
        for (const std::uint32_t k : {16u, 32u, 64u}) {
          out.push_back({.loop = NvLoop{.invocations = shape.invocations, .unroll_k = 256 / k},
                         .tile_m = m,
                         .tile_n = n,
                         .tile_k = k});
        }
      }
    }
  }
}

// The numbers of a kind: the granularity of tiles, and the workgroup.
struct NvKind {
  std::uint32_t m = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  std::uint32_t invocations = 0;
  std::uint32_t unused[2] = {};
};
constexpr std::string_view kind_numbers[] = {"m", "n", "k", "invocations"};

void kinds(std::vector<KernelKind>& out, const DeviceCaps& caps, std::span<const Config>) {
  for (const FlexibleShape& shape : caps.flexible_shapes) {
    if (shape.scope != MatrixScope::workgroup || !is_used(shape) ||
        !has_kernels(MainLoop::nv, input_of(shape.input))) {
      continue;
    }
    const NvKind kind{.m = shape.granularity_m,
                      .n = shape.granularity_n,
                      .k = shape.granularity_k,
                      .invocations = shape.invocations};
    add_kind(out, make_kind(MainLoop::nv, shape.input, kind));
  }
}

std::vector<Config> trials(const KernelKind& of, const DeviceCaps&) {
  const NvKind kind = numbers_of<NvKind>(of);
  std::vector<Config> configs;
  for (const std::uint32_t times : {2u, 1u}) {
    configs.push_back({.loop = NvLoop{.invocations = kind.invocations, .unroll_k = 2},
                       .tile_m = kind.m * times,
                       .tile_n = kind.n * times,
                       .tile_k = kind.k * times,
                       .swizzle = 2});
  }
  return configs;
}

bool divides(std::uint32_t granularity, std::uint32_t size) {
  return granularity != 0 && size % granularity == 0;
}

bool covers(const KernelKind& of, const Config& c) {
  const NvKind kind = numbers_of<NvKind>(of);
  return kind.invocations == nv(c).invocations && divides(kind.m, c.tile_m) &&
         divides(kind.n, c.tile_n) && divides(kind.k, c.tile_k);
}

bool denied(const Denial& denial, const Config& c) {
  const auto fits = [](std::uint32_t wanted, std::uint32_t size) {
    return wanted == 0 || divides(wanted, size);
  };
  return fits(denial.m, c.tile_m) && fits(denial.n, c.tile_n) && fits(denial.k, c.tile_k);
}

std::string kind_text(const KernelKind& of) {
  const NvKind kind = numbers_of<NvKind>(of);
  return concat("granularity ", Size3{kind.m, kind.n, kind.k}, ' ', to_string(of.input), ", ",
                kind.invocations, " invocations");
}

}  // namespace

extern constexpr LoopDescriptor nv_loop{
    .loop = MainLoop::nv,
    .name = "nv",
    .parameters = parameters,
    .stores_x4 = false,
    .finds_rows = false,
    .kin = MainLoop::nv,
    .invocations = [](const Config& c) { return nv(c).invocations; },
    .accumulators = [](const Config& c) { return c.tile_m * c.tile_n / nv(c).invocations; },
    .most_accumulators = most_accumulators,
    .part =
        [](const Config& c) {
          return TilePart{c.tile_m, c.tile_n};
        },  // the driver divides it
    .check = check,
    .shared_memory_bytes =
        [](const Config&, const ResolvedProblem&, const Limits& limits) {
          return std::uint64_t{limits.nv_reserved_shared_memory_bytes};
        },
    .load_vector = load_vector,
    .unroll_k = [](const Config& c) { return nv(c).unroll_k; },
    // Without promised alignment 73 TFLOP/s instead of 185 to 235, because the compiler then loads
    // element by element (H200, driver 580.159.04, 2026-11-20). A tile takes longer than one of
    // khr, besides its products: fitted with nvidia_sm90's timing.
    .cost = {.misaligned = 3.0, .tile = 1.3},
    .propose = propose,
    .kinds = kinds,
    .trials = trials,
    .covers = covers,
    .denied = denied,
    .kind_text = kind_text,
    .kind_numbers = kind_numbers,
};

}  // namespace vkgemm
