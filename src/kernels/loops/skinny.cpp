// skinny.cpp: the skinny loop, for few rows of A, where reading B once, as fast as may be, is what
// counts.
#include "kernels/loops/loops.hpp"
#include "kernels/steps.hpp"

namespace vkgemm {
namespace {

// Rows of a tile: 64 accumulators beside pieces of A and B.
constexpr std::uint32_t most_rows = 8;

constexpr std::uint32_t piece = SKINNY_PIECE;

std::uint32_t workgroup_size(const Config& c) {
  return saturated_product(c.tile_n / piece, c.tile_k / piece);
}

bool check(const Case& s) {
  const Config& c = s.config;
  if (c.tile_m > most_rows) {
    return s.refuse("tile ", tile_of(c), " has ", c.tile_m, " rows: at most ", most_rows,
                    " stay in registers of main loop skinny");
  }
  if (c.tile_n % piece != 0 || c.tile_k % piece != 0) {
    return s.refuse("tile ", tile_of(c), " does not divide into pieces of ", Size2{piece, piece});
  }
  if (s.problem->gated && c.tile_n % (2 * piece) != 0) {
    return s.refuse("gated: tile_n is ", c.tile_n, ", not a multiple of ", 2 * piece,
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
    .invocations = workgroup_size,
    .accumulators = [](const Config& c) { return c.tile_m * piece; },
    .most_accumulators = most_rows * piece,
    .part =
        [](const Config& c) {
          return TilePart{c.tile_m, piece};
        },
    .check = check,
    .shared_memory_bytes =
        [](const Config& c, const ResolvedProblem&, const Limits&) {
          return std::uint64_t{SKINNY_SUMS(c.tile_n, c.tile_k)} * UNIT_BYTES;
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
