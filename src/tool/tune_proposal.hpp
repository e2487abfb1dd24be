// tune_proposal.hpp: what the search of one problem begins with.
#pragma once

#include <cstddef>
#include <vector>

#include "problem/resolved_problem.hpp"
#include "tool/tune_session.hpp"
#include "tool/tune_task.hpp"
#include "tuner/config_space.hpp"
#include "tuning/device_tables.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm::tool {

struct Proposal {
  std::vector<NamedConfig> choices;  // what tables choose
  std::vector<tuner::ProposedConfig> space;
  std::vector<Config> first_of_paths;  // one of each, looked at whatever the time
  const TuningTable* guide = nullptr;  // whose estimates the search follows
  std::size_t legal = 0;               // of all that there are, whatever the estimate says
};

// The problem as this device computes it: what the caller packed lies in the device's order. An
// error if the device gains nothing by packing.
Result<ResolvedProblem> resolve_on(const DeviceCaps& caps, const DeviceTables& tables,
                                   const Problem& problem);

// `built_in` are the device's own tables, without any that are loaded.
Proposal propose(const TuneTask& task, const ResolvedProblem& problem, const DeviceTables& built_in,
                 const DeviceCaps& caps);

// The configurations of all, each once, in the order in which they are looked at.
std::vector<Config> configs_of(const Proposal& proposal);

// Two tests of whether a configuration may be tried at all.
bool is_wanted(const TuneTask& task, const Config& config);
bool is_denied(const TuneTask& task, const Config& config, DataType input_type);

// Why this device is not the one that the task's tables are for. Times of another device or driver
// are not to stand beside this one's.
Result<void> check_tables(const TuneTask& task, const DeviceCaps& caps);

}  // namespace vkgemm::tool
