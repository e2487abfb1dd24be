// plan_impl.hpp: a plan: everything that record() needs, worked out beforehand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context_impl.hpp"
#include "kernel.hpp"
#include "operand_check.hpp"
#include "resolved_problem.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct Plan::Impl {
  std::shared_ptr<Context::Impl> context;  // keeps the pipeline
  Problem problem;
  ResolvedProblem resolved;
  Config config;                    // of no meaning for an empty problem
  std::optional<ScoredRow> choice;  // what choose() thought, unless the caller chose
  const TuningRow* row = nullptr;   // null: no table proposes it, the caller did
  Kernel kernel;                    // no dispatches for an empty problem
  OperandRules rules;
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipeline sum_pipeline = VK_NULL_HANDLE;  // of split-K's second step
  std::vector<VkPipeline> pack_pipelines;    // of kernel.packs

  std::string provenance() const;
  std::string command_line() const;
  std::string explain() const;
};

}  // namespace vkgemm
