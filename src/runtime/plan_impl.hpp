// plan_impl.hpp: a plan: everything that record() needs, worked out beforehand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dispatch_limit.hpp"
#include "kernels/dispatch_plan.hpp"
#include "problem/resolved_problem.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/operand_check.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

struct Plan::Impl {
  explicit Impl(std::shared_ptr<Context::Impl> from)
      : context(std::move(from)), caps(&context->usable_caps()), tables(context->tables()) {}

  std::shared_ptr<Context::Impl> context;      // keeps the pipeline
  const DeviceCaps* caps;                      // the context's, as they were when this was planned
  std::shared_ptr<const DeviceTables> tables;  // likewise
  bool is_product = false;                     // or it prepares an operand, in the product's place
  Problem problem;
  ResolvedProblem resolved;
  Config config;                         // of no meaning for an empty problem
  std::optional<ResolvedMatrix> packed;  // what it packs
  PackedLayout layout;                   // the same for the caller
  std::optional<ScoredRow> choice;       // what the tables chose, unless the caller did
  std::optional<double> estimate_us;     // of one repetition, before Problem::estimate_scale
  std::string overruled;           // what a loaded table says against it, and why that is void
  const TuningRow* row = nullptr;  // null: no table proposes it, the caller did
  DispatchPlan dispatch_plan;      // no dispatches for an empty problem
  OperandRules rules;
  Fingerprints fingerprints;
  std::vector<VkPipeline> before;  // of the dispatch plan's steps
  VkPipeline product = VK_NULL_HANDLE;
  std::vector<VkPipeline> after;
  VkPipeline carry = VK_NULL_HANDLE;   // brings parameters to memory, if a step has them there
  std::optional<DispatchTimes> times;  // if the problem limits them
  std::uint32_t dispatch_count = 0;
  VkDeviceAddress aborts = 0;  // the word that counts barriers that were given up

  std::string provenance() const;
  std::string command_line() const;
  std::string explain() const;
  // "might be faster: khr_direct:…; it needs a self-test that passed …"; empty if nothing might be.
  std::string untested() const;
};

}  // namespace vkgemm
