// rank.cpp: which of the legal configurations to prefer.
#include "tuning/rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
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

// The operands that might be worth packing: those that the kernels load badly, of large products.
std::vector<Config> pack_options(const ResolvedProblem& problem, const DeviceCaps& caps) {
  const bool a =
      !problem.a.is_packed() && (problem.a.layout == Layout::row_major ||
                                 !problem.a.allows_vectors(problem.load_bytes_of(problem.a)));
  const bool b =
      !problem.b.is_packed() && (problem.b.layout == Layout::col_major ||
                                 !problem.b.allows_vectors(problem.load_bytes_of(problem.b)));
  std::vector<Config> options;
  if (is_cpu(caps) || problem.summed > 1 || problem.max_workspace_bytes == 0 || problem.k == 0 ||
      problem.grouping || !problem.input->packed_in_rows) {
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

// A search for the rows of a table that are worth keeping: all, or the best one that may be chosen.
// A bound takes less time than an estimate, and an estimate less than legality. So the search asks
// for them in this order, and drops a configuration as soon as it is known to be too slow.
class Search {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  // `choosable` null: keeps all rows.
  Search(const TuningTable& table, const ResolvedProblem& problem, const Target& target,
         const std::function<bool(const Config&)>* choosable = nullptr, double below = unlimited)
      : table_(table),
        problem_(problem),
        target_(target),
        choosable_(choosable),
        estimator_(problem, table.timing, target.caps),
        below_(below),
        limit_(below / worth_a_workspace) {}

  std::vector<ScoredRow> run() {
    for (const TuningRow& row : table_.rows) {
      if (packs(row) || !may_be_kept(row, row.config) || !counts(row)) continue;
      consider(row, as_given(row.config));
    }
    // The rows that follow need a workspace.
    limit_ = std::min({limit_, below_, worth_a_workspace * least_cost_});
    for (const TuningRow& row : table_.rows) {
      if (packs(row)) consider_packing(row);
    }
    for (const Config& option : pack_options(problem_, target_.caps)) {
      for (const TuningRow& row : table_.rows) consider_option(row, option);
    }
    return std::move(kept_);
  }

 private:
  static bool packs(const TuningRow& row) { return row.config.pack_a || row.config.pack_b; }
  bool counts(const TuningRow& row) const {
    return row.matches(problem_) && !is_replaced(row, table_, problem_);
  }
  Config as_given(const Config& config) const {
    return vkgemm::as_given(config, problem_, target_.caps);
  }

  void consider_packing(const TuningRow& row) {
    Config a_in_rows = row.config;
    a_in_rows.pack_a = false;
    const bool twice =
        descriptor(row.config).takes_fragments() && row.config.pack_a && !problem_.a.is_packed();
    const bool first = may_be_kept(row, row.config);
    const bool second = twice && may_be_kept(row, a_in_rows);
    if (!(first || second) || !counts(row)) return;
    if (first) consider(row, as_given(row.config));
    if (second) consider(row, as_given(a_in_rows));
  }

  // The row with copies of operands, which it has to match.
  void consider_option(const TuningRow& row, const Config& option) {
    Config config = row.config;
    config.pack_a = option.pack_a;
    config.pack_b = option.pack_b;
    if (!may_be_kept(row, config) || !gains_by_packing(descriptor(config)) ||
        !row.serves(problem_)) {
      return;
    }
    config = as_given(config);
    consider(row, config, [&] { return row.matches(*Computation(problem_, config).chunk()); });
  }

  // False if a configuration is too slow with these operands packed, and if all variants of a row
  // are.
  bool may_be_kept(const Config& config, RowStrategy rows, double rate) const {
    return !(estimator_.least(config, rows, rate) >= limit_);
  }
  bool may_be_kept(const TuningRow& row, const Config& config) const {
    return may_gain_rate(problem_) || may_be_kept(config, RowStrategy::none, row.rate);
  }

  static bool always() { return true; }

  // `matches`: true if the row matches the problem. It may take longer than a bound.
  template <class Matches = bool()>
  void consider(const TuningRow& row, const Config& config, const Matches& matches = always) {
    if (!problem_.rows) {
      if (matches()) score(row, row.rate, config);
      return;
    }
    for (const auto& [variant, factor] : row_variants(config, problem_, target_.caps)) {
      const double rate = row.rate * factor;
      if (may_be_kept(variant, variant.rows, rate) && matches()) score(row, rate, variant);
    }
  }

  bool is_usable(const TuningRow& row, const Computation& computation) const {
    const Config& config = computation.config();
    // Variants have as many accumulators: they are as bad.
    if (why_refused(target_.refused, row.config, problem_, target_.caps.architecture)) return false;
    // The parser of tables knows the ranges of rows; those of other tiles are not known.
    if (problem_.rows && config != row.config && !has_legal_ranges(config)) return false;
    return fits_workspace(config, computation.chunk(), target_.caps.limits) &&
           is_legal(computation, target_);
  }
  bool fits(const Config& config) const {
    return fits_workspace(config, Computation(problem_, config).chunk(), target_.caps.limits);
  }

  // Keeps the configuration, and if slices of K are estimated to be better the same with these; or
  // with as many as the caller wants.
  void score(const TuningRow& row, double rate, const Config& config) {
    if (!may_be_legal(config, problem_, target_.caps)) return;
    const Computation computation(problem_, config);
    std::optional<bool> known;
    const auto usable = [&] {
      if (!known) known = is_usable(row, computation);
      return *known;
    };
    if (limit_ == unlimited && !usable()) return;  // no estimate would be too high
    const Estimate estimate(estimator_, computation, rate);
    const double plain = estimate.microseconds(config.slices);
    // A table's figures may be of any size.
    if (!std::isfinite(plain)) return;
    ScoredRow best{.row = &row, .config = config, .cost = plain, .unsplit_cost = plain};
    if (const std::uint32_t wanted = problem_.split_k.slices; wanted != 0) {
      best.config = with_slices(config, wanted, problem_);
      best.cost = estimate.microseconds(wanted);
      if (best.cost < limit_ && usable() && fits(best.config) &&
          is_legal(best.config, problem_, target_) &&
          !exceeds_dispatch_limit(best.config, best.cost, problem_)) {
        keep(best);
      }
      return;
    }
    if (plain < limit_ && !exceeds_dispatch_limit(config, plain, problem_) && usable()) keep(best);
    const bool whole = problem_.rows && config.rows != RowStrategy::two_pass;
    if (config.slices > 1 || is_cpu(target_.caps) || problem_.grouping || whole) return;
    for (const std::uint32_t slices : slice_counts) {
      const double limit = std::min({best.cost, worth_a_workspace * plain, limit_});
      if (!estimate.has_use_for(slices) || estimate.least(slices) >= limit) break;
      const double time = estimate.microseconds(slices);
      if (!(time < limit)) continue;  // a figure that is none is not chosen, either
      if (!usable()) return;
      const Config split = with_slices(config, slices, problem_);
      if (!fits(split)) break;
      if (!is_legal_row(split, problem_, target_) || exceeds_dispatch_limit(split, time, problem_))
        continue;
      best.config = split;
      best.cost = time;
    }
    if (best.config.slices > 1) keep(best);
  }

  void keep(const ScoredRow& scored) {
    least_cost_ = std::min(least_cost_, scored.cost);
    if (choosable_ != nullptr) {
      if (!(*choosable_)(scored.config)) return;
      kept_.clear();
      limit_ = scored.cost;
    }
    kept_.push_back(scored);
  }

  const TuningTable& table_;
  const ResolvedProblem& problem_;
  const Target& target_;
  const std::function<bool(const Config&)>* choosable_;
  Estimator estimator_;
  std::vector<ScoredRow> kept_;
  double below_;
  double limit_;                   // rows that cost as much, or more, are not kept
  double least_cost_ = unlimited;  // of legal rows
};

}  // namespace

std::vector<ScoredRow> rank(const TuningTable& table, const ResolvedProblem& problem,
                            const Target& target) {
  std::vector<ScoredRow> all = Search(table, problem, target).run();
  std::ranges::stable_sort(all, {}, &ScoredRow::cost);
  return all;
}

std::optional<ScoredRow> best(const TuningTable& table, const ResolvedProblem& problem,
                              const Target& target,
                              const std::function<bool(const Config&)>& choosable, double below) {
  const auto found = Search(table, problem, target, &choosable, below).run();
  if (found.empty() || !(found.front().cost < below)) return std::nullopt;
  return found.front();
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
