// table.hpp: the tuning tables: which configurations are worth considering for which problems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/refusals.hpp"
#include "kernels/timing.hpp"
#include "problem/resolved_problem.hpp"
#include "tuning/tuned_problem.hpp"
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
  // The problems that it is for: is_of_family().
  std::string family = "gemm";
  std::vector<DataType> input_types;  // empty: any
  std::optional<Layout> a_layout;     // not set: any
  std::optional<Layout> b_layout;
  Range m, n, k;  // of a grouped problem, what an average group has; of a gated one, n is 2N
  Config config;
  // TFLOP/s with this configuration on large shapes (of the skinny loop: on wide ones with as many
  // rows as the tile), of a device with timing.compute_units.
  double rate = 1.0;
  std::string provenance;  // "measured: …", "compiled: …" or "derived: …"

  bool matches(const ResolvedProblem& problem) const noexcept;
  // The same for a problem of any size.
  bool matches_kind(const ResolvedProblem& problem) const noexcept;
  // The same in any layouts.
  bool serves(const ResolvedProblem& problem) const noexcept;
};

// The fastest configuration that was measured for one shape. nearest.hpp says for which others it
// speaks.
struct TunedShape {
  TunedProblem problem;
  TuningRow row;  // configuration, rate and provenance
  double microseconds = 0.0;
  std::string arguments;  // of `vkgemm run`, for people and for --resume
  bool complete = true;   // the search came to its end; else --resume begins it again
};

// A configuration that gave wrong results on a device, or lost it: never chosen there.
struct DeniedConfig {
  Config config;
  std::string reason;
  std::optional<DataType> input_type = std::nullopt;  // not set: any
  // Wrong results are of the main loop, whatever the slices, packing, … (as of a refusal). Else it
  // failed, and exactly this one is denied.
  bool wrong = false;
};

struct TuningTable {
  std::string architecture;
  // The PCI ids of its devices, if the table is for some of the architecture. It then has the
  // architecture's rows, and its timing with changes.
  std::vector<std::uint32_t> device_ids;
  std::string device;  // that `tuned` was measured on, as the driver names it; may be empty
  std::string driver;
  TimingModel timing;
  bool has_timing = false;
  std::vector<TuningRow> rows;
  std::vector<TunedShape> tuned;
  std::vector<RefusedConfig> refused;
  std::vector<DeniedConfig> denied;
  std::string source;  // the file it was loaded from; empty: built in
};

// Tables by their names.
using TuningTables = std::map<std::string, TuningTable, std::less<>>;

// Longer ones are not read.
inline constexpr std::size_t longest_tuning_table = std::size_t{16} << 20;

// True if the tile or the main loop is another one.
inline bool is_reshaped(const Config& config, const Config& from) noexcept {
  return config.tile_m != from.tile_m || config.tile_n != from.tile_n ||
         config.tile_k != from.tile_k || config.main_loop() != from.main_loop();
}

// The provenance of a configuration that was made from a row, for inputs of this type.
std::string provenance_of(const TuningRow& row, const Config& config, DataType input);

// Parses one table. Errors name line, row and field. `source` stands in front of messages.
// The format, keys in any order, all others refused, sizes optional with either end open:
//   {"architecture": "amd_rdna3",
//    "rows": [{"family": "gemm", "input_types": ["f16"], "a_layout": "row_major",
//              "b_layout": "col_major", "m": {"min": 1, "max": 16}, "n": {…}, "k": {…},
//              "config": "khr:tile=…", "rate": 100.0, "provenance": "derived: …"}],
//    "timing": {"compute_units": 132, "launch": 1.6, …, "provenance": "measured: …"},
//    "refused": [{"architecture": "amd_rdna3", "family": "grouped", "config": "khr:tile=…",
//                 "reason": "…"}, {"architecture": "amd_rdna3", "rows": "panel", "reason": "…"}],
//    "device": "NVIDIA H200", "driver": "NVIDIA 580.159.04", "device_ids": ["0x2335"],
//    "tuned": [{"family": "gemm", "input_type": "f16", "a_layout": "row_major",
//               "b_layout": "row_major", "aligned": true, "packed": "b",
//               "epilogue": "c_aux", "d_type": "f16", "d_col_major": false,
//               "m": 4096, "n": 4096, "k": 4096, "count": 1,
//               "config": "khr:tile=…", "microseconds": 441.2, "problem": "--m 4096 …",
//               "complete": true, "provenance": "measured: …"}],
//    "denied": [{"config": "khr:tile=…", "input_type": "f16", "verdict": "wrong",
//                "reason": "…"}]}
// Only architecture, rows, and in a row config, rate and provenance are required, of a tuned shape
// all but packed, epilogue, d_type (the input type), d_col_major, f32_arithmetic (ieee), count,
// problem and complete, and of what is denied config and reason (verdict: "wrong" or "failed"); a
// timing has all members of TimingModel. A table with device_ids is for devices of an architecture
// that has a table: it has no rows, and of a timing only what differs. device, driver, tuned and
// denied are what `vkgemm tune` writes.
// `architectures`: the tables that one with device_ids may add to.
Result<TuningTable> parse_tuning_table(std::string_view json, std::string_view source,
                                       const TuningTables& architectures = {});

// What the table denies the configuration for, with inputs of this type; null: nothing.
const DeniedConfig* denial(const TuningTable& table, const Config& config, DataType input_type);

// True if there is such.
bool is_denied(const TuningTable& table, const Config& config, DataType input_type);

// The configurations that any of the built-in tables refuses on an architecture. They are part of
// legality for all who make plans (Target): no caller of a Context gets around it.
std::vector<RefusedConfig> built_in_refusals(std::string_view architecture);

// The table with that name as built in: an architecture, or one of its devices. "generic" for
// architectures that have none of their own. Parsed once per process.
const TuningTable& built_in_table(std::string_view name);

// The name of the built-in table for a device: that of the table with its PCI id, else of the table
// for a device of its architecture with the most similar number of compute units, else the
// architecture.
std::string_view table_name(const DeviceCaps& caps);

}  // namespace vkgemm
