// refusals.hpp: configurations that are known to be bad. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"

namespace vkgemm {

// Families of table rows: "gemm" is for all problems, "grouped" for those with groups, codes_family
// for those with codes, Input::family for those with such an input.
bool is_row_family(std::string_view name);
bool is_of_family(const ResolvedProblem& problem, std::string_view family);

// A configuration that must not be used on an architecture, and why: compilers that spill, drivers
// that compute wrongly.
struct RefusedConfig {
  std::string architecture;
  std::string family = "gemm";  // the problems: is_of_family()
  std::optional<Config> config = std::nullopt;
  std::optional<RowStrategy> rows = std::nullopt;  // instead of config: all of that strategy
  std::string reason;
};

// Why a configuration is refused on an architecture, if it is. Parameters that change neither the
// main loop nor the accumulators (swizzle, slices, packing, …) make no difference; a refusal with
// schedule=persistent is of that schedule only, and one with rows=panel, recompute or resident of
// the kernels that these strategies have.
std::optional<std::string> why_refused(std::span<const RefusedConfig> refused, const Config& config,
                                       const ResolvedProblem& problem,
                                       std::string_view architecture);

// True if what is bad of one configuration is so of another: both have one main loop and one form
// of accumulators, whatever their slices, packing and the like. A bad persistent schedule says
// nothing of the simple one.
bool forbids(const Config& bad, const Config& config) noexcept;

}  // namespace vkgemm
