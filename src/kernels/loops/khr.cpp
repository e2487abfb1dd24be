// khr.cpp: the main loop that stages one k-tile at a time for subgroup-scope matrices.
#include <algorithm>
#include <array>
#include <iterator>

#include "kernels/loops/khr_fragments.hpp"
#include "kernels/parts/quantised.hpp"

namespace vkgemm {
namespace {

// 64x96 per subgroup of 32 (192 each) spills on the H200 (driver 580.159.04), 80x64 (160 each) does
// not. Compilers with smaller register files refuse more by rows of the tables.
constexpr std::uint32_t most_accumulators = 160;

constexpr auto parameters = [] {
  std::array<Parameter, std::size(khr_parameters<KhrLoop>) + 1> all{};
  std::ranges::copy(khr_parameters<KhrLoop>, all.begin());
  all.back() = of_loop<KhrLoop, &KhrLoop::rotate>(
      {.name = "rotate", .fields = {"rotate"}, .max = 1, .left_out = 0});
  return all;
}();

constexpr std::uint32_t proposed_depths[] = {1, 2, 4};

std::optional<Config> smaller(const Config& config) {
  Config c = config;
  const std::uint32_t step = 2 * khr(c).fragment_k;
  if (c.tile_k < step || c.tile_k % step != 0) return std::nullopt;
  c.tile_k /= 2;
  return c;
}

// Fragments are loaded from shared memory by 16 bytes.
void add_staged(std::vector<KernelKind>& kinds, const FragmentShape& shape,
                const DeviceCaps& caps) {
  const std::uint32_t width = 16 / size_in_bytes(shape.input);
  if (shape.m % width != 0 || shape.n % width != 0 || shape.k % width != 0) return;
  add_fragment_kinds(kinds, MainLoop::khr, shape, caps);
}

// Any multiple of a flexible shape is one, so those that anybody asks for: the smallest, and what
// tables propose.
void add_flexible(std::vector<KernelKind>& kinds, const FlexibleShape& shape,
                  const DeviceCaps& caps, std::span<const Config> proposed) {
  const auto add = [&](const Size3& size) {
    if (size.m == 0 || !is_multiple(size, shape.input, shape)) return;
    add_staged(kinds, {.input = shape.input, .m = size.m, .n = size.n, .k = size.k}, caps);
  };
  add({shape.granularity_m, shape.granularity_n, shape.granularity_k});
  for (const Config& c : proposed) {
    if (descriptor(c).kin != MainLoop::khr) continue;
    add({khr(c).fragment_m, khr(c).fragment_n, khr(c).fragment_k});
  }
}

void kinds(std::vector<KernelKind>& out, const DeviceCaps& caps, std::span<const Config> proposed) {
  for (const FragmentShape& shape : caps.fragment_shapes) {
    if (is_used(shape)) add_staged(out, shape, caps);
  }
  for (const FlexibleShape& shape : caps.flexible_shapes) {
    if (is_used(shape) && shape.scope == MatrixScope::subgroup) {
      add_flexible(out, shape, caps, proposed);
    }
  }
}

}  // namespace

extern constexpr LoopDescriptor khr_loop = [] {
  LoopDescriptor loop = khr_fragments_loop;
  loop.loop = MainLoop::khr;
  loop.name = "khr";
  loop.converts = true;
  loop.parameters = parameters;
  loop.most_accumulators = most_accumulators;
  loop.check = check_khr;
  loop.specialize = [](Constants& constants, const Config& c) {
    specialize_khr(constants, c);
    constants.set(SPEC_ROTATE, khr(c).rotate);
  };
  loop.shared_memory_bytes = [](const Config& c, const ResolvedProblem& p, const Limits&) {
    const std::uint32_t stage = KHR_STAGE(is_k_inner_a(p), is_k_inner_b(p), c.tile_m, c.tile_n,
                                          c.tile_k, size_in_bytes(p.input_type()));
    return khr_shared_memory_bytes(c, stage + staged_scales_units(c, p));
  };
  loop.smaller = smaller;
  loop.enter = [](Config& c) {
    if (descriptor(c).takes_fragments()) c.pack_a = c.pack_b = false;
    c.loop = KhrLoop(khr(c));
  };
  loop.propose = [](std::vector<Config>& out, const ResolvedProblem& problem,
                    const DeviceCaps& caps) {
    propose_khr(out, problem, caps, proposed_depths,
                [](const KhrLoop& l) { return Config{.loop = l}; });
  };
  loop.kinds = kinds;
  loop.trials = khr_trials;
  return loop;
}();

}  // namespace vkgemm
