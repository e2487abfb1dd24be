// loops.hpp: what the descriptors of several main loops share.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>

#include "device/caps.hpp"
#include "kernels/check.hpp"
#include "kernels/main_loop.hpp"
#include "lib/abi.h"
#include "lib/footprint.h"

namespace vkgemm {

// Neighbours of a row that an epilogue works on at once.
inline constexpr std::uint32_t x4 = 4;

// Saturates at 2^32 - 1: the product of hostile figures must not wrap into a plausible one.
inline std::uint32_t saturated_product(std::uint32_t a, std::uint32_t b) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(std::uint64_t{a} * b, most));
}

// True if a size is a multiple of a shape that the device lists, with the type's accumulators.
inline bool is_multiple(const Size3& size, DataType input, const FlexibleShape& shape) {
  return shape.input == input && is_used(shape) && shape.granularity_m != 0 &&
         shape.granularity_n != 0 && shape.granularity_k != 0 &&
         size.m % shape.granularity_m == 0 && size.n % shape.granularity_n == 0 &&
         size.k % shape.granularity_k == 0;
}

// True if neighbours in memory are neighbours along K.
inline bool is_k_inner_a(const ResolvedProblem& p) { return p.a.layout == Layout::row_major; }
inline bool is_k_inner_b(const ResolvedProblem& p) { return p.b_in_columns(); }

// The numbers of a kind as its loop names them: a structure of as many words.
template <class Numbers>
constexpr Numbers numbers_of(const KernelKind& kind) {
  return std::bit_cast<Numbers>(kind.numbers);
}
template <class Numbers>
constexpr KernelKind make_kind(MainLoop loop, DataType input, const Numbers& numbers) {
  return {.loop = loop,
          .input = input,
          .numbers = std::bit_cast<decltype(KernelKind::numbers)>(numbers)};
}

// Adds a kind of kernel that is not in the list yet.
inline void add_kind(std::vector<KernelKind>& kinds, const KernelKind& kind) {
  if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
}

// Fields of loops without matrices: the input type alone makes a kind of them, and a denial that
// names the sizes of matrices means others.
inline bool covers_any(const KernelKind&, const Config&) { return true; }
inline bool denied_without_sizes(const Denial& denial, const Config&) {
  return denial.m == 0 && denial.n == 0 && denial.k == 0;
}
inline std::string input_text(const KernelKind& kind) { return std::string(to_string(kind.input)); }

}  // namespace vkgemm
