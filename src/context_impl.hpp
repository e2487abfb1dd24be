// context_impl.hpp: what a Context and the Plans made from it share.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abort_counter.hpp"
#include "choose.hpp"
#include "log.hpp"
#include "nearest.hpp"
#include "pipeline_cache.hpp"
#include "tuning.hpp"
#include "vk.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// The tuning tables of one device. Estimates of two tables cannot be compared (their rates have
// different scales), so the first one that has a legal row decides: those that were loaded, the
// architecture's own, the generic one. Before its rows comes what was tuned (nearest.hpp), in that
// table or one before it: the nearest shape, of equally near ones that of the first table. What a
// loaded table denies is never chosen.
class DeviceTables {
 public:
  // With those that were loaded, the preferred one first.
  explicit DeviceTables(std::string_view architecture, std::vector<TuningTable> loaded = {});
  DeviceTables(const DeviceTables&) = delete;  // rows are pointed at
  DeviceTables& operator=(const DeviceTables&) = delete;

  // Rows that are legal here, best first, without repetitions of a configuration.
  std::vector<ScoredRow> rank(const ResolvedProblem& problem, const DeviceCaps& caps) const;

  // The first of rank().
  std::optional<ScoredRow> best(const ResolvedProblem& problem, const DeviceCaps& caps) const;

  // The first of them by estimates alone, whatever was tuned.
  std::optional<ScoredRow> best_estimate(const ResolvedProblem& problem,
                                         const DeviceCaps& caps) const;

  // What a configuration would take, in microseconds, by the rate of a similar row of the first
  // table that has one.
  std::optional<double> estimate(const Config& config, const ResolvedProblem& problem,
                                 const DeviceCaps& caps) const;

  // A row that proposes this configuration, in any number of slices and packing any
  // operand, for this problem; or null.
  const TuningRow* find(const Config& config, const ResolvedProblem& problem) const;

  // The tuned shape that speaks for the problem, whether or not the estimate objects.
  std::optional<Nearest> nearest(const ResolvedProblem& problem, const DeviceCaps& caps) const;

  // The loaded table that a row is of; null for rows that are built in.
  const TuningTable* loaded_table_of(const TuningRow& row) const noexcept;

  std::string why_nothing_is_legal(const ResolvedProblem& problem, const DeviceCaps& caps) const;

  // The first reason against the rows of one path; empty if no row of that path matches.
  std::string why_not_path(Path path, const ResolvedProblem& problem, const DeviceCaps& caps) const;

 private:
  // What a table estimates to be best, with the table.
  struct Estimated {
    const TuningTable* table = nullptr;
    ScoredRow row;
  };
  std::optional<Estimated> estimated(const ResolvedProblem& problem, const DeviceCaps& caps) const;
  std::optional<Nearest> nearest(const std::optional<Estimated>& other,
                                 const ResolvedProblem& problem, const DeviceCaps& caps) const;
  std::optional<ScoredRow> tuned(const std::optional<Estimated>& other,
                                 const ResolvedProblem& problem, const DeviceCaps& caps) const;
  bool denied(const Config& config, DataType input_type) const noexcept;

  std::vector<TuningTable> loaded_;
  std::vector<const TuningTable*> tables_;  // the preferred one first
};

struct Context::Impl {
  Impl(const ContextCreateInfo& info, const DeviceFunctions& device_functions,
       const VkPhysicalDeviceMemoryProperties& memory, DeviceCaps device_caps,
       PipelineCacheInfo cache_info, std::vector<TuningTable> loaded)
      : log(info.log),
        functions(device_functions),
        caps(std::move(device_caps)),
        caps_after_abort(caps),
        tables(caps.architecture, std::move(loaded)),
        pipelines(functions, log, std::move(cache_info)),
        aborts(functions, memory, info.device) {
    caps_after_abort.device_barrier = {false, "workgroups gave up waiting on this device"};
  }

  Result<Plan> make_plan(const std::shared_ptr<Impl>& self, const Problem& problem,
                         const Config* config);

  // What plans are made for: one barrier that had to be given up is the last one that is tried.
  const DeviceCaps& usable_caps() const noexcept {
    return aborts.count() == 0 ? caps : caps_after_abort;
  }

  Log log;
  DeviceFunctions functions;
  DeviceCaps caps;
  DeviceCaps caps_after_abort;
  DeviceTables tables;
  PipelineCache pipelines;
  AbortCounter aborts;
  std::atomic<bool> lost = false;
};

// What every call on a lost device returns.
Error device_lost_error();

}  // namespace vkgemm
