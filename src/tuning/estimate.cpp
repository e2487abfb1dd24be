// estimate.cpp: the model.
//
// Every compute unit gets its share of the tiles and computes as many at a time as fit.
// A tile takes a fixed time and, for each k-tile of K, the longer of two: the products, at the
// row's rate and shared with the tiles beside it, or what it takes until a k-tile that was asked
// for has come. Large shapes are bound by the first, small and skinny ones by the second, and for
// them split-K pays: more slices are more k-tiles on their way at once.
#include "tuning/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "device/caps.hpp"
#include "kernels/computation.hpp"
#include "kernels/epilogue.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/occupancy.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/parts/split_k.hpp"
#include "kernels/tiling.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/inputs/codes.hpp"
#include "problem/inputs/input.hpp"

namespace vkgemm {
namespace {

constexpr double cache_line_bytes = 128.0;

// The invocations that keep a compute unit busy: with less the same tile takes longer (H200, driver
// 580.159.04: khr 128x128x32 176 TFLOP/s with one workgroup of 128 resident instead of two). Fitted
// with nvidia_sm90's timing.
constexpr double busy_invocations = 200.0;

// Where elements are stored one by one, the ends of a row's part cost as much as so many more.
// Fitted with nvidia_sm90's timing.
constexpr double row_ends = 32.0;

// Microseconds of a workgroup that finds no group for its tile: as many at a time as are resident.
// Fitted with nvidia_sm90's timing.
constexpr double idle_time = 0.73;

// Elements that a compute unit converts in a microsecond, in ratio to those that it loads one by
// one. Fitted to 512x4096x4096 f32 x f16 by khr 128x256x32: 72 us without conversions, 98 with them
// (H200, driver 580.159.04).
constexpr double converted_in_ratio = 0.5;

// Bounds allow for the rounding of the model's sums.
constexpr double rounded_down = 1.0 - 1e-9;

// The load of one k-tile, in kilobytes that it keeps busy: lines shorter than a cache line cost a
// whole one. In place of those beyond the matrix others are loaded once more.
double k_tile_kilobytes(const Config& c, const ResolvedProblem& problem) {
  // K is the inner direction of lines, or the other one.
  const auto bytes = [&](double outer, bool k_inner, double size) {
    const double lines = k_inner ? outer : c.tile_k;
    const double length = k_inner ? c.tile_k : outer;
    return lines * std::max(length * size, cache_line_bytes);
  };
  return (bytes(c.tile_m, problem.a.layout == Layout::row_major, problem.a.element_bytes()) +
          bytes(c.tile_n, problem.b.layout == Layout::col_major, problem.b.element_bytes())) /
         kilobyte;
}

// The elements of a k-tile that are loaded one by one, for each step of K: those beyond the matrix,
// too, because others are loaded in their place.
double single_elements(const Config& c, const ProblemFigures& figures) {
  return (figures.a_vectors ? 0.0 : c.tile_m) + (figures.b_vectors ? 0.0 : c.tile_n);
}

// Microseconds of the conversions of a k-tile's elements, for each step of K.
double conversion_time(const Config& c, const TimingModel& timing, const ResolvedProblem& problem) {
  const double elements = (problem.converts(problem.a) ? c.tile_m : 0.0) +
                          (problem.converts(problem.b) ? c.tile_n : 0.0);
  return elements / (converted_in_ratio * timing.single_loads);
}

// The factor of a problem whose A, B or both are loaded so.
double factor(const SingleLoads& loads, const ResolvedProblem& problem,
              const ProblemFigures& figures) {
  const double of_a = figures.a_vectors ? 1.0 : loads.a;
  if (figures.b_vectors) return of_a;
  const bool in_columns = problem.b.layout == Layout::col_major;
  return of_a * (in_columns ? loads.b_in_columns : loads.b_in_rows);
}

// A tile stores the values of it that exist, in rows of so many.
struct Stored {
  double values = 0.0;
  double columns = 0.0;
};
Stored stored(const Config& c, const ResolvedProblem& problem) {
  const double rows = std::min<double>(c.tile_m, static_cast<double>(problem.typical_m()));
  const double columns = std::min<double>(d_tile_n(c, problem), static_cast<double>(problem.n));
  return {rows * columns, columns};
}

// Microseconds more where elements of D, C and aux come and go one by one: not those of slices, and
// of values between two passes, which are padded.
double single_time(const Config& c, const TimingModel& timing, const ResolvedProblem& problem,
                   const ProblemFigures& figures) {
  const LoopDescriptor& loop = descriptor(c);
  const bool d = !allows_epilogue_vectors(problem.d);
  const bool beside = d || !loop.stores_x4;  // C and aux
  if (!beside || c.rows == RowStrategy::two_pass) return 0.0;
  const auto [values, columns] = stored(c, problem);
  // Subgroups that wait for no other store the parts of rows that they have.
  const double part = loop.takes_fragments() ? std::min<double>(loop.part(c).n, columns) : columns;
  const double stores =
      (d ? 1.0 + row_ends / part : 0.0) + (problem.has_aux() ? 1.0 : 0.0) + figures.step_stores;
  const double loads = (problem.has_c() ? 1.0 : 0.0) + figures.step_loads;
  return values * (stores / timing.single_stores + loads / timing.single_loads);
}

// The time of the problem's parts beside the product.
double part_costs(const Config& config, const Computation& computation, const TimingModel& timing,
                  const ProductCost& product) {
  double sum = 0.0;
  for (const Part* part : parts()) {
    if (part->cost != nullptr) sum += part->cost(config, computation, timing, product);
  }
  return sum;
}

// The matrices of a batch; one may serve all.
double matrices(const ResolvedMatrix& matrix, const ResolvedProblem& problem) {
  const bool shared = matrix.batch_stride == 0 && !problem.grouping;
  return shared ? 1.0 : static_cast<double>(problem.batch);
}

// D, and what the epilogue reads and writes beside it. Less than what is read first: much of
// it stays in the cache (fitted with nvidia_sm90's timing).
double result_kilobytes(const ResolvedProblem& problem) {
  constexpr double not_cached = 0.7;
  const auto bytes = [&](const ResolvedMatrix& matrix, std::uint64_t columns) {
    return static_cast<double>(problem.m) * static_cast<double>(columns) *
           matrices(matrix, problem) * size_in_bytes(matrix.type);
  };
  double sum = 0.0;
  if (problem.has_d()) sum += bytes(problem.d, problem.n);
  if (problem.has_c()) sum += bytes(problem.c, problem.n);
  if (problem.has_aux()) sum += bytes(problem.aux, problem.product_n());
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (problem.epilogue.tensors[i] == TensorShape::matrix)
      sum += bytes(problem.tensors[i], problem.n);
  }
  return not_cached * sum / kilobyte;
}

// Two things at a time take as long as the longer one, and a little longer if both are long: the
// fourth root of the sum of their fourth powers.
double together(double a, double b) {
  const double longer = std::max(a, b);
  if (!(longer > 0.0) || !std::isfinite(longer)) return longer;
  const double ratio = std::min(a, b) / longer;
  return longer * std::sqrt(std::sqrt(1.0 + ratio * ratio * ratio * ratio));
}

Estimate::Shape make_shape(const Config& c, double rate, const TimingModel& timing,
                           const ResolvedProblem& problem, const ProblemFigures& figures,
                           double units, const DeviceCaps& caps) {
  const LoopCost& cost = descriptor(c).cost;
  const bool vectors = figures.a_vectors && figures.b_vectors;
  // Single elements of columns that don't exist are no bytes from memory.
  const double columns =
      cost.bound_by_memory && !vectors ? std::min<double>(c.tile_n, figures.n) : c.tile_n;
  const double area = c.tile_m * columns;
  Estimate::Shape s{};
  s.bound_by_memory = cost.bound_by_memory;
  s.units = units;
  s.resident = workgroups_that_fit(c, timing, problem, caps);
  const double slots = static_cast<double>(tile_count(c, problem));
  s.tiles = slots * figures.batch;
  if (figures.groups_of_rows > 0.0) {
    // As if all groups that hold anything were of one size.
    const double rows = std::ceil(static_cast<double>(problem.typical_m()) / c.tile_m);
    s.tiles = figures.groups_of_rows * rows *
              std::ceil(static_cast<double>(problem.n) / d_tile_n(c, problem));
    s.idle = std::max(slots - s.tiles, 0.0) / (s.units * s.resident) * idle_time;
  }
  const auto at_once = descriptor(c).k_tiles_at_once;
  const double depth = c.tile_k * (at_once != nullptr ? at_once(c) : 1.0);
  const auto summed = static_cast<double>(problem.summed);
  s.k_tiles = summed * std::ceil(figures.k / summed / depth);
  const double slower = (vectors ? 1.0 : cost.misaligned) *
                        factor(cost.single_products, problem, figures) *
                        (problem.a.is_packed() ? 1.0 : cost.a_in_rows);
  const double products = problem.input->products;
  s.k_tile_work = 2.0 * area * depth * products * slower * timing.compute_units / (rate * 1e6);
  const double waits = (cost.latency != nullptr ? timing.*cost.latency : 1.0) *
                       factor(cost.single_latency, problem, figures);
  s.latency = waits * timing.latency;
  s.first_latency = waits * timing.first_latency;
  // The epilogue takes one value after the other; skinny's few are in the rate.
  const double values = cost.bound_by_memory ? 0.0 : accumulator_count(c);
  s.tile = timing.tile * cost.tile + timing.tile_values * values * figures.result_matrices;
  s.lone = std::clamp(busy_invocations / invocations(c), 1.0, 2.0);
  s.k_tile_load = k_tile_kilobytes(c, problem) * depth / c.tile_k / timing.load;
  if (!cost.bound_by_memory) {
    s.k_tile_work += conversion_time(c, timing, problem) * depth;
    s.k_tile_load += single_elements(c, figures) * depth / timing.single_loads;
  }
  s.store = stored(c, problem).values * sizeof(float) / kilobyte / timing.store;
  s.single = single_time(c, timing, problem, figures);
  s.memory = figures.memory;
  s.results = figures.results;
  return s;
}

std::size_t place_of(bool pack_a, bool pack_b) { return (pack_a ? 1u : 0u) + (pack_b ? 2u : 0u); }

// Rounds of as many tiles as are resident.
double rounds(const Estimate::Shape& s) {
  return std::max(std::ceil(s.tiles / s.units / s.resident), 1.0);
}

// Workgroups share the memory evenly; half of the compute units are enough to keep it busy.
double estimate_bound_by_memory(const Estimate::Shape& s, std::uint32_t slices,
                                const TimingModel& timing) {
  const double share = std::max(s.tiles * slices / s.units, 0.5);
  const double k_tiles = std::ceil(s.k_tiles / slices);
  const double wait = s.latency + s.first_latency + s.k_tile_load;
  return timing.launch + s.idle +
         together(s.tile + k_tiles * std::max(share * s.k_tile_work, wait), s.memory);
}

double estimate(const Estimate::Shape& s, std::uint32_t slices, const TimingModel& timing,
                bool cpu) {
  const double share = std::ceil(s.tiles * slices / s.units);  // workgroups of a compute unit
  const double k_tiles = std::ceil(s.k_tiles / slices);
  if (cpu) return share * (k_tiles * s.k_tile_work + s.store);
  const double sum = sum_cost(slices, s.results, timing);
  if (s.bound_by_memory) return estimate_bound_by_memory(s, slices, timing) + sum;
  const double latency = s.latency + s.first_latency / share;
  const double store = s.store + (slices == 1 ? s.single : 0.0);
  const double busy = s.resident * s.k_tile_work;  // what the rate says, with all tiles that fit
  const auto round = [&](double workgroups) {      // of that many at a time
    double work = workgroups * s.k_tile_work;
    double wait = latency + workgroups * s.k_tile_load;
    // The rate was measured in many rounds, whose tiles hide each other's latency.
    if (share >= 2.0 * s.resident) {
      wait = std::min(wait, busy);
    } else {
      work = std::max(work, s.lone * s.k_tile_work);
    }
    return s.tile + workgroups * store + k_tiles * std::max(work, wait);
  };
  const double rounds = std::floor(share / s.resident);
  const double rest = share - rounds * s.resident;
  const double time = rounds * round(s.resident) + (rest > 0.0 ? round(rest) : 0.0);
  return together(time, s.memory) + timing.launch + s.idle + sum;
}

}  // namespace

