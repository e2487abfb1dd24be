#include "tuning/nearest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arithmetic.hpp"
#include "kernels/computation.hpp"
#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/workspace.hpp"

namespace vkgemm {
namespace {

double doublings(std::uint64_t a, std::uint64_t b) noexcept {
  const auto size = [](std::uint64_t value) {
    return static_cast<double>(std::max<std::uint64_t>(value, 1));
  };
  return std::log2(size(a) / size(b));
}

// How unlike two tiles are: what they load for each product, and how large they are. Tiles that are
// alike in that differ by which way they lie.
double unlikeness(const Config& a, const Config& b) {
  constexpr double lying_otherwise = 0.01;
  return std::abs(std::log2(perimeter(a) / perimeter(b))) +
         lying_otherwise * std::abs(std::log2(static_cast<double>(a.tile_m) / b.tile_m)) +
         std::abs(std::log2(static_cast<double>(a.tile_k) / b.tile_k)) +
         std::abs(std::log2(static_cast<double>(invocations(a)) / invocations(b))) +
         (a.main_loop() != b.main_loop() ? 1.0 : 0.0);
}

}  // namespace

double shape_distance(const TunedProblem& a, const TunedProblem& b) noexcept {
  if (a.input_type != b.input_type || a.f32_arithmetic != b.f32_arithmetic ||
      a.a_layout != b.a_layout || a.b_layout != b.b_layout || a.aligned != b.aligned ||
      a.packed != b.packed || a.family != b.family) {
    return std::numeric_limits<double>::infinity();
  }
  // Rates of converted operands, of sums and of rows by index are near those of others, and were
  // not measured.
  constexpr double otherwise = 0.05;
  const double converted = a.converted != b.converted ? otherwise : 0.0;
  const double summed = a.summed != b.summed ? otherwise : 0.0;
  const double indexed = a.indexed != b.indexed ? otherwise : 0.0;
  const double m = doublings(a.m, b.m);
  const double n = doublings(a.n, b.n);
  const double k = doublings(a.k, b.k);
  const double count = doublings(a.count, b.count);
  return std::sqrt(m * m + n * n + k * k + count * count + converted * converted + summed * summed +
                   indexed * indexed);
}

ResolvedProblem with_shape_of(const ResolvedProblem& problem, const TunedProblem& shape) {
  ResolvedProblem p = problem;
  p.m = shape.m;
  p.n = p.gated ? std::max<std::uint64_t>(shape.n / 2, 1) : shape.n;
  p.k = shape.k;
  p.summed = 1;
  if (!p.is_grouped(GroupAlong::m)) p.batch = shape.count;
  if (p.grouping) {
    p.grouping->groups = static_cast<std::uint32_t>(std::min<std::uint64_t>(shape.count, 65535));
    (p.grouping->along == GroupAlong::m ? p.m : p.k) *= p.grouping->groups;
  }
  const auto resize = [](ResolvedMatrix& matrix, std::uint64_t rows, std::uint64_t cols) {
    matrix.rows = rows;
    matrix.cols = cols;
  };
  const auto converted_there = static_cast<unsigned>(shape.converted);
  if ((converted_there & 1) == 0 && p.converts(p.a)) p.a.type = p.input_type();
  if ((converted_there & 2) == 0 && p.converts(p.b)) p.b.type = p.input_type();
  const auto padded = [](const ResolvedMatrix& matrix, std::uint64_t size, std::uint64_t unit) {
    return matrix.is_packed() ? rounded_up(size, unit) : size;
  };
  resize(p.a, padded(p.a, p.m, packed_width), padded(p.a, p.k, packed_depth));
  resize(p.b, p.b.is_packed() ? padded_depth(p.b.quantisation, p.k) : p.k,
         padded(p.b, p.b.halves_apart ? p.n : p.b_columns(), packed_width));
  for (ResolvedMatrix* matrix : {&p.c, &p.d}) resize(*matrix, p.m, p.n);
  resize(p.aux, p.m, p.product_n());
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (p.epilogue.tensors[i] == TensorShape::matrix) resize(p.tensors[i], p.m, p.n);
  }
  return p;
}

std::optional<Nearest> nearest_shape(const TuningTable& table, const ResolvedProblem& problem,
                                     const std::function<bool(const Config&)>& usable) {
  if (table.tuned.empty()) return std::nullopt;
  const TunedProblem wanted = tuned_problem(problem);
  std::optional<Nearest> best;
  for (const TunedShape& shape : table.tuned) {
    const double distance = shape_distance(shape.problem, wanted);
    if (!(distance < nearest_reach)) continue;
    const auto same_epilogue = [&](const TunedShape& s) {
      return s.problem.has_epilogue_of(wanted);
    };
    const bool nearer =
        !best || distance < best->distance ||
        (distance == best->distance && same_epilogue(shape) && !same_epilogue(*best->shape));
    if (nearer && usable(shape.row.config)) best = Nearest{&shape, distance, &table};
  }
  return best;
}

bool Opinion::objects() const noexcept {
  const double error = best_there > 0.0 ? std::max(there / best_there, 1.0) : 1.0;
  // A figure that is none objects to nothing.
  return here > nearest_tolerance * error * best_here;
}

double Opinion::best_there_below() const noexcept {
  constexpr double rounded_up = 1.0 + 1e-9;
  if (!std::isfinite(here)) return here;
  return rounded_up * nearest_tolerance * best_here * there / here;
}

bool is_usable(const Config& config, const ResolvedProblem& problem, const Target& target) {
  const SplitK& split = problem.split_k;
  if (split.slices != 0 && config.slices != split.slices) return false;
  if (config.slices > 1 && split.reduction_mode && config.reduction_mode != *split.reduction_mode)
    return false;
  return is_legal(config, problem, target) &&
         fits_workspace(config, Computation(problem, config).chunk(), target.caps.limits);
}

std::optional<double> similar_rate(const TuningTable& table, const Config& config,
                                   const ResolvedProblem& problem) {
  const Computation computation(problem, config);
  const MainLoop kin = descriptor(config).kin;
  const TuningRow* similar = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const TuningRow& row : table.rows) {
    // The row may be of any size: only the rate is wanted.
    if (descriptor(row.config).kin != kin || !row.matches_kind(*computation.chunk())) continue;
    const double difference = unlikeness(row.config, config);
    if (difference >= least) continue;
    least = difference;
    similar = &row;
  }
  if (similar == nullptr) return std::nullopt;
  const double gain = perimeter(similar->config) / perimeter(config);
  return similar->rate * std::clamp(gain, 0.1, 1.25);
}

}  // namespace vkgemm
