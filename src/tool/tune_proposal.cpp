#include "tool/tune_proposal.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "device/caps.hpp"
#include "problem/resolve.hpp"
#include "tool/planning.hpp"
#include "tuner/candidates.hpp"
#include "tuning/table_file.hpp"

namespace vkgemm::tool {

using tuner::ProposedConfig;

namespace {

bool has_path(const std::vector<ProposedConfig>& space, Path path) {
  return std::ranges::any_of(
      space, [path](const ProposedConfig& proposed) { return proposed.config.path() == path; });
}

}  // namespace

Result<ResolvedProblem> resolve_on(const DeviceCaps& caps, const DeviceTables& tables,
                                   const Problem& problem) {
  Result<ResolvedProblem> resolved = resolve(problem);
  if (!resolved) return resolved;
  if (auto error = tables.set_orders(*resolved, caps)) return *error;
  return resolved;
}

Proposal propose(const TuneTask& task, const ResolvedProblem& problem, const DeviceTables& built_in,
                 const DeviceCaps& caps) {
  Proposal out;
  const auto choose = [&](const std::string& name, const std::optional<ScoredRow>& best) {
    if (best) out.choices.push_back({name, best->config});
  };
  const Target target = built_in.target(caps);
  const auto best = built_in.best(problem, caps);
  choose("built_in", best);
  if (task.table && check_device(*task.table, caps)) {
    choose("table", DeviceTables(caps, {*task.table}).best(problem, caps));
  }
  // The choice for shapes that nobody tuned, so that a tuned one does not hide it.
  if (task.compare && best && best->tuned != nullptr) {
    choose("estimate", built_in.best_estimate(problem, caps));
  }
  const auto allowed = [&](const Config& config) {
    return is_wanted(task, config) && !is_denied(task, config, problem.input_type());
  };
  tuner::Candidates found =
      tuner::candidates(task.from_generic ? "generic" : table_name(caps), problem, target,
                        {.most = task.limits.per_problem, .within = task.limits.within}, allowed);
  out.guide = found.guide;
  out.legal = found.legal;
  out.space = std::move(found.space);
  const auto add_first = [&](const Config& config) {
    if (!allowed(config) || !has_path(out.space, config.path())) return;
    if (std::ranges::find(out.first_of_paths, config.path(), &Config::path) ==
        out.first_of_paths.end()) {
      out.first_of_paths.push_back(config);
    }
  };
  // By the tables if they can: rows compile sooner than whatever the estimate likes.
  for (const ScoredRow& row : built_in.rank(problem, caps)) {
    if (!task.from_generic) add_first(row.config);
  }
  for (const ProposedConfig& proposed : out.space) add_first(proposed.config);
  return out;
}

std::vector<Config> configs_of(const Proposal& proposal) {
  std::vector<Config> configs;
  const auto add = [&](const Config& config) {
    if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
  };
  for (const NamedConfig& choice : proposal.choices) add(choice.config);
  for (const Config& config : proposal.first_of_paths) add(config);
  for (const ProposedConfig& proposed : proposal.space) add(proposed.config);
  return configs;
}

bool is_wanted(const TuneTask& task, const Config& config) {
  return !task.limits.path || config.path() == *task.limits.path;
}

bool is_denied(const TuneTask& task, const Config& config, DataType input_type) {
  return task.before && vkgemm::is_denied(*task.before, config, input_type);
}

Result<void> check_tables(const TuneTask& task, const DeviceCaps& caps) {
  if (task.table && !task.table_is_optional) {
    if (auto checked = check_device(*task.table, caps); !checked) return checked;
  }
  if (!task.before) return {};
  if (auto checked = check_device(*task.before, caps); !checked) return checked;
  if (const auto reason = why_not_continued(*task.before, caps.name, driver_text(caps))) {
    return Error{Status::invalid_argument, "--resume: " + *reason};
  }
  return {};
}

}  // namespace vkgemm::tool
