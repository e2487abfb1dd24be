// rows.hpp: the results of a benchmark, a row each: read from JSON lines, compared, printed. No
// Vulkan: stored rows can be read anywhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm::report {

// A clock below this share of its best makes a time that is not to be trusted.
inline constexpr double clock_is_up = 0.95;

struct BenchRow {
  std::string device;
  std::string driver;
  std::string commit;
  std::string suite;  // empty: none
  std::uint64_t m = 0, n = 0, k = 0;
  std::string groups;  // empty: dense
  std::string type;
  std::string layout_a = "row_major", layout_b = "row_major";
  std::string packed;  // operands that were packed before: "a", "b" or "ab"; empty: none
  std::string epilogue;
  std::string l2 = "cold";  // "cold": flushed before each execution; "warm"
  std::string kernel;
  std::string config;
  double plan_ms = 0.0;  // of plan(), which compiles unless the pipeline is known already
  std::uint64_t repeats = 0;
  double median_ms = 0.0;  // 0: not timed
  double min_ms = 0.0;
  double tflops = 0.0;           // from the median
  double bytes = 0.0;            // of all operands and results, each once; 0: not known
  double ceiling_tflops = 0.0;   // of the units that compute it; 0: not measured
  double bandwidth_gbs = 0.0;    // of a copy, read and written; 0: not measured
  double relative_error = -1.0;  // of sampled rows; below 0: not verified
  bool verified = false;         // every sampled element was within its bound
  double clock = 0.0;            // its share of its best before the timing; 0: not known
  std::string error;             // why there is no time

  // The time that others took for the same case, if they were asked: see compare.hpp.
  std::string peer, peer_driver;
  double peer_ms = 0.0;
  double baseline_ms = 0.0;

  bool timed() const noexcept { return error.empty() && median_ms > 0.0; }
  bool wrong() const noexcept { return error.empty() && relative_error >= 0.0 && !verified; }
  bool clock_was_low() const noexcept { return timed() && clock > 0.0 && clock < clock_is_up; }
  // True if its time is one to compare with: that of a wrong result is none.
  bool counts() const noexcept { return timed() && !wrong(); }
  double fraction() const noexcept { return ceiling_tflops > 0.0 ? tflops / ceiling_tflops : 0.0; }
  double times_peer() const noexcept { return counts() ? peer_ms / median_ms : 0.0; }
  double of_baseline() const noexcept { return baseline_ms > 0.0 ? median_ms / baseline_ms : 0.0; }
};

// A key for what was computed, whoever did it with which kernel: rows of one case can be compared.
std::string case_key(const BenchRow& row);

// "8192x8192x8192 f16, B col_major, heavy", "8192x8192x8192 packed b f16"
std::string describe(const BenchRow& row);

// "8192x8192x8192", of groups "640x128x256 in 4", of packed operands "8192x8192x8192 packed b"
std::string shape(const BenchRow& row);

// Reads JSON lines of `vkgemm bench --json` or of peers.py. Keys that are not known are passed
// over: what is needed is m, n, k, type and epilogue, and all else has a default. Errors begin
// with source:line and name the field.
Result<std::vector<BenchRow>> parse_rows(std::string_view text, std::string_view source);

// The line that --json prints, without its end.
std::string json_line(const BenchRow& row);

enum class Format : std::uint8_t { table, json, markdown };

// Columns of a table that are there only if somebody asked for them.
struct Columns {
  bool peer = false;
  bool baseline = false;
};

void print_header(std::FILE* out, Format format, const Columns& columns);
void print_row(std::FILE* out, Format format, const Columns& columns, const BenchRow& row);

// "vkgemm: NVIDIA H200, NVIDIA 580.159.04, 4b897e6", a line for each device and driver.
void print_origins(std::FILE* out, std::string_view who, const std::vector<BenchRow>& rows);

}  // namespace vkgemm::report
