// tile_reference.hpp: the sums of a product in double precision, a tile at a time. Internal to the
// reference.
#pragma once

#include <array>
#include <cstdint>

#include "oracle/groups.hpp"

namespace vkgemm::oracle {

// A tile of D is computed from K in pieces, so that what is packed to double (2 × 128 KiB) stays in
// the L2 cache, and packing, an element at a time, costs a thirtieth of the multiplications.
constexpr std::uint64_t kTile = 64;
constexpr std::uint64_t kDepth = 256;

struct Sums {
  double dot[kTile * kTile];        // (A·B) of the tile
  double magnitude[kTile * kTile];  // (|A|·|B|) of it
};

// Room for what is packed of A and B, [kTile / width][kDepth][width]: panels of rows and columns,
// as wide as the inner kernel.
struct Packed {
  double a[kTile * kDepth];
  double b[kTile * kDepth];
};

// The place of one tile of D: which batch, which rows, which columns.
struct TileOfD {
  std::uint64_t batch = 0;
  std::array<std::uint64_t, kTile> rows{};
  std::uint64_t row_count = 0;
  std::uint64_t first_col = 0;
  std::uint64_t col_count = 0;
};

// `half`: of a gated product, 0 for l and 1 for r.
void multiply_tile(const Problem& problem, const Views& views, const HostOperands& operands,
                   const TileOfD& tile, std::uint64_t half, Packed& packed, Sums& sums);

}  // namespace vkgemm::oracle
