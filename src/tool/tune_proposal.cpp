#include "tool/tune_proposal.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "device/caps.hpp"
#include "tool/planning.hpp"
#include "tuning/table_file.hpp"

namespace vkgemm::tool {

using support::ProposedConfig;

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
    choose("table", DeviceTables(caps.architecture, {*task.table}).best(problem, caps));
  }
  // The choice for shapes that nobody tuned, so that a tuned one does not hide it.
  if (task.compare && best && best->tuned != nullptr) {
    choose("estimate", built_in.best_estimate(problem, caps));
  }
  const auto allowed = [&](const Config& config) {
    return is_wanted(task, config) && !is_denied(task, config, problem.a.type);
  };
  const auto search = [&](const char* architecture) {
    out.guide = &built_in_table(architecture);
    out.space = support::search_space(*out.guide, problem, target, allowed);
  };
  search(task.from_generic ? "generic" : caps.architecture.c_str());
  // An architecture's table may have nothing for a problem.
  if (out.space.empty()) search("generic");
  out.legal = out.space.size();
  if (out.space.empty()) return out;
  out.space.resize(std::min(out.space.size(), task.limits.per_problem));
  const double most = task.limits.within * out.space.front().estimate;
  std::erase_if(out.space, [&](const ProposedConfig& c) { return c.estimate > most; });
  return out;
}

std::vector<Config> configs_of(const Proposal& proposal) {
  std::vector<Config> configs;
  const auto add = [&](const Config& config) {
    if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
  };
  for (const support::NamedConfig& choice : proposal.choices) add(choice.config);
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
  if (const auto reason = support::why_not_resumed(*task.before, caps.name, driver_text(caps))) {
    return Error{Status::invalid_argument, "--resume: " + *reason};
  }
  return {};
}

}  // namespace vkgemm::tool
