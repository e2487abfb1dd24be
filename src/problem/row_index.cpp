#include "problem/row_index.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace vkgemm {
namespace {

// A step that reaches each of `places` places once, modulo their number.
std::uint64_t step_through(std::uint64_t places) {
  std::uint64_t step = places * 5 / 8 | 1;
  while (std::gcd(step, places) != 1) ++step;
  return step;
}

}  // namespace

std::vector<std::byte> encode_integers(std::span<const std::int64_t> values, std::uint32_t size) {
  std::vector<std::byte> bytes(values.size() * size);
  // Little-endian: the low half of a number comes first.
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::memcpy(bytes.data() + i * size, &values[i], size);
  }
  return bytes;
}

std::vector<std::byte> integers_of(OperandId id, const Problem& problem,
                                   std::span<const std::int64_t> offsets) {
  if (!problem.grouping) return {};
  const Grouping& g = *problem.grouping;
  const bool has_sizes = g.bounds != GroupBounds::offsets;
  if (id == OperandId::offsets && g.bounds != GroupBounds::sizes) {
    const std::size_t count = g.groups + (has_sizes ? 0 : 1);
    return encode_integers(offsets.first(count), size_in_bytes(g.offsets));
  }
  std::vector<std::int64_t> values;
  const auto add = [&values](std::uint64_t value) {
    values.push_back(static_cast<std::int64_t>(value));
  };
  if (id == OperandId::group_sizes && has_sizes) {
    for (std::size_t i = 0; i < g.groups; ++i) values.push_back(offsets[i + 1] - offsets[i]);
    return encode_integers(values, size_in_bytes(g.offsets));
  }
  if (id == OperandId::b_index && g.b_matrices != 0) {
    const std::uint64_t step = step_through(g.b_matrices);
    for (std::uint64_t i = 0; i < g.groups; ++i) add((i * step + 1) % g.b_matrices);
  } else if (id == OperandId::row_index && has_row_index(g)) {
    std::uint64_t places = g.d_rows != 0 ? places_of(g) : g.a_rows * g.a_terms;
    if (g.a_rows != 0) places = std::min(places, g.a_rows * g.a_terms);
    const std::uint64_t step = step_through(places);
    for (std::uint64_t i = 0; i < problem.m; ++i) add((i * step + places / 3) % places);
  }
  return encode_integers(values, sizeof(std::uint32_t));
}

}  // namespace vkgemm
