// rank.cpp: which of the legal configurations to prefer.
#include "tuning/rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

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

// A configuration that a row proposes, with its estimate.
struct Proposed {
  ScoredRow scored;
  Config whole;  // the same without more slices, which is legal; with them that is not known yet
};

// Adds the configuration, and if slices of K are estimated to be better the same with these; or
// with as many as the caller wants.
void score(const TuningRow& row, double rate, const Computation& computation,
           const TimingModel& timing, const Target& target, std::vector<Proposed>& out) {
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
  const auto add = [&](const Config& c, double cost) {
    if (exceeds_dispatch_limit(c, cost, problem)) return;
    out.push_back({{.row = &row, .config = c, .cost = cost, .unsplit_cost = plain}, config});
  };
  if (const std::uint32_t wanted = problem.split_k.slices; wanted != 0) {
    const Config split = with_slices(config, wanted, problem);
    const double cost = estimate.microseconds(wanted);
    if (std::isfinite(cost) && fits(split)) add(split, cost);
    return;
  }
  add(config, plain);
  const bool whole = problem.rows && config.rows != RowStrategy::two_pass;
  if (config.slices > 1 || is_cpu(caps) || problem.grouping || whole) return;
  for (const std::uint32_t slices : slice_counts) {
    if (!estimate.has_use_for(slices)) break;
    const Config split = with_slices(config, slices, problem);
    if (!fits(split)) break;
    // Not below: a figure that is none is not chosen, either.
    const double time = estimate.microseconds(slices);
    if (time < worth_a_workspace * plain) add(split, time);
  }
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

// All that the rows propose: without packing, and with operands packed.
class Proposals {
 public:
  Proposals(const TuningTable& table, const ResolvedProblem& problem, const Target& target)
      : table_(table), problem_(problem), target_(target) {}

  std::vector<Proposed> plain() {
    for (const TuningRow& row : table_.rows) {
      if (!packs(row) && counts(row)) consider(row, row.config);
    }
    return std::exchange(found_, {});
  }

  std::vector<Proposed> packed() {
    for (const TuningRow& row : table_.rows) {
      if (!packs(row) || !counts(row)) continue;
      consider(row, row.config);
      if (!descriptor(row.config).takes_fragments() || !row.config.pack_a) continue;
      if (problem_.a.is_packed()) continue;
      Config a_in_rows = row.config;
      a_in_rows.pack_a = false;
      consider(row, a_in_rows);
    }
    for (const Config& option : pack_options(problem_, target_.caps)) {
      for (const TuningRow& row : table_.rows) {
        if (!gains_by_packing(descriptor(row.config))) continue;
        Config config = row.config;
        config.pack_a = option.pack_a;
        config.pack_b = option.pack_b;
        config = as_given(config, problem_, target_.caps);
        if (row.matches(*Computation(problem_, config).chunk())) consider(row, config);
      }
    }
    return std::exchange(found_, {});
  }

 private:
  static bool packs(const TuningRow& row) { return row.config.pack_a || row.config.pack_b; }
  bool counts(const TuningRow& row) const {
    return row.matches(problem_) && !is_replaced(row, table_, problem_);
  }
  void consider(const TuningRow& row, const Config& given) {
    const DeviceCaps& caps = target_.caps;
    // Variants have as many accumulators: they are as bad.
    if (why_refused(target_.refused, row.config, problem_, caps.architecture)) return;
    for (const RowVariant& variant :
         row_variants(as_given(given, problem_, caps), problem_, caps)) {
      if (!may_be_legal(variant.config, problem_, caps)) continue;
      // The parser of tables knows the ranges of rows; those of other tiles are not known.
      if (is_reshaped(variant.config, row.config) && !has_legal_ranges(variant.config)) continue;
      const Computation computation(problem_, variant.config);
      if (!is_legal(computation, target_)) continue;
      score(row, row.rate * variant.rate_factor, computation, table_.timing, target_, found_);
    }
  }

  const TuningTable& table_;
  const ResolvedProblem& problem_;
  const Target& target_;
  std::vector<Proposed> found_;
};

bool is_legal(const Proposed& proposed, const ResolvedProblem& problem, const Target& target) {
  return proposed.scored.config == proposed.whole ||
         is_legal(proposed.scored.config, problem, target);
}

}  // namespace

std::vector<ScoredRow> rank(const TuningTable& table, const ResolvedProblem& problem,
                            const Target& target, std::size_t most) {
  Proposals proposals(table, problem, target);
  std::vector<ScoredRow> out;
  // A row appears once, and once more with the slices that are best.
  const auto add = [&](const std::vector<Proposed>& proposed, double below, std::size_t first) {
    std::vector<const Proposed*> sorted;
    sorted.reserve(proposed.size());
    for (const Proposed& one : proposed) sorted.push_back(&one);
    std::ranges::stable_sort(sorted, {}, [](const Proposed* p) { return p->scored.cost; });
    for (const Proposed* const each : sorted) {
      const Proposed& one = *each;
      if (out.size() - first >= most || !(one.scored.cost < below)) break;
      const bool is_whole = one.scored.config == one.whole;
      const bool repeats = !is_whole && std::ranges::any_of(out, [&](const ScoredRow& other) {
        Config whole = other.config;
        whole.slices = one.whole.slices;
        whole.reduction_mode = one.whole.reduction_mode;
        return other.row == one.scored.row && other.config.slices > one.whole.slices &&
               whole == one.whole;
      });
      if (!repeats && is_legal(one, problem, target)) out.push_back(one.scored);
    }
  };
  constexpr double any = std::numeric_limits<double>::infinity();
  add(proposals.plain(), any, 0);
  double best_plain = any;
  if (!out.empty()) best_plain = out.front().cost;
  add(proposals.packed(), worth_a_workspace * best_plain, out.size());
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
