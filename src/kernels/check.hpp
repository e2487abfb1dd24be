// check.hpp: what the checks of legality share.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "base/text.hpp"
#include "kernels/computation.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// A grid that needs more dispatches than this would take minutes to record and to run.
constexpr std::uint64_t most_dispatches = 65536;

// True if the value is the wanted one; 0 wants any.
inline bool is_any_or(std::uint32_t wanted, std::uint32_t value) noexcept {
  return wanted == 0 || wanted == value;
}

// The case that is asked about, and the place for the reason, if it is wanted.
struct Case {
  const Computation& computation;
  ComputedProblem problem;  // its chunk; for main loops and grids, its product
  const DeviceCaps& caps;
  std::string* reason = nullptr;
  const Config& config = computation.config();

  template <class... Parts>
  bool refuse(const Parts&... parts) const {
    if (reason != nullptr) *reason = concat(parts...);
    return false;
  }
  // The same with a text that is put together only if it is wanted.
  template <std::invocable Text>
  bool refuse(const Text& text) const {
    if (reason != nullptr) *reason = text();
    return false;
  }
};

// Pieces of messages that cost nothing until they are printed: is_legal() asks about every row of a
// table whenever a plan is made.
struct Size2 {
  std::uint32_t m, n;
};
struct Size3 {
  std::uint32_t m, n, k;
};
inline void append_to(std::string& out, const Size2& size) { out += concat(size.m, 'x', size.n); }
inline void append_to(std::string& out, const Size3& size) {
  out += concat(size.m, 'x', size.n, 'x', size.k);
}
inline Size3 tile_of(const Config& c) { return {c.tile_m, c.tile_n, c.tile_k}; }

// The check against knowledge of the driver beyond what it says itself.
bool check_verdicts(const Case& s);

}  // namespace vkgemm
