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

// The load of one k-tile, in kilobytes that it keeps busy: lines shorter than a cache line cost a
// whole one. In place of those beyond the matrix others are loaded once more.
double k_tile_kilobytes(const Config& c, const ResolvedProblem& problem) {
  const double size = problem.a.element_bytes();
  // K is the inner direction of lines, or the other one.
  const auto bytes = [&](double outer, bool k_inner) {
    const double lines = k_inner ? outer : c.tile_k;
    const double length = k_inner ? c.tile_k : outer;
    return lines * std::max(length * size, cache_line_bytes);
  };
  return (bytes(c.tile_m, problem.a.layout == Layout::row_major) +
          bytes(c.tile_n, problem.b.layout == Layout::col_major)) /
         kilobyte;
}

// The elements of a k-tile that are loaded one by one, for each step of K: those beyond the matrix,
// too, because others are loaded in their place.
double single_elements(const Config& c, const ResolvedProblem& problem) {
  return (problem.a_allows_vectors() ? 0.0 : c.tile_m) +
         (problem.b_allows_vectors() ? 0.0 : c.tile_n);
}

// The factor of a problem whose A, B or both are loaded so.
double factor(const SingleLoads& loads, const ResolvedProblem& problem) {
  const double of_a = problem.a_allows_vectors() ? 1.0 : loads.a;
  if (problem.b_allows_vectors()) return of_a;
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

// The matrices that steps read and write beside C, D and aux.
struct StepMatrices {
  std::size_t read = 0;
  std::size_t stored = 0;
};

StepMatrices step_matrices(const ResolvedProblem& problem) {
  StepMatrices out;
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (problem.epilogue.tensors[i] != TensorShape::matrix) continue;
    ++(is_stored(problem.epilogue, i) ? out.stored : out.read);
  }
  return out;
}

// Microseconds more where elements of D, C and aux come and go one by one: not those of slices, and
// of values between two passes, which are padded.
double single_time(const Config& c, const TimingModel& timing, const ResolvedProblem& problem) {
  const LoopDescriptor& loop = descriptor(c);
  const bool d = !allows_epilogue_vectors(problem.d);
  const bool beside = d || !loop.stores_x4;  // C and aux
  if (!beside || c.rows == RowStrategy::two_pass) return 0.0;
  const auto [values, columns] = stored(c, problem);
  const StepMatrices tensors = step_matrices(problem);
  // Subgroups that wait for no other store the parts of rows that they have.
  const double part = loop.takes_fragments() ? std::min<double>(loop.part(c).n, columns) : columns;
  const double stores = (d ? 1.0 + row_ends / part : 0.0) + (problem.has_aux() ? 1.0 : 0.0) +
                        static_cast<double>(tensors.stored);
  const double loads = (problem.has_c() ? 1.0 : 0.0) + static_cast<double>(tensors.read);
  return values * (stores / timing.single_stores + loads / timing.single_loads);
}

