// legality_gated.cpp: which tiles can hold two products, and what is not built for them.
#include "../shaders/lib/gemm_params.h"
#include "kernel.hpp"
#include "legality_case.hpp"

namespace vkgemm {

bool check_gated(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = s.problem;
  if (!p.gated) return true;
  if (c.path == Path::nv) return s.refuse("gated: not built on path nv");
  if (c.pack_b) {
    return s.refuse("pack is ", c.pack_a ? "ab" : "b", ": B is not packed for gated products");
  }
  // What is loaded at once lies in one half.
  const std::uint32_t piece = is_thin(c) ? THIN_PIECE : 16 / size_in_bytes(p.a.type);
  if (c.tile_n % (2 * piece) != 0) {
    return s.refuse("gated: tile_n is ", c.tile_n, ", not a multiple of ", 2 * piece,
                    ": half of it is for the left product, half for the right one");
  }
  // An invocation holds what belongs together.
  if (c.path == Path::fma && !is_thin(c) && c.fragment_n % 8 != 0) {
    return s.refuse("gated: fragment_n is ", c.fragment_n,
                    ", not a multiple of 8: half of it is for the left product, half for the right "
                    "one");
  }
  return true;
}

}  // namespace vkgemm
