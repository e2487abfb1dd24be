// refusals.cpp: what a tuning table forbids.
#include <algorithm>

#include "text.hpp"
#include "tuning.hpp"

namespace vkgemm {
namespace {

// What the main loop and the accumulators are made of; the rest changes no fragment.
bool has_main_loop_of(const Config& bad, const Config& config) noexcept {
  Config same = config;
  same.swizzle = bad.swizzle;
  same.unroll_k = bad.unroll_k;
  same.slices = bad.slices;
  same.tier = bad.tier;
  same.spin_limit = bad.spin_limit;
  same.pack_a = bad.pack_a;
  same.pack_b = bad.pack_b;
  same.peel = bad.peel;
  same.static_shape = bad.static_shape;
  // The simple schedule needs fewer registers: it may be good where the persistent one is bad.
  if (bad.schedule == Schedule::simple) same.schedule = Schedule::simple;
  same.workgroups = bad.workgroups;
  same.rows = bad.rows;
  return same == bad;
}

// Whether one kernel serves both strategies.
bool have_one_kernel(RowStrategy a, RowStrategy b) noexcept {
  const auto in_tiles_that_share_rows = [](RowStrategy rows) {
    return rows == RowStrategy::panel || rows == RowStrategy::recompute;
  };
  return a == b || (in_tiles_that_share_rows(a) && in_tiles_that_share_rows(b));
}

}  // namespace

bool is_denied(const TuningTable& table, const Config& config, DataType input_type) noexcept {
  return std::ranges::any_of(table.denied, [&](const DeniedConfig& denied) {
    if (denied.input_type && *denied.input_type != input_type) return false;
    return denied.wrong ? has_main_loop_of(denied.config, config) : denied.config == config;
  });
}

std::optional<std::string> why_refused(const TuningTable& table, const Config& config,
                                       const ResolvedProblem& problem,
                                       std::string_view architecture) {
  for (const RefusedConfig& refused : table.refused) {
    if (refused.architecture != architecture) continue;
    if (refused.family == "grouped" && !problem.grouping) continue;
    const RowStrategy rows = refused.config ? refused.config->rows : *refused.rows;
    if (rows != RowStrategy::none && !have_one_kernel(rows, config.rows)) continue;
    if (!refused.config || has_main_loop_of(*refused.config, config)) {
      return concat("refused on ", architecture, ": ", refused.reason);
    }
  }
  return std::nullopt;
}

}  // namespace vkgemm
