// rows.hpp: the results of a benchmark, a row each, as a table, CSV, JSON lines or a plot.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace vkgemm::tool {

struct BenchRow {
  std::string device;
  std::string driver;
  std::string commit;
  std::uint64_t m = 0, n = 0, k = 0;
  std::string groups;  // empty: dense
  std::string type;
  std::string layout_a, layout_b;
  std::string epilogue;
  std::string l2;  // "cold": flushed before each execution; "warm"
  std::string kernel;
  std::string config;
  double plan_ms = 0.0;  // of plan(), which compiles unless the pipeline is known already
  std::size_t repeats = 0;
  double median_ms = 0.0;
  double min_ms = 0.0;
  double tflops = 0.0;           // from the median
  double ceiling_tflops = 0.0;   // 0: not measured, or not of this type
  double relative_error = -1.0;  // of sampled rows; below 0: not verified
  bool verified = false;         // every sampled element was within its bound
  std::string error;             // why there is no time

  double fraction() const noexcept { return ceiling_tflops > 0.0 ? tflops / ceiling_tflops : 0.0; }
};

void print_table_header(std::FILE* out);
void print_table_row(std::FILE* out, const BenchRow& row);
void print_csv_header(std::FILE* out);
void print_csv_row(std::FILE* out, const BenchRow& row);
void print_json_line(std::FILE* out, const BenchRow& row);

// Fraction of the ceiling (TFLOP/s where there is none) over the cube root of M*N*K, as SVG: the
// best row of each size, a line for each type, layout and epilogue.
std::string plot_svg(const std::vector<BenchRow>& rows);

}  // namespace vkgemm::tool
