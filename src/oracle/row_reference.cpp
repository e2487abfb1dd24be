#include "oracle/row_reference.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>

#include "lib/abi.h"
#include "oracle/largest.hpp"
#include "problem/convert.hpp"

namespace vkgemm::oracle {
namespace {

constexpr double ulp = 0x1p-23;

// Vulkan asks of sqrt and division no more than about 5 ULP in all, and of exp no more than
// 3 + 2|x|.
constexpr double root_error = 8.0 * ulp;
double exp_error(double x) { return (4.0 + 2.0 * std::fabs(x)) * ulp; }

// Sums of a row: as a tree of 8 levels over groups of four columns, then one block of 1024 after
// the other.
double depth(std::size_t n) { return 12.0 + static_cast<double>(n) / 1024.0; }

// The sums that all reductions are made of, with the bound of each.
struct Statistics {
  double n = 0.0;
  double sum = 0.0, size = 0.0, error = 0.0;  // of v, |v|, bounds
  double squares = 0.0, squares_error = 0.0;
  double largest = -std::numeric_limits<double>::infinity();
  double largest_error = 0.0;
};

Statistics statistics_of(std::span<const RowValue> row) {
  Statistics s;
  s.n = static_cast<double>(row.size());
  for (const RowValue& x : row) {
    s.sum += x.v;
    s.size += std::fabs(x.v);
    s.error += x.bound;
    s.squares += x.v * x.v;
    s.squares_error += 2.0 * std::fabs(x.v) * x.bound + x.bound * x.bound;
    if (std::isnan(x.v) || x.v > s.largest) s.largest = x.v;
    if (std::isnan(s.largest)) return s;
    s.largest_error = std::max(s.largest_error, x.bound);
  }
  return s;
}

struct Variance {
  double mean = 0.0, mean_bound = 0.0, value = 0.0, bound = 0.0;
};

Variance variance_of(std::span<const RowValue> row, const Statistics& s) {
  Variance out;
  const double levels = depth(row.size());
  out.mean = s.sum / s.n;
  double squares = 0.0, error = 0.0, farthest = 0.0;
  for (const RowValue& x : row) {
    const double d = x.v - out.mean;
    squares += d * d;
    error += 2.0 * std::fabs(d) * x.bound + x.bound * x.bound;
    farthest = std::max(farthest, std::fabs(d));
  }
  out.value = squares / s.n;
  // Kernels keep a mean as its distance from an element: differences of elements are rounded, which
  // are twice the farthest deviation at most, and means of them. Differences of means are squared.
  const double shift = levels * ulp * 3.0 * farthest;
  out.mean_bound = s.error / s.n + shift;
  out.bound =
      error / s.n + levels * ulp * out.value + 2.0 * shift * std::sqrt(out.value) + shift * shift;
  return out;
}

float eps_of(const RowReduction& rows) {
  switch (rows.op) {
    case RowOp::rms_norm:
      return rows.eps.value_or(1e-6f);
    case RowOp::layer_norm:
      return rows.eps.value_or(1e-5f);
    default:
      return rows.eps.value_or(1e-12f);
  }
}

// d = (v - center) * scale, with the error of center and the relative one of scale.
void scale_row(std::span<const RowValue> row, double center, double center_bound, double scale,
               double scale_error, ReducedRow& out) {
  if (scale == 0.0) scale_error = 0.0;  // what is infinite makes it so, whatever the rest is
  for (std::size_t j = 0; j < row.size(); ++j) {
    const double difference = row[j].v - center;
    out.d[j] = difference * scale;
    out.d_bound[j] = (row[j].bound + center_bound + 2.0 * ulp * std::fabs(difference)) * scale *
                         (1.0 + scale_error) +
                     std::fabs(out.d[j]) * scale_error;
  }
}

void root_mean_square(std::span<const RowValue> row, const Statistics& s, double eps,
                      ReducedRow& out) {
  const double square = s.squares / s.n + eps;
  const double error = (s.squares_error + depth(row.size()) * ulp * s.squares) / s.n + ulp * square;
  scale_row(row, 0.0, 0.0, 1.0 / std::sqrt(square), 0.75 * error / square + root_error, out);
}

void layer_norm(std::span<const RowValue> row, const Statistics& s, double eps, ReducedRow& out) {
  const Variance variance = variance_of(row, s);
  const double square = variance.value + eps;
  scale_row(row, variance.mean, variance.mean_bound, 1.0 / std::sqrt(square),
            0.75 * (variance.bound + ulp * square) / square + root_error, out);
}

void l2_normalize(std::span<const RowValue> row, const Statistics& s, double eps, ReducedRow& out) {
  const double norm = std::sqrt(s.squares);
  const double error = s.squares_error + depth(row.size()) * ulp * s.squares;
  const double relative = norm > 0.0 ? 0.75 * error / s.squares : 0.0;
  // NaN goes through, unlike through std::max.
  const double divisor = norm < eps ? eps : norm;
  scale_row(row, 0.0, 0.0, 1.0 / divisor, relative + root_error, out);
}

// log(sum(exp(v))) relative to the largest: what softmax and logsumexp share.
struct Exponentials {
  double shift = 0.0;
  double sum = 0.0;
  double error = 0.0;  // relative
};

Exponentials exponentials_of(std::span<const RowValue> row, const Statistics& s) {
  Exponentials e;
  e.shift = std::isinf(s.largest) ? 0.0 : s.largest;
  double weighted = 0.0;
  for (const RowValue& x : row) {
    const double term = std::exp(x.v - e.shift);
    e.sum += term;
    // Small terms may be off by little only.
    if (term > 0.0) weighted += term * (x.bound + exp_error(x.v - e.shift));
  }
  // Every merge multiplies by an exponential of its own.
  e.error = weighted / e.sum + 8.0 * depth(row.size()) * ulp;
  return e;
}

void softmax(std::span<const RowValue> row, const Statistics& s, ReducedRow& out) {
  const Exponentials e = exponentials_of(row, s);
  for (std::size_t j = 0; j < row.size(); ++j) {
    const double x = row[j].v - s.largest;  // NaN if there is an infinite one
    out.d[j] = std::exp(x) / (std::isinf(s.largest) ? std::nan("") : e.sum);
    const double relative = row[j].bound + 2.0 * ulp * std::fabs(x) + exp_error(x) + e.error;
    out.d_bound[j] = (out.d[j] > 0.0 ? out.d[j] * std::expm1(relative) : 0.0) + 0x1p-126;
  }
}

void logsumexp(std::span<const RowValue> row, const Statistics& s, ReducedRow& out) {
  const Exponentials e = exponentials_of(row, s);
  out.value = e.shift + std::log(e.sum);
  // log is good to 3 ULP, and near 1 to 2^-21.
  out.value_bound =
      std::expm1(e.error) + 4.0 * ulp * (std::fabs(out.value) + std::fabs(e.shift)) + 0x1p-21;
}

Largest largest_of(std::span<const RowValue> row) {
  Largest out;
  for (const RowValue& x : row) out.add(x.v, x.bound);
  return out;
}

// Rows of codes: RowQuantisation. A device may flush subnormal values.
void quantise(std::span<const RowValue> row, ReducedRow& out) {
  constexpr double most = QUANTISE_MOST;
  const auto least = static_cast<double>(std::bit_cast<float>(std::uint32_t{QUANTISE_LEAST_BITS}));
  const Largest all = largest_of(row);
  const double largest = all.magnitude, error = all.bound();
  std::ranges::fill(out.d, 0.0);
  std::ranges::fill(out.d_bound, 0.0);
  out.value = all.has_nan || std::isinf(largest) ? all.value() : 0.0;
  out.value_bound = 0.0;
  if (out.value != 0.0) return;
  if (largest < least - error) return;
  // A rounding decides if the row has codes.
  if (largest < least + error) out.unpredictable = true;
  out.value = largest / most;
  out.value_bound = error / most + ulp * out.value;
  const double relative = error / largest + 2.0 * ulp;
  for (std::size_t j = 0; j < row.size(); ++j) {
    out.d[j] = row[j].v * (most / largest);
    out.d_bound[j] = row[j].bound * most / largest + std::fabs(out.d[j]) * 2.0 * relative;
  }
}

void apply_vectors(const RowReduction& rows, const HostOperands& operands, ReducedRow& out) {
  for (std::size_t j = 0; j < out.d.size(); ++j) {
    if (rows.gamma) {
      const double gamma = load_element(operands[OperandId::gamma], rows.vector_type, j);
      out.d[j] *= gamma;
      out.d_bound[j] = out.d_bound[j] * std::fabs(gamma) + ulp * std::fabs(out.d[j]);
    }
    if (rows.beta) {
      out.d[j] += load_element(operands[OperandId::beta], rows.vector_type, j);
      out.d_bound[j] += ulp * std::fabs(out.d[j]);
    }
  }
}

}  // namespace

void reduce_row(const Problem& problem, const HostOperands& operands, std::span<const RowValue> row,
                ReducedRow& out) {
  const RowReduction& rows = *problem.row_reduction;
  const Statistics s = statistics_of(row);
  const double eps = static_cast<double>(eps_of(rows));
  out.d.resize(row.size());
  out.d_bound.resize(row.size());
  out.unpredictable = std::ranges::any_of(row, &RowValue::unpredictable);
  if (is_scalar(rows.op)) {
    for (std::size_t j = 0; j < row.size(); ++j) {
      out.d[j] = row[j].v;
      out.d_bound[j] = row[j].bound;
    }
  }
  const double sum_bound = s.error + depth(row.size()) * ulp * s.size;
  bool squares = false;
  switch (rows.op) {
    case RowOp::rms_norm:
      root_mean_square(row, s, eps, out);
      squares = true;
      break;
    case RowOp::layer_norm:
      layer_norm(row, s, eps, out);
      squares = true;
      break;
    case RowOp::softmax:
      softmax(row, s, out);
      break;
    case RowOp::l2_normalize:
      l2_normalize(row, s, eps, out);
      squares = true;
      break;
    case RowOp::logsumexp:
      logsumexp(row, s, out);
      break;
    case RowOp::sum:
      out.value = s.sum;
      out.value_bound = sum_bound;
      break;
    case RowOp::max:
      out.value = s.largest;
      out.value_bound = s.largest_error;
      break;
    case RowOp::amax: {
      const Largest all = largest_of(row);
      out.value = all.value();
      out.value_bound = all.bound();
      break;
    }
    case RowOp::mean:
      out.value = s.sum / s.n;
      out.value_bound = sum_bound / s.n + ulp * std::fabs(out.value);
      break;
    case RowOp::variance: {
      const Variance variance = variance_of(row, s);
      out.value = variance.value;
      out.value_bound = variance.bound;
      squares = true;
      break;
    }
    case RowOp::quantise:
      quantise(row, out);
      break;
  }
  // Where squares, or sums, leave f32's range, any result is right.
  const double reached = squares ? s.squares : s.size;
  if (std::isfinite(reached) && reached > static_cast<double>(FLT_MAX)) out.unpredictable = true;
  apply_vectors(rows, operands, out);
}

}  // namespace vkgemm::oracle
