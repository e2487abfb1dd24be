// khr_ring.cpp: the main loop on a ring of three stages, each half a k-tile deep, for
// subgroup-scope matrices.
#include "kernels/loops/khr_fragments.hpp"

namespace vkgemm {
namespace {

// A ring holds the fragments of two steps and a k-tile beside them: 246 registers with 128
// accumulators (H200, driver 580.159.04).
constexpr std::uint32_t most_accumulators = 128;

constexpr std::uint32_t proposed_depths[] = {2};

bool check(const Case& s) {
  if (!check_khr(s)) return false;
  const std::uint32_t fragment_k = khr(s.config).fragment_k;
  if (s.config.tile_k == 2 * fragment_k) return true;
  return s.refuse("tile_k is ", s.config.tile_k, ": main loop khr_ring takes twice fragment_k, ",
                  2 * fragment_k);
}

// With one stage.
std::optional<Config> smaller(const Config& config) {
  Config c = config;
  c.loop = khr(config);
  return c;
}

}  // namespace

extern constexpr LoopDescriptor khr_ring_loop = [] {
  LoopDescriptor loop = khr_fragments_loop;
  loop.loop = MainLoop::khr_ring;
  loop.name = "khr_ring";
  loop.converts = true;
  loop.parameters = khr_parameters<KhrRingLoop>;
  loop.most_accumulators = most_accumulators;
  loop.check = check;
  loop.shared_memory_bytes = [](const Config& c, const ResolvedProblem& p, const Limits&) {
    return khr_shared_memory_bytes(c, KHR_RING(is_k_inner_a(p), is_k_inner_b(p), c.tile_m, c.tile_n,
                                               c.tile_k, size_in_bytes(p.input_type())));
  };
  loop.cost.latency = &TimingModel::ring_latency;
  loop.smaller = smaller;
  loop.enter = [](Config& c) {
    c.loop = KhrRingLoop{khr(c)};
    khr(c).rotate = false;
    c.tile_k = 2 * khr(c).fragment_k;
  };
  loop.propose = [](std::vector<Config>& out, const ResolvedProblem& problem,
                    const DeviceCaps& caps) {
    propose_khr(out, problem, caps, proposed_depths,
                [](const KhrLoop& l) { return Config{.loop = KhrRingLoop{l}}; });
  };
  return loop;
}();

}  // namespace vkgemm
