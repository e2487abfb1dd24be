// case_tuner.hpp: the search for the fastest configurations of one problem.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "headless/runner.hpp"
#include "tool/timing.hpp"
#include "tool/tune_proposal.hpp"
#include "tool/tune_session.hpp"
#include "tool/tune_task.hpp"
#include "tuner/plan_builder.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm::tool {

// The parts that all problems of a process share.
struct Bench {
  const TuneTask& task;
  const TuneSession& session;
  headless::Runner& runner;
  tuner::PlanBuilder& builder;
  OperandPool& pool;
  const headless::Buffer* flush;  // null: none
  const DeviceTables& tables;
  std::function<void(const std::string&)> say;
};

// Another process is to go on: the driver of a device that died may answer nothing any more.
struct StartAgain {
  bool explained = true;  // what did it was told
};

// The configurations that are not known for this problem, nor denied.
std::vector<Config> worth_building(const Bench& bench, std::size_t index,
                                   std::vector<Config> configs);

// Tunes problem number `index`, and says what it finds. A StartAgain, or an exception that says why
// the problem cannot be tuned.
void tune_case(const Bench& bench, std::size_t index, const Proposal& proposal);

}  // namespace vkgemm::tool
