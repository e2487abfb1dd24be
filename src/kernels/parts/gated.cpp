// gated.cpp: which tiles can hold two products, and what is not built for them.
#include "kernels/parts/gated.hpp"

#include <bit>
#include <string_view>

#include "base/text.hpp"
#include "kernels/check.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/tiling.hpp"
#include "problem/fields.hpp"

namespace vkgemm {
namespace {

constexpr std::string_view family_name = "gated";

// GATE_* are in the order of the enumerators.
std::uint32_t gate_constant(Gate gate) {
  static_assert(GATE_GLU == GATE_SIGMOID_TANH + static_cast<int>(Gate::glu));
  return GATE_SIGMOID_TANH + static_cast<std::uint32_t>(gate);
}

bool check(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  if (!p.gated) return true;
  if (!descriptor(c).multiplies_pairs) {
    return s.refuse("gated: not built on main loop ", to_string(c.main_loop()));
  }
  // Each load lies in one half.
  const std::uint32_t piece = group_width(p);
  if (c.tile_n % (2 * piece) == 0) return true;
  return s.refuse("gated: tile_n is ", c.tile_n, ", not a multiple of ", 2 * piece,
                  ": half of it is for the left product, half for the right one");
}

void lower(Lowering& l) { set_gate(l.constants, *l.problem); }

std::string describe(const Config& c, const ResolvedProblem& p, const DispatchPlan&) {
  if (!p.gated) return {};
  Gated gate = *p.gated;
  gate.b = {};
  return concat("gated: ", text_of(gate), ", b ", to_string(p.gated->b), ": a tile of ", c.tile_n,
                " columns is ", d_tile_n(c, p), " of D");
}

}  // namespace

void set_gate(Constants& constants, const ResolvedProblem& problem) {
  if (!problem.gated) return;
  constants.set(SPEC_GATE, gate_constant(problem.gated->gate));
  constants.set(SPEC_GATE_INTERLEAVED, problem.gated->b == GatedB::interleaved);
  const auto bits = [](float number) {  // of either zero: 0
    return number == 0.0f ? 0 : std::bit_cast<std::uint32_t>(number);
  };
  constants.set(SPEC_GATE_SWAPPED, problem.gated->swapped);
  constants.set(SPEC_GATE_LIMIT, bits(problem.gated->limit));
  constants.set(SPEC_GATE_SLOPE, bits(problem.gated->slope));
  constants.set(SPEC_GATE_OFFSET, bits(problem.gated->offset));
}

extern constexpr Part gated_part{
    .check = check,
    .lower = lower,
    .describe = describe,
    .family = [](const ResolvedProblem& p) { return p.gated ? family_name : std::string_view(); },
    .is_family = [](std::string_view name) { return name == family_name; },
};

}  // namespace vkgemm
