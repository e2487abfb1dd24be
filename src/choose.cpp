// choose.cpp: which of the legal configurations to prefer.
//
// The model: every compute unit gets its share of the tiles and computes as many at a time as fit.
// A tile takes a fixed time and, for each slab of K, the longer of two: the products, at the row's
// rate and shared with the tiles beside it, or what it takes until a slab that was asked for has
// come. Large shapes are bound by the first, small and thin ones by the second, and for them
// split-K pays: more slices are more slabs on their way at once.
#include "choose.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "choose_rows.hpp"
#include "dispatch_limit.hpp"
#include "kernel.hpp"
#include "legality.hpp"
#include "pack.hpp"
#include "residency.hpp"
#include "text.hpp"

namespace vkgemm {
namespace {

// nv without promised alignment: on the H200 (driver 580.159.04, 2026-11-20) 73 TFLOP/s instead of
// 185 to 235, because the compiler then loads element by element.
constexpr double nv_misaligned_penalty = 3.0;
// khr stages element by element then. Less than nv: loads from shared memory stay wide. Fitted with
// nvidia_sm90's timing. Large shapes lose more, 136 TFLOP/s at 4097x4095x4093 against 303 at
// 4096x4096x4096 (H200, driver 580.159.04, 2026-11-21), but those are packed instead.
constexpr double khr_misaligned_penalty = 2.05;

// A tile of nv takes so many times as long as one of khr, besides its products. Fitted likewise.
constexpr double nv_tile = 1.25;

// The kernel for few rows then loads single elements, of which eight times as many are on their
// way. Derived, not timed.
constexpr double thin_misaligned_penalty = 3.0;

// Slices that choose() considers, and how much less time anything must take to be worth a
// workspace.
constexpr std::uint32_t slice_counts[] = {2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr double worth_a_workspace = 0.97;

// m·n·k from which packing is considered: below, one more dispatch is a good part of the whole.
constexpr double fewest_products_to_pack = 0x1p30;

constexpr double kilobyte = 1024.0;
constexpr double cache_line_bytes = 128.0;

// What keeps a compute unit busy: with less the same tile takes longer (H200, driver 580.159.04:
// khr 128x128x32 176 TFLOP/s with one workgroup of 128 resident instead of two). Fitted with
// nvidia_sm90's timing.
constexpr double busy_invocations = 200.0;

bool is_cpu(const DeviceCaps& caps) { return caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU; }

double misaligned_penalty(Path path, bool thin, const ResolvedProblem& problem) {
  if (problem.a_allows_vectors() && problem.b_allows_vectors()) return 1.0;
  switch (path) {
    case Path::nv:
      return nv_misaligned_penalty;
    case Path::khr:
      return khr_misaligned_penalty;
    case Path::fma:
      return thin ? thin_misaligned_penalty : 1.0;  // else bound by arithmetic
  }
  return 1.0;
}

// Of one slab, in kilobytes that its loads keep busy: lines shorter than a cache line cost a whole
// one, those beyond the matrix nothing.
double slab_kilobytes(const Config& c, const ResolvedProblem& problem) {
  const double size = size_in_bytes(problem.a.type);
  // K is the inner direction of lines, or the other one.
  const auto bytes = [&](double outer, bool k_inner) {
    const double lines = k_inner ? outer : c.tile_k;
    const double length = k_inner ? c.tile_k : outer;
    return lines * std::max(length * size, cache_line_bytes);
  };
  const double rows = std::min<double>(c.tile_m, static_cast<double>(problem.typical_m()));
  const double columns = std::min<double>(c.tile_n, static_cast<double>(problem.product_n()));
  return (bytes(rows, problem.a.layout == Layout::row_major) +
          bytes(columns, problem.b.layout == Layout::col_major)) /
         kilobyte;
}

// Copies run beside each other, then comes a barrier.
double pack_cost(const ResolvedProblem& seen, const Config& config, const TimingModel& timing) {
  if (!config.pack_a && !config.pack_b) return 0.0;
  const auto bytes = static_cast<double>(workspace_layout(config, seen).partial);
  return timing.sum + 2.0 * bytes / kilobyte / timing.copy;
}

// Of a batch, which may be one matrix for all.
double matrices(const ResolvedMatrix& matrix, const ResolvedProblem& problem) {
  const bool shared = matrix.batch_stride == 0 && !problem.grouping;
  return shared ? 1.0 : static_cast<double>(problem.batch);
}

// Of D and of what the epilogue reads and writes beside it. Less than what is read first: much of
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

// What a configuration and its problem come to, but for the slices: worked out once a row.
struct Shape {
  bool thin;
  double units, tiles, slabs, resident;
  double slab_work;  // microseconds of products, alone on a compute unit
  double slab_load;  // and of loads
  double latency, first_latency;
  double tile;     // of one tile, whatever it computes
  double lone;     // how much longer a tile takes by itself than its share says
  double store;    // of one tile's results
  double memory;   // microseconds for reading operands and writing results once
  double results;  // of a slice's partial results
};

Shape make_shape(const Config& c, double rate, const TimingModel& timing,
                 const ResolvedProblem& problem, const DeviceCaps& caps) {
  const double elements = size_in_bytes(problem.a.type) / kilobyte;
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.product_n());
  const auto k = static_cast<double>(problem.typical_k());
  const auto batch = static_cast<double>(problem.batch);
  const double area = static_cast<double>(c.tile_m) * c.tile_n;
  Shape s{};
  s.thin = is_thin(c);
  s.units = compute_units(caps);
  s.tiles = static_cast<double>(tile_count(c, problem)) * batch;
  double matrices_b = matrices(problem.b, problem);
  if (problem.is_grouped(GroupAlong::m)) {
    // As if all groups that hold anything were of one size.
    const double groups = std::min<double>(problem.grouping->groups, m);
    const double rows = std::ceil(static_cast<double>(problem.typical_m()) / c.tile_m);
    s.tiles = groups * rows * std::ceil(static_cast<double>(problem.n) / d_tile_n(c, problem));
    matrices_b = problem.grouping->b == GroupedB::per_group ? groups : 1.0;
  }
  s.slabs = std::ceil(k / c.tile_k);
  s.resident = workgroups_that_fit(c, timing, problem, caps);
  s.slab_work = 2.0 * area * c.tile_k * misaligned_penalty(c.path, s.thin, problem) *
                timing.compute_units / (rate * 1e6);
  const double waits = c.stages > 1 ? timing.ring_latency : 1.0;
  s.latency = waits * timing.latency;
  s.first_latency = waits * timing.first_latency;
  s.tile = timing.tile * (c.path == Path::nv ? nv_tile : 1.0);
  s.lone = std::clamp(busy_invocations / c.invocations, 1.0, 2.0);
  s.slab_load = slab_kilobytes(c, problem) / timing.load;
  const double stored = static_cast<double>(c.tile_m) * d_tile_n(c, problem);
  s.store = stored * sizeof(float) / kilobyte / timing.store;
  const double operands = k * (m * matrices(problem.a, problem) + n * matrices_b) * elements;
  s.memory = (operands + result_kilobytes(problem)) / timing.memory;
  s.results = 2.0 * m * n * batch * sizeof(float) / kilobyte / timing.workspace;
  return s;
}

// Of as many tiles as are resident.
double rounds(const Shape& s) { return std::max(std::ceil(s.tiles / s.units / s.resident), 1.0); }

// The kernel for few rows is bound by memory, which its workgroups share evenly; half of the
// compute units are enough to keep it busy.
double estimate_thin(const Shape& s, std::uint32_t slices, const TimingModel& timing) {
  const double share = std::max(s.tiles * slices / s.units, 0.5);
  const double slabs = std::ceil(s.slabs / slices);
  const double wait = s.latency + s.first_latency + s.slab_load;
  return timing.launch + together(s.tile + slabs * std::max(share * s.slab_work, wait), s.memory);
}

double estimate(const Shape& s, std::uint32_t slices, const TimingModel& timing, bool cpu) {
  const double share = std::ceil(s.tiles * slices / s.units);  // workgroups of a compute unit
  const double slabs = std::ceil(s.slabs / slices);
  if (cpu) return share * (slabs * s.slab_work + s.store);
  // The sum loads so many slices at once, and waits for them, again and again.
  const double sum_turns = std::ceil(static_cast<double>(slices) / SUM_UNROLL);
  const double sum =
      slices > 1 ? timing.sum + slices * s.results + (sum_turns - 1.0) * timing.latency : 0.0;
  if (s.thin) return estimate_thin(s, slices, timing) + sum;
  const double latency = s.latency + s.first_latency / share;
  const double busy = s.resident * s.slab_work;  // what the rate says, with all tiles that fit
  const auto round = [&](double workgroups) {    // of that many at a time
    double work = workgroups * s.slab_work;
    double wait = latency + workgroups * s.slab_load;
    // The rate was measured in many rounds, whose tiles hide each other's latency.
    if (share >= 2.0 * s.resident) {
      wait = std::min(wait, busy);
    } else {
      work = std::max(work, s.lone * s.slab_work);
    }
    return s.tile + workgroups * s.store + slabs * std::max(work, wait);
  };
  const double rounds = std::floor(share / s.resident);
  const double rest = share - rounds * s.resident;
  const double time = rounds * round(s.resident) + (rest > 0.0 ? round(rest) : 0.0);
  return together(time, s.memory) + timing.launch + sum;
}

// In so many slices, added by whom the caller says or, if he doesn't, by a second dispatch.
Config with_slices(Config config, std::uint32_t slices, const ResolvedProblem& problem) {
  config.slices = slices;
  if (slices > 1) config.tier = problem.split_k.tier.value_or(SplitTier::two_dispatches);
  return config;
}

// Adds the configuration, and if slices of K are estimated to be better the same with these; or
// with as many as the caller wants.
void score(const TuningRow& row, const RowVariant& variant, const TimingModel& timing,
           const ResolvedProblem& original, const DeviceCaps& caps, std::vector<ScoredRow>& out) {
  const Config& config = variant.config;
  const ResolvedProblem problem = packed(original, config);
  const auto fits = [&](const Config& c) {
    return workspace_layout(c, problem).bytes <= original.max_workspace_bytes;
  };
  if (!fits(config)) return;
  const Shape shape = make_shape(config, row.rate * variant.rate_factor, timing, problem, caps);
  const double copies = pack_cost(problem, config, timing);
  const auto cost = [&](std::uint32_t slices) {
    const double product = estimate(shape, slices, timing, is_cpu(caps));
    return copies + product +
           row_cost(config, original, timing, product, rounds(shape), shape.resident);
  };
  const double plain = cost(config.slices);
  // A table's figures may be of any size.
  if (!std::isfinite(plain)) return;
  ScoredRow best{.row = &row, .config = config, .cost = plain, .unsplit_cost = plain};
  if (const std::uint32_t wanted = original.split_k.slices; wanted != 0) {
    best.config = with_slices(config, wanted, original);
    best.cost = cost(wanted);
    if (std::isfinite(best.cost) && fits(best.config) && is_legal(best.config, original, caps) &&
        !exceeds_dispatch_limit(best.config, best.cost, original)) {
      out.push_back(best);
    }
    return;
  }
  if (!exceeds_dispatch_limit(config, plain, original)) out.push_back(best);
  const bool whole = original.rows && config.rows != RowStrategy::two_pass;
  if (config.slices > 1 || is_cpu(caps) || original.grouping || whole) return;
  for (const std::uint32_t slices : slice_counts) {
    // More than fit at once, or than there are slabs, are of no use.
    if (slices > shape.slabs ||
        shape.tiles * slices > 2.0 * shape.units * std::max(shape.resident, 2.0)) {
      break;
    }
    const Config split = with_slices(config, slices, original);
    if (!fits(split)) break;
    const double time = cost(slices);
    // Not below: a figure that is none is not chosen, either.
    if (!(time < best.cost && time < worth_a_workspace * plain)) continue;
    if (!is_legal(split, original, caps) || exceeds_dispatch_limit(split, time, original)) continue;
    best.config = split;
    best.cost = time;
  }
  if (best.config.slices > 1) out.push_back(best);
}

// Which operands might be worth packing: those that the kernels load badly, of large products.
std::vector<Config> pack_options(const ResolvedProblem& problem, const DeviceCaps& caps) {
  const bool a = problem.a.layout == Layout::row_major || !problem.a.allows_vectors(16);
  const bool b = problem.b.layout == Layout::col_major || !problem.b.allows_vectors(16);
  std::vector<Config> options;
  if (is_cpu(caps) || problem.max_workspace_bytes == 0 || problem.k == 0 || problem.grouping ||
      size_in_bytes(problem.a.type) != 2) {
    return options;
  }
  const double products = static_cast<double>(problem.m) *
                          static_cast<double>(problem.product_n()) *
                          static_cast<double>(problem.k) * static_cast<double>(problem.batch);
  if (products < fewest_products_to_pack) return options;
  if (a) options.push_back({.pack_a = true});
  if (problem.gated) return options;  // B is not packed
  if (b) options.push_back({.pack_b = true});
  if (a && b) options.push_back({.pack_a = true, .pack_b = true});
  return options;
}

}  // namespace

double estimate_cost(const Config& config, double rate, const TimingModel& timing,
                     const ResolvedProblem& problem, const DeviceCaps& caps) {
  const ResolvedProblem seen = packed(problem, config);
  const Shape shape = make_shape(config, rate, timing, seen, caps);
  const double product = estimate(shape, config.slices, timing, is_cpu(caps));
  return pack_cost(seen, config, timing) + product +
         row_cost(config, problem, timing, product, rounds(shape), shape.resident);
}

std::vector<ScoredRow> rank(const TuningTable& table, const ResolvedProblem& problem,
                            const DeviceCaps& caps) {
  std::vector<ScoredRow> out;
  const auto consider = [&](const TuningRow& row, const Config& config) {
    // Variants have as many accumulators: they are as bad.
    if (why_refused(table, row.config, problem, caps.architecture)) return;
    for (const RowVariant& variant : row_variants(config, problem, caps)) {
      if (!is_legal(variant.config, problem, caps) ||
          why_refused(table, variant.config, problem, caps.architecture)) {
        continue;
      }
      score(row, variant, table.timing, problem, caps, out);
    }
  };
  for (const TuningRow& row : table.rows) {
    if (row.matches(problem)) consider(row, row.config);
  }
  double best_plain = std::numeric_limits<double>::infinity();
  for (const ScoredRow& scored : out) best_plain = std::min(best_plain, scored.cost);
  const std::size_t plain = out.size();
  for (const Config& option : pack_options(problem, caps)) {
    for (const TuningRow& row : table.rows) {
      Config config = row.config;
      config.pack_a = option.pack_a;
      config.pack_b = option.pack_b;
      if (row.config.path != Path::fma && row.matches(packed(problem, config))) {
        consider(row, config);
      }
    }
  }
  const auto not_worth_it = [&](const ScoredRow& scored) {
    return scored.cost >= worth_a_workspace * best_plain;
  };
  const auto first_packed = out.begin() + static_cast<std::ptrdiff_t>(plain);
  out.erase(std::remove_if(first_packed, out.end(), not_worth_it), out.end());
  std::ranges::stable_sort(out, {}, &ScoredRow::cost);
  return out;
}

std::string microseconds(double time) { return concat(std::round(time * 10.0) / 10.0, " us"); }

std::string to_string(const ScoredRow& scored) {
  return concat(to_string(scored.config), ", estimated ", microseconds(scored.cost), ", rate ",
                scored.row->rate, ", ", scored.row->provenance);
}

std::string why_nothing_is_legal(const TuningTable& table, const ResolvedProblem& problem,
                                 const DeviceCaps& caps) {
  std::string out;
  for (const TuningRow& row : table.rows) {
    if (!row.matches(problem)) continue;
    Config config =
        with_slices(row.config, std::max(problem.split_k.slices, row.config.slices), problem);
    if (problem.rows) config.rows = RowStrategy::two_pass;  // what others can, it can
    auto reason = why_illegal(config, problem, caps);
    if (!reason) reason = why_refused(table, row.config, problem, caps.architecture);
    const std::uint64_t bytes = reason ? 0 : workspace_layout(config, problem).bytes;
    if (bytes > problem.max_workspace_bytes) {
      reason = concat("wants a workspace of ", bytes, " bytes, max_workspace_bytes is ",
                      problem.max_workspace_bytes);
    }
    if (!reason) {
      const double time = estimate_cost(config, row.rate, table.timing, problem, caps);
      if (exceeds_dispatch_limit(config, time, problem)) {
        reason = concat("its one dispatch would take ", microseconds(time),
                        " by the estimate, max_dispatch_ms is ", problem.max_dispatch_us / 1000.0);
      }
    }
    if (!reason) continue;
    if (!out.empty()) out += '\n';
    out += concat(to_string(row.config), ": ", *reason);
  }
  if (out.empty()) {
    out = concat("no row of tuning table ", in_quotes(table.architecture), " matches the problem");
  }
  return out;
}

}  // namespace vkgemm