ProblemFigures::ProblemFigures(const ResolvedProblem& problem, const TimingModel& timing)
    : m(static_cast<double>(problem.m)),
      n(static_cast<double>(problem.product_n())),
      k(static_cast<double>(problem.typical_k() * problem.summed)),
      batch(static_cast<double>(problem.batch)),
      a_vectors(problem.a_allows_vectors()),
      b_vectors(problem.b_allows_vectors()) {
  double matrices_b = matrices(problem.b, problem);
  if (problem.is_grouped(GroupAlong::m)) {
    groups_of_rows = std::min<double>(problem.grouping->groups, m);
    const double most = static_cast<double>(problem.b_count());
    matrices_b = std::min(groups_of_rows, most);
  }
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (problem.epilogue.tensors[i] != TensorShape::matrix) continue;
    (is_stored(problem.epilogue, i) ? step_stores : step_loads) += 1.0;
  }
  result_matrices = 1.0 + (problem.has_c() ? 1.0 : 0.0) + (problem.has_aux() ? 1.0 : 0.0) +
                    step_loads + step_stores + problem.function_cost;
  const double elements = problem.a.element_bytes() / kilobyte;
  const double bits_b = problem.b.element_bits();
  // k counts all matrices of a sum over a batch. An operand may have one matrix for all of them.
  const auto read = [&](const ResolvedMatrix& operand) {
    return problem.summed > 1 && operand.batch_stride == 0 ? k / static_cast<double>(problem.summed)
                                                           : k;
  };
  const double rows_of_a =
      problem.gathers_rows() ? std::min(m, static_cast<double>(problem.grouping->a_rows)) : m;
  const double operands = read(problem.a) * rows_of_a * matrices(problem.a, problem) * elements +
                          read(problem.b) * n * matrices_b * bits_b / 8.0 / kilobyte;
  memory = (operands + result_kilobytes(problem)) / timing.memory;
  results = 2.0 * m * n * batch * sizeof(float) / kilobyte / timing.workspace;
}

