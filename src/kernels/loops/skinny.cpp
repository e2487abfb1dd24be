// skinny.cpp: the skinny loop, for few rows of A, where reading B once, as fast as may be, is what
// counts.
#include "kernels/loops/loops.hpp"
#include "kernels/steps.hpp"

namespace vkgemm {
namespace {

// Rows of a tile: 64 accumulators beside pieces of A and B.
constexpr std::uint32_t most_rows = 8;

// Columns of a piece, of s8 half as many. All pieces have as many elements.
constexpr std::uint32_t most_columns = SKINNY_PIECE_N(2);
constexpr std::uint32_t piece_elements = most_columns * SKINNY_PIECE_K(2);
static_assert(SKINNY_PIECE_N(1) * SKINNY_PIECE_K(1) == piece_elements);

std::uint32_t workgroup_size(const Config& c) {
  return saturated_product(c.tile_n, c.tile_k) / piece_elements;
}

// Columns and K of a piece.
Size2 piece_of(const ResolvedProblem& p) {
  const std::uint32_t bytes = size_in_bytes(p.input_type());
  const std::uint32_t columns = SKINNY_PIECE_N(bytes), depth = SKINNY_PIECE_K(bytes);
  return {columns, depth};
}

bool check(const Case& s) {
  const Config& c = s.config;
  if (c.tile_m > most_rows) {
    return s.refuse("tile ", tile_of(c), " has ", c.tile_m, " rows: at most ", most_rows,
                    " stay in registers of main loop skinny");
  }
  const auto [columns, depth] = piece_of(*s.problem);
  if (c.tile_n % columns != 0 || c.tile_k % depth != 0) {
    return s.refuse("tile ", tile_of(c), " does not divide into pieces of ", Size2{columns, depth});
  }
  if (s.problem->gated && c.tile_n % (2 * columns) != 0) {
    return s.refuse("gated: tile_n is ", c.tile_n, ", not a multiple of ", 2 * columns,
                    ": half of it is for the left product, half for the right one");
  }
  return true;
}

void propose(std::vector<Config>& out, const ResolvedProblem&, const DeviceCaps&) {
  constexpr std::uint32_t fewest_invocations = 32;
  for (const std::uint32_t m : {1u, 2u, 4u, 8u}) {
    for (const std::uint32_t n : {8u, 16u, 32u, 64u, 128u}) {
      for (const std::uint32_t k : {64u, 128u, 256u, 512u, 1024u}) {
        const Config c{.loop = SkinnyLoop{}, .tile_m = m, .tile_n = n, .tile_k = k};
        if (workgroup_size(c) >= fewest_invocations) out.push_back(c);
      }
    }
  }
}

void kinds(std::vector<KernelKind>& out, const DeviceCaps&, std::span<const Config>) {
  for (const Input* input : inputs()) {
    if (!has_kernels(MainLoop::skinny, *input)) continue;
    if (input->group_sums) continue;  // tried as fma
    out.push_back({.loop = MainLoop::skinny, .input = input->multiplied});
  }
}

std::vector<Config> trials(const KernelKind&, const DeviceCaps&) {
  return {{.loop = SkinnyLoop{}, .tile_m = 3, .tile_n = 16, .tile_k = 32, .swizzle = 2}};
}

}  // namespace

extern constexpr LoopDescriptor skinny_loop{
    .loop = MainLoop::skinny,
    .name = "skinny",
    .shows_stores = true,
    .multiplies_pairs = true,
    .converts = true,
    .kin = MainLoop::skinny,
    // fma has its dot products.
    .tried_as =
        [](DataType input) {
          return FMA_STEP(size_in_bytes(input)) != 1 ? MainLoop::fma : MainLoop::skinny;
        },
    .invocations = workgroup_size,
    .accumulators = [](const Config& c) { return c.tile_m * most_columns; },  // of s8: at most
    .most_accumulators = most_rows * most_columns,
    .part =
        [](const Config& c) {
          return TilePart{c.tile_m, most_columns};
        },
    .check = check,
    .shared_memory_bytes =
        [](const Config& c, const ResolvedProblem& p, const Limits&) {
          const std::uint32_t bytes = size_in_bytes(p.input_type());
          return std::uint64_t{SKINNY_SUMS(c.tile_n, c.tile_k, bytes)} * UNIT_BYTES;
        },
    .load_vector = load_width,
    // Eight times as many loads are on their way where they are of single elements: 5 us a k-tile
    // instead of 0.7 (H200, driver 580.159.04, 2x65x1280 bf16); few of them are A's, and those of
    // B in columns follow each other. Fitted with nvidia_sm90's timing.
    .cost = {.single_products = {.a = 1.3, .b_in_rows = 2.8, .b_in_columns = 1.7},
             .single_latency = {.a = 1.3, .b_in_rows = 2.7, .b_in_columns = 1.8},
             .bound_by_memory = true},
    .propose = propose,
    .kinds = kinds,
    .trials = trials,
    .covers = covers_any,
    .denied = denied_without_sizes,
    .kind_text = input_text,
};

}  // namespace vkgemm
