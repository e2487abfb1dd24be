#include "oracle/tile_reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "problem/convert.hpp"
#include "problem/operands.hpp"

namespace vkgemm::oracle {
namespace {

constexpr std::uint64_t kRows = 2;  // of the inner kernel, which must fit 16 vector registers …
constexpr std::uint64_t kCols = 4;  // … of two doubles, for A·B and |A|·|B|

// The type to which A or B is rounded before it is multiplied, if that is another one. A quantised
// B comes as the elements that are multiplied.
std::optional<DataType> rounding(const Problem& problem, OperandId id) {
  const bool of_a = id == OperandId::a;
  if (!of_a && problem.quantised_b) return std::nullopt;
  const DataType type = of_a ? problem.a.type : problem.b.type;
  return problem.multiply_as == type ? std::nullopt : problem.multiply_as;
}

double rounded(double value, DataType type) {
  std::uint64_t bits = 0;
  store_element(&bits, type, 0, value);
  return load_element(&bits, type, 0);
}

// Packs depth × lines elements into panels of `width` lines, zeros where the last panel ends
// early. `index(line, k)` finds an element; the loops go along memory where `along_lines` says so.
template <std::uint64_t Width, DataType Type, class Index>
void pack_typed(double* to, const void* data, std::optional<DataType> rounds_to,
                std::uint64_t lines, std::uint64_t depth, bool along_lines, const Index& index) {
  const std::uint64_t padded = (lines + Width - 1) / Width * Width;
  const auto slot = [&](std::uint64_t line, std::uint64_t k) -> double& {
    return to[(line / Width * kDepth + k) * Width + line % Width];
  };
  const std::uint64_t outer = along_lines ? depth : lines;
  const std::uint64_t inner = along_lines ? lines : depth;
  for (std::uint64_t x = 0; x < outer; ++x) {
    for (std::uint64_t y = 0; y < inner; ++y) {
      const std::uint64_t line = along_lines ? y : x;
      const std::uint64_t k = along_lines ? x : y;
      const double value = load_element(data, Type, index(line, k));
      slot(line, k) = rounds_to ? rounded(value, *rounds_to) : value;
    }
  }
  for (std::uint64_t line = lines; line < padded; ++line) {
    for (std::uint64_t k = 0; k < depth; ++k) slot(line, k) = 0.0;
  }
}

template <std::uint64_t Width, class Index>
void pack(double* to, const void* data, DataType type, std::optional<DataType> rounds_to,
          std::uint64_t lines, std::uint64_t depth, bool along_lines, const Index& index) {
  visit_type(type, [&]<DataType Type>() {
    pack_typed<Width, Type>(to, data, rounds_to, lines, depth, along_lines, index);
  });
}

// The scales of A's rows and groups of K multiply its packed elements.
void scale_a(double* to, const Problem& problem, const HostOperands& operands, const TileOfD& tile,
             std::uint64_t k0, std::uint64_t depth) {
  const OperandShape shape = row_of(OperandId::row_scales).shape(problem);
  for (std::uint64_t line = 0; line < tile.row_count; ++line) {
    for (std::uint64_t k = 0; k < depth; ++k) {
      const std::uint64_t at =
          shape.index(tile.batch, tile.rows[line], (k0 + k) / problem.a_group_k);
      to[(line / kRows * kDepth + k) * kRows + line % kRows] *=
          load_element(operands[OperandId::row_scales], DataType::f32, at);
    }
  }
}

// One product serves both sums: |a·b| is |a|·|b|. Fixed-size arrays, so that compilers keep them in
// vector registers.
void multiply_panels(const double* a, const double* b, std::uint64_t depth, double* dot,
                     double* magnitude) {
  double sum[kRows][kCols] = {};
  double size[kRows][kCols] = {};
  for (std::uint64_t k = 0; k < depth; ++k) {
    for (std::uint64_t i = 0; i < kRows; ++i) {
      for (std::uint64_t j = 0; j < kCols; ++j) {
        const double product = a[k * kRows + i] * b[k * kCols + j];
        sum[i][j] += product;
        size[i][j] += std::fabs(product);
      }
    }
  }
  for (std::uint64_t i = 0; i < kRows; ++i) {
    for (std::uint64_t j = 0; j < kCols; ++j) {
      dot[i * kTile + j] += sum[i][j];
      magnitude[i * kTile + j] += size[i][j];
    }
  }
}

}  // namespace

void multiply_tile(const Problem& problem, const Views& views, const HostOperands& operands,
                   const TileOfD& tile, std::uint64_t half, Packed& packed, Sums& sums) {
  const bool separate = problem.gated && problem.gated->b == GatedB::separate;
  const void* const b = operands[separate && half == 1 ? OperandId::b_right : OperandId::b];
  std::fill(std::begin(sums.dot), std::end(sums.dot), 0.0);
  std::fill(std::begin(sums.magnitude), std::end(sums.magnitude), 0.0);
  std::array<std::uint64_t, kTile> columns{};  // of B
  for (std::uint64_t line = 0; line < tile.col_count; ++line) {
    const std::uint64_t j = tile.first_col + line;
    columns[line] = separate ? j : product_column(problem, half, j);
  }
  const std::uint64_t first = problem.sum_batch ? 0 : tile.batch;
  const std::uint64_t last = problem.sum_batch ? problem.batch : tile.batch + 1;
  for (std::uint64_t matrix = first; matrix < last; ++matrix) {
    for (std::uint64_t k0 = 0; k0 < problem.k; k0 += kDepth) {
      const std::uint64_t depth = std::min(kDepth, problem.k - k0);
      pack<kRows>(packed.a, operands[OperandId::a], views[OperandId::a].type,
                  rounding(problem, OperandId::a), tile.row_count, depth,
                  !views[OperandId::a].row_major, [&](std::uint64_t line, std::uint64_t k) {
                    return views[OperandId::a].index(matrix, tile.rows[line], k0 + k);
                  });
      if (problem.a_group_k != 0) scale_a(packed.a, problem, operands, tile, k0, depth);
      pack<kCols>(packed.b, b, views[OperandId::b].type, rounding(problem, OperandId::b),
                  tile.col_count, depth, views[OperandId::b].row_major,
                  [&](std::uint64_t line, std::uint64_t k) {
                    return views[OperandId::b].index(matrix, k0 + k, columns[line]);
                  });
      for (std::uint64_t j = 0; j < tile.col_count; j += kCols) {
        for (std::uint64_t i = 0; i < tile.row_count; i += kRows) {
          multiply_panels(packed.a + i * kDepth, packed.b + j * kDepth, depth,
                          sums.dot + i * kTile + j, sums.magnitude + i * kTile + j);
        }
      }
    }
  }
}

}  // namespace vkgemm::oracle