Estimator::Estimator(const ResolvedProblem& problem, const TimingModel& timing,
                     const DeviceCaps& caps)
    : problem_(problem),
      timing_(timing),
      caps_(caps),
      figures_(problem, timing),
      units_(compute_units(caps)),
      cpu_(is_cpu(caps)),
      work_(2.0 * problem.input->products * timing.compute_units * figures_.m * figures_.n *
            figures_.k * figures_.batch / units_) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      copies_[place_of(a, b)] = least_copy_time({.pack_a = a, .pack_b = b}, problem, timing);
    }
  }
}

// Tiles have no fewer products than the matrices.
double Estimator::least(const Config& config, RowStrategy rows, double rate) const {
  const double products = work_ / (rate * 1e6);
  const double product = cpu_ ? products : std::max(products, figures_.memory) + timing_.launch;
  const double reduction = least_row_time(rows, problem_, timing_, product);
  return (product + reduction + copies_[place_of(config.pack_a, config.pack_b)]) * rounded_down;
}

Estimate::Estimate(const Estimator& estimator, const Computation& computation, double rate)
    : computation_(computation), timing_(estimator.timing_), cpu_(estimator.cpu_) {
  const ResolvedProblem& whole = *computation.whole();
  const auto shape = [&](const ProblemFigures& figures) {
    return make_shape(computation.config(), rate, timing_, whole, figures, estimator.units_,
                      estimator.caps_);
  };
  shape_ = &whole == &estimator.problem_ ? shape(estimator.figures_)
                                         : shape(ProblemFigures(whole, timing_));
}

double Estimate::microseconds(std::uint32_t slices) const {
  const double product = estimate(shape_, slices, timing_, cpu_);
  Config config = computation_.config();
  config.slices = slices;
  return product +
         part_costs(config, computation_, timing_, {product, rounds(shape_), shape_.resident});
}

// Operands are read once, and slices are added after that.
double Estimate::least(std::uint32_t slices) const {
  const double sum = sum_cost(slices, shape_.results, timing_);
  return (shape_.memory + timing_.launch + sum) * rounded_down;
}

bool Estimate::has_use_for(std::uint32_t slices) const {
  const Shape& s = shape_;
  return slices <= s.k_tiles && s.tiles * slices <= 2.0 * s.units * std::max(s.resident, 2.0);
}

double estimate_cost(const Config& config, double rate, const TimingModel& timing,
                     const ResolvedProblem& problem, const DeviceCaps& caps) {
  const Computation computation(problem, config);
  const Estimator estimator(problem, timing, caps);
  return Estimate(estimator, computation, rate).microseconds(config.slices);
}

}  // namespace vkgemm
