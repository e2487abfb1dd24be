#include "tuning/device_tables.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "kernels/dispatch_limit.hpp"
#include "kernels/legality.hpp"
#include "kernels/parts/pack.hpp"

namespace vkgemm {

DeviceTables::DeviceTables(std::string_view architecture, std::vector<TuningTable> loaded)
    : loaded_(std::move(loaded)),
      refused_(built_in_refusals(architecture)),
      built_in_refusals_(refused_.size()) {
  for (const TuningTable& table : loaded_) {
    tables_.push_back(&table);
    refused_.insert(refused_.end(), table.refused.begin(), table.refused.end());
  }
  const TuningTable& own = built_in_table(architecture);
  const TuningTable& generic = built_in_table("generic");
  if (&own != &generic) tables_.push_back(&own);
  tables_.push_back(&generic);
}

Target DeviceTables::target(const DeviceCaps& caps) const { return target(caps, Denials::heeded); }

Target DeviceTables::target(const DeviceCaps& caps, Denials denials) const {
  const std::span<const RefusedConfig> all = refused_;
  return {caps, denials == Denials::heeded ? all : all.first(built_in_refusals_),
          tables_.front()->timing};
}

bool DeviceTables::denied(const Config& config, DataType input_type, Denials denials) const {
  return denials == Denials::heeded && std::ranges::any_of(loaded_, [&](const TuningTable& table) {
           return is_denied(table, config, input_type);
         });
}

std::optional<std::string> DeviceTables::why_denied(const Config& config,
                                                    const ResolvedProblem& problem,
                                                    const DeviceCaps& caps) const {
  for (const TuningTable& table : loaded_) {
    if (const DeniedConfig* const found = denial(table, config, problem.a.type)) {
      return concat("denied by ", table.source, ": ", found->reason);
    }
    if (const auto refused = why_refused(table.refused, config, problem, caps.architecture)) {
      return concat(*refused, " (", table.source, ")");
    }
  }
  return std::nullopt;
}

std::vector<ScoredRow> DeviceTables::rank(const ResolvedProblem& problem,
                                          const DeviceCaps& caps) const {
  auto ranked = rank(problem, caps, Denials::heeded);
  return ranked.empty() ? rank(problem, caps, Denials::overruled) : ranked;
}

std::vector<ScoredRow> DeviceTables::rank(const ResolvedProblem& problem, const DeviceCaps& caps,
                                          Denials denials) const {
  std::vector<ScoredRow> unique;
  if (const auto tuned_row = tuned(estimated(problem, caps, denials), problem, caps, denials)) {
    unique.push_back(*tuned_row);
  }
  for (const TuningTable* table : tables_) {
    for (const ScoredRow& scored : vkgemm::rank(*table, problem, target(caps, denials))) {
      const auto same = [&](const ScoredRow& other) { return other.config == scored.config; };
      if (std::none_of(unique.begin(), unique.end(), same) &&
          !denied(scored.config, problem.a.type, denials)) {
        unique.push_back(scored);
      }
    }
  }
  return unique;
}

std::optional<DeviceTables::Estimated> DeviceTables::estimated(const ResolvedProblem& problem,
                                                               const DeviceCaps& caps,
                                                               Denials denials) const {
  for (const TuningTable* table : tables_) {
    for (const ScoredRow& scored : vkgemm::rank(*table, problem, target(caps, denials))) {
      if (!denied(scored.config, problem.a.type, denials)) return Estimated{table, scored};
    }
  }
  return std::nullopt;
}

std::optional<Nearest> DeviceTables::nearest(const ResolvedProblem& problem,
                                             const DeviceCaps& caps) const {
  const bool none_left = !best(problem, caps, Denials::heeded);
  const Denials denials = none_left ? Denials::overruled : Denials::heeded;
  return nearest(estimated(problem, caps, denials), problem, caps, denials);
}

std::optional<Nearest> DeviceTables::nearest(const std::optional<Estimated>& other,
                                             const ResolvedProblem& problem, const DeviceCaps& caps,
                                             Denials denials) const {
  std::optional<Nearest> nearest;
  for (const TuningTable* table : tables_) {
    const auto found = nearest_shape(*table, problem, [&](const Config& config) {
      return is_usable(config, problem, target(caps, denials)) &&
             !denied(config, problem.a.type, denials);
    });
    if (found && (!nearest || found->distance < nearest->distance)) nearest = found;
    // Rows that were loaded go before shapes that are built in.
    if (other && other->table == table) break;
  }
  return nearest;
}

std::optional<ScoredRow> DeviceTables::tuned(const std::optional<Estimated>& other,
                                             const ResolvedProblem& problem, const DeviceCaps& caps,
                                             Denials denials) const {
  const auto found = nearest(other, problem, caps, denials);
  if (!found) return std::nullopt;
  const TunedShape& shape = *found->shape;
  const Config& config = shape.row.config;
  ScoredRow scored{.row = &shape.row,
                   .config = config,
                   .cost = shape.microseconds,
                   .unsplit_cost = shape.microseconds,
                   .tuned = &shape,
                   .distance = found->distance};
  const auto unless_too_long = [&]() -> std::optional<ScoredRow> {
    if (exceeds_dispatch_limit(config, scored.cost, problem)) return std::nullopt;
    return scored;
  };
  const bool same_device = found->table->device.empty() || found->table->device == caps.name;
  scored.timed = found->distance == 0.0 && same_device;
  if (scored.timed || !other) return unless_too_long();
  const TuningTable& table = *other->table;
  const auto rate = similar_rate(table, config, problem);
  if (!rate) return unless_too_long();
  if (found->distance == 0.0) {
    scored.cost = scored.unsplit_cost = estimate_cost(config, *rate, table.timing, problem, caps);
    return unless_too_long();
  }
  const ResolvedProblem tuned_at = with_shape_of(problem, shape.problem);
  const auto best_there = vkgemm::rank(table, tuned_at, target(caps, denials));
  const Opinion opinion{
      .here = estimate_cost(config, *rate, table.timing, problem, caps),
      .best_here = other->row.cost,
      .there = estimate_cost(config, *rate, table.timing, tuned_at, caps),
      .best_there = best_there.empty() ? 0.0 : best_there.front().cost,
  };
  if (opinion.objects()) return std::nullopt;
  // As much better or worse than its estimate as it was found to be there.
  const double error = same_device ? shape.microseconds / opinion.there : 1.0;
  scored.cost = scored.unsplit_cost = opinion.here * error;
  return unless_too_long();
}

std::optional<ScoredRow> DeviceTables::best(const ResolvedProblem& problem,
                                            const DeviceCaps& caps) const {
  auto scored = best(problem, caps, Denials::heeded);
  return scored ? scored : best(problem, caps, Denials::overruled);
}

std::optional<ScoredRow> DeviceTables::best(const ResolvedProblem& problem, const DeviceCaps& caps,
                                            Denials denials) const {
  const auto other = estimated(problem, caps, denials);
  if (auto scored = tuned(other, problem, caps, denials)) return scored;
  if (!other) return std::nullopt;
  return other->row;
}

std::optional<ScoredRow> DeviceTables::best_estimate(const ResolvedProblem& problem,
                                                     const DeviceCaps& caps) const {
  auto best = estimated(problem, caps, Denials::heeded);
  if (!best) best = estimated(problem, caps, Denials::overruled);
  if (!best) return std::nullopt;
  return best->row;
}

std::optional<double> DeviceTables::estimate(const Config& config, const ResolvedProblem& problem,
                                             const DeviceCaps& caps) const {
  for (const TuningTable* table : tables_) {
    const auto rate = similar_rate(*table, config, problem);
    if (rate) return estimate_cost(config, *rate, table->timing, problem, caps);
  }
  return std::nullopt;
}

const TuningTable* DeviceTables::loaded_table_of(const TuningRow& row) const noexcept {
  for (const TuningTable& table : loaded_) {
    const auto is_row = [&](const TuningRow& other) { return &other == &row; };
    const auto is_shape = [&](const TunedShape& shape) { return &shape.row == &row; };
    if (std::ranges::any_of(table.rows, is_row) || std::ranges::any_of(table.tuned, is_shape)) {
      return &table;
    }
  }
  return nullptr;
}

const TuningRow* DeviceTables::find(const Config& config, const ResolvedProblem& problem) const {
  const TunedProblem wanted = tuned_problem(problem);
  for (const TuningTable* table : tables_) {
    for (const TunedShape& shape : table->tuned) {
      if (shape.row.config == config && shape_distance(shape.problem, wanted) == 0.0) {
        return &shape.row;
      }
    }
  }
  const ResolvedProblem seen = packed(problem, config);
  for (const TuningTable* table : tables_) {
    for (const TuningRow& row : table->rows) {
      Config same = config;
      if (row.config.slices == 1) {
        same.slices = 1;
        same.reduction_mode = row.config.reduction_mode;
        same.spin_limit = row.config.spin_limit;
      }
      same.rows = row.config.rows;
      if (config.rows == RowStrategy::panel) {
        same.swizzle = row.config.swizzle;
        same.spin_limit = row.config.spin_limit;
      }
      same.pack_a = row.config.pack_a;
      same.pack_b = row.config.pack_b;
      if (row.config.schedule == Schedule::simple) same.schedule = Schedule::simple;
      if (row.config.workgroups == 0) same.workgroups = 0;
      if (row.config == same && row.matches(seen)) return &row;
    }
  }
  return nullptr;
}

std::string DeviceTables::why_nothing_is_legal(const ResolvedProblem& problem,
                                               const DeviceCaps& caps) const {
  std::vector<Objection> all;
  for (const TuningTable* table : tables_) {
    std::ranges::move(objections(*table, problem, target(caps)), std::back_inserter(all));
    for (const DeniedConfig& config : table->denied) {
      if (config.input_type && *config.input_type != problem.a.type) continue;
      all.push_back({.config = to_string(config.config),
                     .reason = concat("denied by ", table->source, ": ", config.reason)});
    }
  }
  if (all.empty()) return "no row of a tuning table matches the problem";
  const Objection* least = nullptr;
  for (const Objection& objection : all) {
    const std::uint64_t bytes = objection.workspace_bytes;
    if (bytes != 0 && (least == nullptr || bytes < least->workspace_bytes)) least = &objection;
  }
  if (least != nullptr) {
    return concat("max_workspace_bytes is ", problem.max_workspace_bytes,
                  ", the least that a configuration takes is ", least->workspace_bytes, ": ",
                  least->config);
  }
  // A line for each reason, the most frequent one first.
  struct Reason {
    const Objection* first;
    std::size_t count;
  };
  std::vector<Reason> reasons;
  for (const Objection& objection : all) {
    const auto is_same = [&](const Reason& other) {
      return other.first->reason == objection.reason;
    };
    const auto known = std::ranges::find_if(reasons, is_same);
    if (known != reasons.end())
      ++known->count;
    else
      reasons.push_back({&objection, 1});
  }
  std::ranges::stable_sort(reasons, std::greater(), &Reason::count);
  constexpr std::size_t most_lines = 4;
  std::string text;
  for (const Reason& reason : std::span(reasons).first(std::min(reasons.size(), most_lines))) {
    if (!text.empty()) text += '\n';
    text += concat(reason.first->config, ": ", reason.first->reason);
    if (reason.count > 1) text += concat(" (and ", reason.count - 1, " more for this reason)");
  }
  if (reasons.size() > most_lines)
    text += concat("\nand ", reasons.size() - most_lines, " more reasons");
  return text;
}

std::string DeviceTables::why_not_path(Path path, const ResolvedProblem& problem,
                                       const DeviceCaps& caps) const {
  for (const TuningTable* table : tables_) {
    for (const TuningRow& row : table->rows) {
      if (row.config.path() != path || !row.matches(problem)) continue;
      Config config = row.config;
      if (problem.rows) config.rows = RowStrategy::two_pass;  // what others can, it can
      if (auto reason = why_illegal(config, problem, target(caps))) {
        return to_string(row.config) + ": " + *reason;
      }
    }
  }
  return {};
}

}  // namespace vkgemm
