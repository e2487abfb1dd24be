#include "problem/row_index.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace vkgemm {
namespace {

// Little-endian: the low half of a number comes first.
void add_number(std::vector<std::byte>& to, std::int64_t value, std::uint32_t size) {
  const std::size_t at = to.size();
  to.resize(at + size);
  std::memcpy(to.data() + at, &value, size);
}

// A step through so many places that meets each once.
std::uint64_t step_through(std::uint64_t places) {
  std::uint64_t step = places * 5 / 8 | 1;
  while (std::gcd(step, places) != 1) ++step;
  return step;
}

}  // namespace

std::vector<std::byte> integers_of(OperandId id, const Problem& problem,
                                   std::span<const std::int64_t> offsets) {
  std::vector<std::byte> out;
  if (!problem.grouping) return out;
  const Grouping& g = *problem.grouping;
  const std::uint32_t size = size_in_bytes(g.offsets);
  if (id == OperandId::offsets) {
    const std::size_t count = g.groups + (g.bounds == GroupBounds::offsets ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) add_number(out, offsets[i], size);
  } else if (id == OperandId::group_sizes) {
    for (std::size_t i = 0; i < g.groups; ++i) add_number(out, offsets[i + 1] - offsets[i], size);
  } else if (id == OperandId::b_index && g.b_matrices != 0) {
    const std::uint64_t step = step_through(g.b_matrices);
    for (std::uint64_t i = 0; i < g.groups; ++i) {
      add_number(out, static_cast<std::int64_t>((i * step + 1) % g.b_matrices), 4);
    }
  } else if (id == OperandId::row_index && has_row_index(g)) {
    std::uint64_t places = g.d_rows != 0 ? places_of(g) : g.a_rows * g.a_terms;
    if (g.a_rows != 0) places = std::min(places, g.a_rows * g.a_terms);
    const std::uint64_t step = step_through(places);
    for (std::uint64_t i = 0; i < problem.m; ++i) {
      add_number(out, static_cast<std::int64_t>((i * step + places / 3) % places), 4);
    }
  }
  return out;
}

}  // namespace vkgemm
