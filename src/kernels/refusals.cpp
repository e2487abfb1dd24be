#include "kernels/refusals.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "kernels/main_loop.hpp"
#include "problem/inputs/codes.hpp"

namespace vkgemm {
namespace {

// True if one kernel serves both strategies.
bool have_one_kernel(RowStrategy a, RowStrategy b) noexcept {
  const auto in_tiles_that_share_rows = [](RowStrategy rows) {
    return rows == RowStrategy::panel || rows == RowStrategy::recompute;
  };
  return a == b || (in_tiles_that_share_rows(a) && in_tiles_that_share_rows(b));
}

}  // namespace

bool forbids(const Config& bad, const Config& config) noexcept {
  if (bad.main_loop() != config.main_loop()) return false;
  // The simple schedule needs fewer registers: it may be good where the persistent one is bad.
  if (bad.schedule == Schedule::persistent && config.schedule == Schedule::simple) return false;
  const auto agree = [&](const Parameter& parameter) {
    if (!parameter.forms_tile) return true;
    for (std::size_t i = 0; i < parameter.count; ++i) {
      if (parameter.get(bad, i) != parameter.get(config, i)) return false;
    }
    return true;
  };
  return std::ranges::all_of(common_parameters(), agree) &&
         std::ranges::all_of(descriptor(bad).parameters, agree);
}

bool is_row_family(std::string_view name) {
  return name == "gemm" || name == "grouped" || name == codes_family ||
         std::ranges::any_of(inputs(), [name](const Input* input) {
           return !name.empty() && input->family == name;
         });
}

bool is_of_family(const ResolvedProblem& problem, std::string_view family) {
  return family == "gemm" || (family == "grouped" && problem.grouping) ||
         (family == codes_family && problem.b.quantisation) ||
         (!family.empty() && family == problem.input->family);
}

std::optional<std::string> why_refused(std::span<const RefusedConfig> refused, const Config& config,
                                       const ResolvedProblem& problem,
                                       std::string_view architecture) {
  for (const RefusedConfig& bad : refused) {
    if (bad.architecture != architecture) continue;
    if (!is_of_family(problem, bad.family)) continue;
    const RowStrategy rows = bad.config ? bad.config->rows : *bad.rows;
    if (rows != RowStrategy::none && !have_one_kernel(rows, config.rows)) continue;
    if (!bad.config || forbids(*bad.config, config)) {
      return concat("refused on ", architecture, ": ", bad.reason);
    }
  }
  return std::nullopt;
}

}  // namespace vkgemm
