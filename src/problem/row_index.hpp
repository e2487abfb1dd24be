// row_index.hpp: groups of rows by index (struct Grouping): which parts of it a problem has. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "problem/operand_id.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

constexpr bool gathers_rows(const std::optional<Grouping>& grouping) noexcept {
  return grouping && grouping->a_rows != 0;
}
// True if D has rows of its own: rows are stored to them, or added up.
constexpr bool places_rows(const std::optional<Grouping>& grouping) noexcept {
  return grouping && grouping->d_rows != 0;
}
constexpr bool adds_rows(const std::optional<Grouping>& grouping) noexcept {
  return places_rows(grouping) && (grouping->d_terms > 1 || grouping->row_weights);
}
constexpr bool has_row_index(const std::optional<Grouping>& grouping) noexcept {
  return gathers_rows(grouping) || places_rows(grouping);
}
constexpr bool has_b_index(const std::optional<Grouping>& grouping) noexcept {
  return grouping && grouping->b_matrices != 0;
}

// The values that an index may have for D.
constexpr std::uint64_t places_of(const Grouping& grouping) noexcept {
  return grouping.d_rows * grouping.d_terms;
}

// Matrices of which groups of rows use one each: those of B, if it has an index.
constexpr std::uint64_t matrices_of(const Grouping& grouping) noexcept {
  return grouping.b_matrices != 0 ? grouping.b_matrices : grouping.groups;
}

// Integers as they are in memory, with so many bytes each.
std::vector<std::byte> encode_integers(std::span<const std::int64_t> values, std::uint32_t size);

// Operands of integers for a grouped problem whose groups begin at these offsets, the end of the
// last one included, as they are in memory. Rows have different indices, as long as there are
// enough, in no order. Nothing for an operand that the problem doesn't have.
std::vector<std::byte> integers_of(OperandId id, const Problem& problem,
                                   std::span<const std::int64_t> offsets);

}  // namespace vkgemm
