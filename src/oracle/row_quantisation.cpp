#include "oracle/row_quantisation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/arithmetic.hpp"
#include "lib/abi.h"
#include "oracle/groups.hpp"
#include "problem/convert.hpp"

namespace vkgemm::oracle {
namespace {

// Of a quotient of two floats, or a product: as if it had been rounded once.
double rounded(double value) { return static_cast<double>(static_cast<float>(value)); }

constexpr double most = QUANTISE_MOST;

}  // namespace

void quantise_rows(const RowQuantisation& q, const void* source, void* codes, void* scales) {
  const View from = view({q.source, q.rows, q.columns, q.batch});
  const View to = view({q.codes, q.rows, q.columns, q.batch});
  const auto least = static_cast<double>(std::bit_cast<float>(std::uint32_t{QUANTISE_LEAST_BITS}));
  const std::uint64_t group = q.group_k == 0 ? std::max<std::uint64_t>(q.columns, 1) : q.group_k;
  const std::uint64_t groups = q.group_k == 0 ? 1 : divided_up(q.columns, std::uint64_t{q.group_k});
  for (std::uint64_t b = 0; b < q.batch; ++b) {
    for (std::uint64_t line = 0; line < q.rows * groups; ++line) {
      const std::uint64_t i = line / groups, first = line % groups * group;
      const std::uint64_t last = std::min(first + group, q.columns);
      const auto element = [&](std::uint64_t j) {
        return load_element(source, from.type, from.index(b, i, j));
      };
      double largest = 0.0;
      bool has_nan = false;
      for (std::uint64_t j = first; j < last; ++j) {
        has_nan = has_nan || std::isnan(element(j));
        largest = std::max(largest, std::fabs(element(j)));
      }
      const bool scaled = !has_nan && std::isfinite(largest) && largest >= least;
      const double factor = scaled ? rounded(most / largest) : 0.0;
      for (std::uint64_t j = first; j < last; ++j) {
        const double code = scaled ? std::nearbyint(rounded(element(j) * factor)) : 0.0;
        store_element(codes, to.type, to.index(b, i, j), code);
      }
      const double scale = has_nan               ? std::numeric_limits<double>::quiet_NaN()
                           : std::isinf(largest) ? largest
                           : scaled              ? largest / most
                                                 : 0.0;
      store_element(scales, DataType::f32, b * q.rows * groups + line, scale);
    }
  }
}

}  // namespace vkgemm::oracle
