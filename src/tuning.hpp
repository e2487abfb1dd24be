// tuning.hpp: the tuning tables: which configurations are worth considering for which problems.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = UINT64_MAX;
  bool contains(std::uint64_t value) const noexcept { return value >= min && value <= max; }
};

// One row: where it applies, what it proposes, how good that is, and how anybody knows.
struct TuningRow {
  std::string family = "gemm";
  std::vector<DataType> input_types;  // empty: any
  std::optional<Layout> a_layout;     // not set: any
  std::optional<Layout> b_layout;
  Range m, n, k;
  Config config;
  // Relative throughput of a busy device with this configuration on large shapes: what choose()
  // weighs wave quantisation against. Only ratios within one table count.
  double rate = 1.0;
  std::string provenance;  // "measured: …", "compiled: …" or "derived: …"

  bool matches(const ResolvedProblem& problem) const noexcept;
};

// A configuration that must not be used on an architecture, and why: compilers that spill, drivers
// that compute wrongly.
struct RefusedConfig {
  std::string architecture;
  Config config;
  std::string reason;
};

struct TuningTable {
  std::string architecture;
  std::vector<TuningRow> rows;
  std::vector<RefusedConfig> refused;
};

// Parses one table. Errors name the row and the field. `source` stands in front of messages.
// The format, keys in any order, all others refused, sizes optional with either end open:
//   {"architecture": "amd_rdna3",
//    "rows": [{"family": "gemm", "input_types": ["f16"], "a_layout": "row_major",
//              "b_layout": "col_major", "m": {"min": 1, "max": 16}, "n": {…}, "k": {…},
//              "config": "khr:tile=…", "rate": 100.0, "provenance": "derived: …"}],
//    "refused": [{"architecture": "amd_rdna3", "config": "khr:tile=…", "reason": "…"}]}
// Only architecture, rows, and in a row config, rate and provenance are required.
Result<TuningTable> parse_tuning_table(std::string_view json, std::string_view source);

// Why the table refuses a configuration on an architecture, if it does. The order in which tiles
// are visited (swizzle) makes no difference: it changes no register and no result.
std::optional<std::string> why_refused(const TuningTable& table, const Config& config,
                                       std::string_view architecture);

// The same by any of the tables built in. Part of legality: no caller gets around it.
std::optional<std::string> why_refused(const Config& config, std::string_view architecture);

// The table of an architecture as built in; "generic" for those that have none of their own.
// Parsed once per process.
const TuningTable& built_in_table(std::string_view architecture);

}  // namespace vkgemm