// The time of the problem's parts beside the product.
double part_costs(const Config& config, const ResolvedProblem& problem, const TimingModel& timing,
                  const ProductCost& product) {
  double sum = 0.0;
  for (const Part* part : parts()) {
    if (part->cost != nullptr) sum += part->cost(config, problem, timing, product);
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
                           const ResolvedProblem& problem, const DeviceCaps& caps) {
  const double elements = problem.a.element_bytes() / kilobyte;
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.product_n());
  const auto k = static_cast<double>(problem.typical_k());
  const auto batch = static_cast<double>(problem.batch);
  const LoopCost& cost = descriptor(c).cost;
  const bool vectors = problem.a_allows_vectors() && problem.b_allows_vectors();
  // Single elements of columns that don't exist are no bytes from memory.
  const double columns =
      cost.bound_by_memory && !vectors ? std::min<double>(c.tile_n, n) : c.tile_n;
  const double area = c.tile_m * columns;
  Estimate::Shape s{};
  s.bound_by_memory = cost.bound_by_memory;
  s.units = compute_units(caps);
  s.resident = workgroups_that_fit(c, timing, problem, caps);
  s.tiles = static_cast<double>(tile_count(c, problem)) * batch;
  double matrices_b = matrices(problem.b, problem);
  if (problem.is_grouped(GroupAlong::m)) {
    // As if all groups that hold anything were of one size.
    const double groups = std::min<double>(problem.grouping->groups, m);
    const double rows = std::ceil(static_cast<double>(problem.typical_m()) / c.tile_m);
    s.tiles = groups * rows * std::ceil(static_cast<double>(problem.n) / d_tile_n(c, problem));
    matrices_b = problem.grouping->b == GroupedB::per_group ? groups : 1.0;
    const double slots = static_cast<double>(tile_count(c, problem));
    s.idle = std::max(slots - s.tiles, 0.0) / (s.units * s.resident) * idle_time;
  }
  const auto at_once = descriptor(c).k_tiles_at_once;
  const double depth = c.tile_k * (at_once != nullptr ? at_once(c) : 1.0);
  s.k_tiles = std::ceil(k / depth);
  const double slower = (vectors ? 1.0 : cost.misaligned) * factor(cost.single_products, problem) *
                        (problem.a.is_packed() ? 1.0 : cost.a_in_rows);
  const double products = problem.input->products;
  s.k_tile_work = 2.0 * area * depth * products * slower * timing.compute_units / (rate * 1e6);
  const double waits =
      (cost.latency != nullptr ? timing.*cost.latency : 1.0) * factor(cost.single_latency, problem);
  s.latency = waits * timing.latency;
  s.first_latency = waits * timing.first_latency;
  // The epilogue takes one value after the other; skinny's few are in the rate.
  const double values = cost.bound_by_memory ? 0.0 : accumulator_count(c);
  const StepMatrices tensors = step_matrices(problem);
  const double matrices_d = 1.0 + (problem.has_c() ? 1.0 : 0.0) + (problem.has_aux() ? 1.0 : 0.0) +
                            static_cast<double>(tensors.read + tensors.stored);
  s.tile = timing.tile * cost.tile + timing.tile_values * values * matrices_d;
  s.lone = std::clamp(busy_invocations / invocations(c), 1.0, 2.0);
  s.k_tile_load = k_tile_kilobytes(c, problem) * depth / c.tile_k / timing.load;
  if (!cost.bound_by_memory) {
    s.k_tile_load += single_elements(c, problem) * depth / timing.single_loads;
  }
  s.store = stored(c, problem).values * sizeof(float) / kilobyte / timing.store;
  s.single = single_time(c, timing, problem);
  const double bits_b = problem.b.element_bits();
  const double operands =
      k * (m * matrices(problem.a, problem) * elements + n * matrices_b * bits_b / 8.0 / kilobyte);
  s.memory = (operands + result_kilobytes(problem)) / timing.memory;
  s.results = 2.0 * m * n * batch * sizeof(float) / kilobyte / timing.workspace;
  return s;
}

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

Estimate::Estimate(const Computation& computation, double rate, const TimingModel& timing,
                   const DeviceCaps& caps)
    : config_(computation.config()),
      timing_(timing),
      problem_(computation.asked()),
      cpu_(is_cpu(caps)),
      shape_(make_shape(config_, rate, timing, *computation.whole(), caps)) {}

double Estimate::microseconds(std::uint32_t slices) const {
  const double product = estimate(shape_, slices, timing_, cpu_);
  Config config = config_;
  config.slices = slices;
  return product +
         part_costs(config, problem_, timing_, {product, rounds(shape_), shape_.resident});
}

bool Estimate::has_use_for(std::uint32_t slices) const {
  const Shape& s = shape_;
  return slices <= s.k_tiles && s.tiles * slices <= 2.0 * s.units * std::max(s.resident, 2.0);
}

double estimate_cost(const Config& config, double rate, const TimingModel& timing,
                     const ResolvedProblem& problem, const DeviceCaps& caps) {
  return Estimate(Computation(problem, config), rate, timing, caps).microseconds(config.slices);
}

}  // namespace vkgemm
