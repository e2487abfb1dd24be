// tables.cpp: the tuning tables as one context uses them.
#include <algorithm>

#include "context_impl.hpp"
#include "legality.hpp"
#include "pack.hpp"

namespace vkgemm {

DeviceTables::DeviceTables(std::string_view architecture) {
  const TuningTable& own = built_in_table(architecture);
  const TuningTable& generic = built_in_table("generic");
  if (&own != &generic) tables_.push_back(&own);
  tables_.push_back(&generic);
}

std::vector<ScoredRow> DeviceTables::rank(const ResolvedProblem& problem,
                                          const DeviceCaps& caps) const {
  std::vector<ScoredRow> unique;
  for (const TuningTable* table : tables_) {
    for (const ScoredRow& scored : vkgemm::rank(*table, problem, caps)) {
      const auto same = [&](const ScoredRow& other) { return other.config == scored.config; };
      if (std::none_of(unique.begin(), unique.end(), same)) unique.push_back(scored);
    }
  }
  return unique;
}

std::optional<ScoredRow> DeviceTables::best(const ResolvedProblem& problem,
                                            const DeviceCaps& caps) const {
  for (const TuningTable* table : tables_) {
    const std::vector<ScoredRow> ranked = vkgemm::rank(*table, problem, caps);
    if (!ranked.empty()) return ranked.front();
  }
  return std::nullopt;
}

const TuningRow* DeviceTables::find(const Config& config,
                                    const ResolvedProblem& problem) const noexcept {
  const ResolvedProblem seen = packed(problem, config);
  for (const TuningTable* table : tables_) {
    for (const TuningRow& row : table->rows) {
      Config same = config;
      if (row.config.slices == 1) {
        same.slices = 1;
        same.tier = row.config.tier;
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
  std::string reasons;
  for (const TuningTable* table : tables_) {
    if (!reasons.empty()) reasons += '\n';
    reasons += vkgemm::why_nothing_is_legal(*table, problem, caps);
  }
  return reasons;
}

std::string DeviceTables::why_not_path(Path path, const ResolvedProblem& problem,
                                       const DeviceCaps& caps) const {
  for (const TuningTable* table : tables_) {
    for (const TuningRow& row : table->rows) {
      if (row.config.path != path || !row.matches(problem)) continue;
      if (auto reason = why_illegal(row.config, problem, caps)) {
        return to_string(row.config) + ": " + *reason;
      }
    }
  }
  return {};
}

}  // namespace vkgemm
