// f32_arithmetic.hpp: all that is to be known of an F32Arithmetic, one row each. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "vkgemm/problem.hpp"

namespace vkgemm {

struct F32ArithmeticRow {
  F32Arithmetic arithmetic = F32Arithmetic::ieee;
  std::string_view name;
  DataType type = DataType::f32;  // of what is multiplied
  std::uint32_t parts = 1;        // that add up to an element
  // Part q of A is multiplied by part r of B if q + r is at most this.
  std::uint32_t last_order = 0;
  std::uint32_t products = 1;
  bool scales_lines = false;   // along M and N, by powers of two
  double product_error = 0.0;  // of a product, relative to it, at most
};

// In the order of the enumerators.
inline constexpr F32ArithmeticRow f32_arithmetics[] = {
    {.arithmetic = F32Arithmetic::ieee, .name = "ieee"},
    {.arithmetic = F32Arithmetic::bf16x9,
     .name = "bf16x9",
     .type = DataType::bf16,
     .parts = 3,
     .last_order = 4,
     .products = 9},
    {.arithmetic = F32Arithmetic::bf16x6,
     .name = "bf16x6",
     .type = DataType::bf16,
     .parts = 3,
     .last_order = 2,
     .products = 6,
     .product_error = 0x1p-23},
    {.arithmetic = F32Arithmetic::f16x3,
     .name = "f16x3",
     .type = DataType::f16,
     .parts = 2,
     .last_order = 1,
     .products = 3,
     .scales_lines = true,
     .product_error = 0x1p-21},
};

// The row of an enumerator.
constexpr const F32ArithmeticRow& row_of(F32Arithmetic arithmetic) noexcept {
  return f32_arithmetics[static_cast<std::size_t>(arithmetic)];
}

static_assert(
    [] {
      for (std::size_t i = 0; i < std::size(f32_arithmetics); ++i) {
        const F32ArithmeticRow& row = f32_arithmetics[i];
        std::uint32_t products = 0;
        for (std::uint32_t q = 0; q < row.parts; ++q) {
          for (std::uint32_t r = 0; r < row.parts; ++r) products += q + r <= row.last_order ? 1 : 0;
        }
        if (static_cast<std::size_t>(row.arithmetic) != i || products != row.products) return false;
        // A scale stands in front of a line as one more element of it.
        if (row.scales_lines && row.parts * size_in_bytes(row.type) != sizeof(float)) return false;
      }
      return true;
    }(),
    "rows are in the order of the enumerators, products are those up to last_order, scales as "
    "large "
    "as elements");

}  // namespace vkgemm
