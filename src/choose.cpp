// choose.cpp: which of the legal configurations to prefer.
//
// The model: a device computes `units` tiles at a time, each takes its padded area times its padded
// depth, plus something for filling the pipeline and for the epilogue, divided by the row's rate.
// It knows of wave quantisation and of padding, and leaves everything else to the rates.
#include "choose.hpp"

#include <algorithm>
#include <cmath>

#include "kernel.hpp"
#include "legality.hpp"
#include "text.hpp"

namespace vkgemm {
namespace {

// What a tile costs besides its products, in steps along K: the first loads that nothing hides,
// and the epilogue. An estimate.
constexpr double overhead_k = 128.0;

// Compute units where the driver doesn't tell: few enough that large shapes are not split for
// nothing, enough that a small one is not given to a single workgroup. A CPU runs tiles one by one
// as far as this model cares.
constexpr double unknown_compute_units = 16.0;

// nv without promised alignment: on the H200 (driver 580.159.04, 2026-11-20) 73 TFLOP/s instead of
// 185 to 235, because the compiler then loads element by element.
constexpr double nv_misaligned_penalty = 3.0;
// khr stages element by element then: 136 TFLOP/s at 4097x4095x4093 against 303 at 4096x4096x4096
// (H200, driver 580.159.04, 2026-11-21). Less than nv: loads from shared memory stay wide.
constexpr double khr_misaligned_penalty = 2.2;

double compute_units(const DeviceCaps& caps) {
  if (caps.limits.compute_units != 0) return caps.limits.compute_units;
  return caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 1.0 : unknown_compute_units;
}

double misaligned_penalty(Path path, const ResolvedProblem& problem) {
  if (problem.a.allows_vectors(16) && problem.b.allows_vectors(16)) return 1.0;
  switch (path) {
    case Path::nv:
      return nv_misaligned_penalty;
    case Path::khr:
      return khr_misaligned_penalty;
    case Path::fma:
      return 1.0;  // bound by arithmetic
  }
  return 1.0;
}

}  // namespace

double estimate_cost(const TuningRow& row, const ResolvedProblem& problem, const DeviceCaps& caps) {
  const Config& c = row.config;
  const auto tiles =
      static_cast<double>(tile_count(c, problem)) * static_cast<double>(problem.batch);
  const double waves = std::ceil(tiles / compute_units(caps));
  const double steps = std::ceil(static_cast<double>(problem.k) / c.tile_k);
  const double work = static_cast<double>(c.tile_m) * c.tile_n * (steps * c.tile_k + overhead_k);
  return waves * work * misaligned_penalty(c.path, problem) / row.rate;
}

std::vector<ScoredRow> rank(const TuningTable& table, const ResolvedProblem& problem,
                            const DeviceCaps& caps) {
  std::vector<ScoredRow> out;
  for (const TuningRow& row : table.rows) {
    if (!row.matches(problem) || !is_legal(row.config, problem, caps) ||
        why_refused(table, row.config, caps.architecture)) {
      continue;
    }
    out.push_back({.row = &row, .cost = estimate_cost(row, problem, caps)});
  }
  std::ranges::stable_sort(out, {}, &ScoredRow::cost);
  return out;
}

std::string to_string(const ScoredRow& scored) {
  return concat(to_string(scored.row->config), " cost ", scored.cost, ", rate ", scored.row->rate,
                ", ", scored.row->provenance);
}

std::string why_nothing_is_legal(const TuningTable& table, const ResolvedProblem& problem,
                                 const DeviceCaps& caps) {
  std::string out;
  for (const TuningRow& row : table.rows) {
    if (!row.matches(problem)) continue;
    auto reason = why_illegal(row.config, problem, caps);
    if (!reason) reason = why_refused(table, row.config, caps.architecture);
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
