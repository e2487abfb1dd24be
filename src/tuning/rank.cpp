// rank.cpp: which of the legal configurations to prefer.
#include "tuning/rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/text.hpp"
#include "device/caps.hpp"
#include "kernels/computation.hpp"
#include "kernels/dispatch_limit.hpp"
#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/workspace.hpp"
#include "tuning/estimate.hpp"
#include "tuning/row_variants.hpp"

namespace vkgemm {
namespace {

// Slices of K that are considered, and how much less time anything must take to be worth a
// workspace.
constexpr std::uint32_t slice_counts[] = {2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr double worth_a_workspace = 0.97;

// m·n·k from which packing is considered: below, one more dispatch is a good part of the whole.
constexpr double fewest_products_to_pack = 0x1p30;

// In so many slices, added by whom the caller says or, if he doesn't, by a second dispatch.
Config with_slices(Config config, std::uint32_t slices, const ResolvedProblem& problem) {
  config.slices = slices;
  if (slices > 1)
    config.reduction_mode = problem.split_k.reduction_mode.value_or(ReductionMode::two_dispatches);
  return config;
}

// Adds the configuration, and if slices of K are estimated to be better the same with these; or
// with as many as the caller wants.
void score(const TuningRow& row, double rate, const Computation& computation,
           const TimingModel& timing, const Target& target, std::vector<ScoredRow>& out) {
  const DeviceCaps& caps = target.caps;
  const Config& config = computation.config();
  const ResolvedProblem& problem = computation.asked();
  if (!fits_workspace(config, computation.chunk(), caps.limits)) return;
  const auto fits = [&](const Config& c) {
    return fits_workspace(c, Computation(problem, c).chunk(), caps.limits);
  };
  const Estimate estimate(computation, rate, timing, caps);
  const double plain = estimate.microseconds(config.slices);
  // A table's figures may be of any size.
  if (!std::isfinite(plain)) return;
  ScoredRow best{.row = &row, .config = config, .cost = plain, .unsplit_cost = plain};
  if (const std::uint32_t wanted = problem.split_k.slices; wanted != 0) {
    best.config = with_slices(config, wanted, problem);
    best.cost = estimate.microseconds(wanted);
    if (std::isfinite(best.cost) && fits(best.config) && is_legal(best.config, problem, target) &&
        !exceeds_dispatch_limit(best.config, best.cost, problem)) {
      out.push_back(best);
    }
    return;
  }
  if (!exceeds_dispatch_limit(config, plain, problem)) out.push_back(best);
  const bool whole = problem.rows && config.rows != RowStrategy::two_pass;
  if (config.slices > 1 || is_cpu(caps) || problem.grouping || whole) return;
  for (const std::uint32_t slices : slice_counts) {
    if (!estimate.has_use_for(slices)) break;
    const Config split = with_slices(config, slices, problem);
    if (!fits(split)) break;
    const double time = estimate.microseconds(slices);
    // Not below: a figure that is none is not chosen, either.
    if (!(time < best.cost && time < worth_a_workspace * plain)) continue;
    if (!is_legal_row(split, problem, target) || exceeds_dispatch_limit(split, time, problem))
      continue;
    best.config = split;
    best.cost = time;
  }
  if (best.config.slices > 1) out.push_back(best);
}

// The operands that might be worth packing: those that the kernels load badly, of large products.
std::vector<Config> pack_options(const ResolvedProblem& problem, const DeviceCaps& caps) {
  const bool a = !problem.a.is_packed() &&
                 (problem.a.layout == Layout::row_major || !problem.a.allows_vectors(16));
  const bool b = !problem.b.is_packed() &&
                 (problem.b.layout == Layout::col_major || !problem.b.allows_vectors(16));
  std::vector<Config> options;
  if (is_cpu(caps) || problem.max_workspace_bytes == 0 || problem.k == 0 || problem.grouping ||
      !problem.input->packed_in_rows) {
    return options;
  }
  const double products = static_cast<double>(problem.m) *
                          static_cast<double>(problem.product_n()) *
                          static_cast<double>(problem.k) * static_cast<double>(problem.batch);
  if (products < fewest_products_to_pack) return options;
  if (a) options.push_back({.pack_a = true});
  if (problem.gated) return options;  // B: not measured
  if (b) options.push_back({.pack_b = true});
  if (a && b) options.push_back({.pack_a = true, .pack_b = true});
  return options;
}

// A row for the problem's input alone stands in place of one for all with its configuration, whose
// rate says nothing of that input. Rows of groups don't: their rates were fitted beside those of
// all.
bool is_replaced(const TuningRow& row, const TuningTable& table, const ResolvedProblem& problem) {
  const std::string_view own = problem.input->family;
  if (own.empty() || row.family == own) return false;
  return std::ranges::any_of(table.rows, [&](const TuningRow& other) {
    return other.family == own && other.matches(problem) && other.config == row.config;
  });
}

}  // namespace

std::vector<ScoredRow> rank(const TuningTable& table, const ResolvedProblem& problem,
                            const Target& target) {
  const DeviceCaps& caps = target.caps;
  std::vector<ScoredRow> out;
  const auto consider = [&](const TuningRow& row, const Config& config) {
    // Variants have as many accumulators: they are as bad.
    if (why_refused(target.refused, row.config, problem, caps.architecture)) return;
    for (const RowVariant& variant : row_variants(config, problem, caps)) {
      if (!may_be_legal(variant.config, problem, caps)) continue;
      // The parser of tables knows the ranges of rows; those of other tiles are not known.
      if (problem.rows && variant.config != row.config && !has_legal_ranges(variant.config))
        continue;
      const Computation computation(problem, variant.config);
      if (!is_legal(computation, target)) continue;
      score(row, row.rate * variant.rate_factor, computation, table.timing, target, out);
    }
  };
  const auto packs = [](const TuningRow& row) { return row.config.pack_a || row.config.pack_b; };
  const auto counts = [&](const TuningRow& row) {
    return row.matches(problem) && !is_replaced(row, table, problem);
  };
  for (const TuningRow& row : table.rows) {
    if (!packs(row) && counts(row)) consider(row, as_given(row.config, problem, caps));
  }
  double best_plain = std::numeric_limits<double>::infinity();
  for (const ScoredRow& scored : out) best_plain = std::min(best_plain, scored.cost);
  const std::size_t plain = out.size();
  for (const TuningRow& row : table.rows) {
    if (!packs(row) || !counts(row)) continue;
    consider(row, as_given(row.config, problem, caps));
    if (!descriptor(row.config).takes_fragments() || !row.config.pack_a) continue;
    if (problem.a.is_packed()) continue;
    Config a_in_rows = row.config;
    a_in_rows.pack_a = false;
    consider(row, as_given(a_in_rows, problem, caps));
  }
  for (const Config& option : pack_options(problem, caps)) {
    for (const TuningRow& row : table.rows) {
      Config config = row.config;
      config.pack_a = option.pack_a;
      config.pack_b = option.pack_b;
      config = as_given(config, problem, caps);
      if (gains_by_packing(descriptor(row.config)) &&
          row.matches(*Computation(problem, config).chunk())) {
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

std::vector<Objection> objections(const TuningTable& table, const ResolvedProblem& problem,
                                  const Target& target) {
  std::vector<Objection> out;
  for (const TuningRow& row : table.rows) {
    if (!row.matches(problem)) continue;
    Config config = with_slices(as_given(row.config, problem, target.caps),
                                std::max(problem.split_k.slices, row.config.slices), problem);
    if (problem.rows) config.rows = RowStrategy::two_pass;  // what others can, it can
    if (const auto reason = why_illegal(config, problem, target)) {
      out.push_back({row.config, *reason});
      continue;
    }
    const double time = estimate_cost(config, row.rate, table.timing, problem, target.caps);
    if (exceeds_dispatch_limit(config, time, problem)) {
      out.push_back(
          {row.config,
           concat("its one dispatch would take ", microseconds(problem.estimate_scale * time),
                  " by the estimate, max_dispatch_ms is ", problem.max_dispatch_us / 1000.0)});
    }
  }
  return out;
}

}  // namespace vkgemm
