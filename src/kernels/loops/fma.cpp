// fma.cpp: the main loop on plain multiply-adds, with register tiles.
#include "kernels/loops/loops.hpp"
#include "kernels/parts/quantised.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/steps.hpp"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {
namespace {

// Operands stay in registers beside the accumulators.
constexpr std::uint32_t most_accumulators = 128;

constexpr Parameter parameters[] = {
    of_loop<FmaLoop, &FmaLoop::fragment_m, &FmaLoop::fragment_n>(
        {.name = "fragment",
         .fields = {"fragment_m", "fragment_n"},
         .min = 1,
         .max = largest_tile,
         .forms_tile = true,
         .scales = true}),
    of_loop<FmaLoop, &FmaLoop::peel>({.name = "peel", .fields = {"peel"}, .max = 1, .left_out = 1}),
};

const FmaLoop& fma(const Config& c) { return std::get<FmaLoop>(c.loop); }

std::uint32_t workgroup_size(const Config& c) {
  const FmaLoop& l = fma(c);
  if (l.fragment_m == 0 || l.fragment_n == 0) return 0;
  return saturated_product(c.tile_m / l.fragment_m, c.tile_n / l.fragment_n);
}

// Elements of K that are multiplied at once.
std::uint32_t step(DataType type) { return FMA_STEP(size_in_bytes(type)); }

bool check(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  const Size2 fragment{fma(c).fragment_m, fma(c).fragment_n};
  if (fragment.m % x4 != 0 || fragment.n % x4 != 0) {
    return s.refuse("fragment ", fragment, ": not multiples of ", x4);
  }
  if (c.tile_m % fragment.m != 0 || c.tile_n % fragment.n != 0) {
    return s.refuse("tile ", tile_of(c), " does not divide into fragments of ", fragment);
  }
  if (const std::uint32_t k = step(p.input_type()); c.tile_k % k != 0) {
    return s.refuse("tile ", tile_of(c), " is ", c.tile_k, " deep: not a multiple of ", k,
                    ", which are multiplied at once");
  }
  // An invocation holds what belongs together.
  if (p.gated && fragment.n % (2 * x4) != 0) {
    return s.refuse("gated: fragment_n is ", fragment.n, ", not a multiple of ", 2 * x4,
                    ": half of it is for the left product, half for the right one");
  }
  const std::uint32_t width = group_width(p);
  const std::uint32_t a_line = is_k_inner_a(p) ? c.tile_k : c.tile_m;
  const std::uint32_t b_line = is_k_inner_b(p) ? c.tile_k : c.tile_n;
  if (a_line % width != 0 || b_line % width != 0) {
    const bool is_a = a_line % width != 0;
    return s.refuse("tile ", tile_of(c), " has rows of ", is_a ? a_line : b_line, " elements of ",
                    is_a ? "A" : "B", " to load: not a multiple of ", width);
  }
  return true;
}

std::uint64_t shared_memory_bytes(const Config& c, const ResolvedProblem& p, const Limits&) {
  const std::uint64_t stage =
      FMA_STAGE(c.tile_m, c.tile_n, c.tile_k, size_in_bytes(p.input_type())) +
      staged_scales_units(c, p);
  const std::uint64_t scratch =
      keeps_tiles(c.rows) ? FMA_SCRATCH(c.tile_m, c.tile_n, fma(c).fragment_m) : 0;
  const std::uint64_t sums =
      sums_columns(p.epilogue) ? FMA_SUMS(c.tile_m, c.tile_n, fma(c).fragment_m) : 0;
  return std::max({stage, scratch, sums}) * UNIT_BYTES;
}

void specialize(Constants& constants, const Config& c) {
  constants.set(SPEC_FRAGMENT_M, fma(c).fragment_m);
  constants.set(SPEC_FRAGMENT_N, fma(c).fragment_n);
  constants.set(SPEC_PEEL, fma(c).peel);
}

std::optional<Config> reshaped(const Config& config, const TilePart& tile, const ResolvedProblem&,
                               const DeviceCaps&) {
  if (tile.m % fma(config).fragment_m != 0) return std::nullopt;
  Config c = config;
  c.tile_m = tile.m;
  c.tile_n = tile.n;
  return c;
}

std::optional<Config> smaller(const Config& config) {
  if (config.tile_k < 2 || config.tile_k % 2 != 0) return std::nullopt;
  Config c = config;
  c.tile_k /= 2;
  return c;
}

void propose(std::vector<Config>& out, const ResolvedProblem& p, const DeviceCaps& caps) {
  const std::uint32_t step_k = step(p.input_type());
  constexpr std::uint32_t fewest_invocations = 32;
  for (const auto& [rows, columns] : {std::pair{4u, 4u}, {4u, 8u}, {8u, 4u}, {8u, 8u}}) {
    for (const std::uint32_t m : {8u, 16u, 32u, 64u, 128u, 256u}) {
      for (const std::uint32_t n : {8u, 16u, 32u, 64u, 128u, 256u}) {
        for (const std::uint32_t steps : {8u, 16u, 32u}) {
          if (m < rows || n < columns) continue;
          const Config c{
              .loop = FmaLoop{.fragment_m = rows, .fragment_n = columns, .peel = !is_cpu(caps)},
              .tile_m = m,
              .tile_n = n,
              .tile_k = steps * step_k};
          if (workgroup_size(c) >= fewest_invocations) out.push_back(c);
        }
      }
    }
  }
}

void kinds(std::vector<KernelKind>& out, const DeviceCaps& caps, std::span<const Config>) {
  for (const Input* input : inputs()) {
    if (!has_kernels(MainLoop::fma, *input) || !loads(caps, *input)) continue;
    if (input->group_sums) continue;  // the kind of its elements
    out.push_back({.loop = MainLoop::fma, .input = input->multiplied});
  }
}

// Tiles of two 16-byte loads in each direction, and one along K.
std::vector<Config> trials(const KernelKind& kind, const DeviceCaps& caps) {
  const std::uint32_t load = std::max(8u, 16 / size_in_bytes(kind.input));
  return {{.loop = FmaLoop{.fragment_m = 4, .fragment_n = 4, .peel = !is_cpu(caps)},
           .tile_m = 2 * load,
           .tile_n = 2 * load,
           .tile_k = load,
           .swizzle = 2}};
}

}  // namespace

extern constexpr LoopDescriptor fma_loop{
    .loop = MainLoop::fma,
    .name = "fma",
    .parameters = parameters,
    .shows_stores = true,
    .keeps_values = true,
    .multiplies_pairs = true,
    .converts = true,
    .kin = MainLoop::fma,
    .invocations = workgroup_size,
    .accumulators = [](const Config& c) { return c.tile_m * c.tile_n / workgroup_size(c); },
    .most_accumulators = most_accumulators,
    .part =
        [](const Config& c) {
          return TilePart{fma(c).fragment_m, fma(c).fragment_n};
        },
    .check = check,
    .shared_memory_bytes = shared_memory_bytes,
    .load_vector = load_width,
    .specialize = specialize,
    .reshaped = reshaped,
    .smaller = smaller,
    .propose = propose,
    .kinds = kinds,
    .trials = trials,
    .covers = covers_any,
    .denied = denied_without_sizes,
    .kind_text = input_text,
};

}  // namespace vkgemm
