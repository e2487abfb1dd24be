// print.cpp: rows as a table, JSON lines or Markdown.
#include <set>

#include "report/rows.hpp"

namespace vkgemm::report {
namespace {

// ", clock at 0.62 of its best", or nothing where the clock was up.
std::string clock_note(const BenchRow& row) {
  if (!row.clock_was_low()) return "";
  char text[48];
  std::snprintf(text, sizeof text, ", clock at %.2f of its best", row.clock);
  return text;
}

std::string verdict(const BenchRow& row) {
  if (!row.error.empty()) return row.error;
  if (row.relative_error < 0.0) return "unverified" + clock_note(row);
  char text[48];
  std::snprintf(text, sizeof text, "%s %.1e", row.verified ? "ok" : "WRONG", row.relative_error);
  return text + clock_note(row);
}

// "row col": the first words of both layouts.
std::string layouts(const BenchRow& row) {
  return row.layout_a.substr(0, 3) + ' ' + row.layout_b.substr(0, 3);
}

// With `none` where there is no figure: all of them are above 0.
std::string figure(const char* format, double value, const char* none) {
  if (value <= 0.0) return none;
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void print_table_row(std::FILE* out, const Columns& columns, const BenchRow& row) {
  std::fprintf(out, "%-24s %-4s %-7s %-12s %-4s %8.4g %10s %10s %9s %8s", shape(row).c_str(),
               row.type.c_str(), layouts(row).c_str(), row.epilogue.c_str(), row.l2.c_str(),
               row.plan_ms, figure("%.4f", row.median_ms, "-").c_str(),
               figure("%.4f", row.min_ms, "-").c_str(), figure("%.4g", row.tflops, "-").c_str(),
               figure("%.3f", row.fraction(), "-").c_str());
  if (columns.peer) {
    std::fprintf(out, " %10s %8s", figure("%.4f", row.peer_ms, "-").c_str(),
                 figure("%.2f", row.times_peer(), "-").c_str());
  }
  if (columns.baseline) {
    std::fprintf(out, " %10s %8s", figure("%.4f", row.baseline_ms, "-").c_str(),
                 figure("%.3f", row.of_baseline(), "-").c_str());
  }
  std::fprintf(out, "  %-16s %s\n", verdict(row).c_str(), row.config.c_str());
}

void print_markdown_row(std::FILE* out, const BenchRow& row) {
  const std::string m = std::to_string(row.m), n = std::to_string(row.n);
  const std::string size = m + "×" + n + "×" + std::to_string(row.k) +
                           (row.groups.empty() ? "" : " in " + row.groups) +
                           (row.packed.empty() ? "" : " packed " + row.packed);
  std::string error = row.error;
  if (error.empty()) {
    error = row.relative_error < 0.0 ? "–" : figure("%.1e", row.relative_error, "0");
  }
  if (row.wrong()) error += " WRONG";
  error += clock_note(row);
  const double peer_tflops = row.times_peer() > 0.0 ? row.tflops / row.times_peer() : 0.0;
  std::fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | `%s` |\n",
               size.c_str(), row.type.c_str(), row.layout_a.c_str(), row.layout_b.c_str(),
               row.epilogue.c_str(), figure("%.4f", row.median_ms, "–").c_str(),
               figure("%.1f", row.tflops, "–").c_str(), figure("%.3f", row.fraction(), "–").c_str(),
               row.peer_ms > 0.0 ? row.peer.c_str() : "–", figure("%.4f", row.peer_ms, "–").c_str(),
               figure("%.1f", peer_tflops, "–").c_str(),
               figure("%.2f×", row.times_peer(), "–").c_str(), error.c_str(), row.config.c_str());
}

}  // namespace

std::string case_key(const BenchRow& row) {
  std::string key;
  for (const std::uint64_t size : {row.m, row.n, row.k}) key += std::to_string(size) + ' ';
  for (const std::string* part : {&row.groups, &row.type, &row.layout_a, &row.layout_b, &row.packed,
                                  &row.epilogue, &row.l2}) {
    key += *part + '\n';
  }
  return key;
}

std::string shape(const BenchRow& row) {
  std::string shape =
      std::to_string(row.m) + "x" + std::to_string(row.n) + "x" + std::to_string(row.k);
  if (!row.groups.empty()) shape += " in " + row.groups.substr(0, row.groups.find(' '));
  return row.packed.empty() ? shape : shape + " packed " + row.packed;
}

std::string describe(const BenchRow& row) {
  std::string text = shape(row) + ' ' + row.type;
  if (row.layout_a != "row_major") text += ", A " + row.layout_a;
  if (row.layout_b != "row_major") text += ", B " + row.layout_b;
  if (row.epilogue != "plain") text += ", " + row.epilogue;
  if (row.l2 != "cold") text += ", L2 " + row.l2;
  return text;
}

void print_header(std::FILE* out, Format format, const Columns& columns) {
  switch (format) {
    case Format::table:
      std::fprintf(out, "%-24s %-4s %-7s %-12s %-4s %8s %10s %10s %9s %8s", "M x N x K", "type",
                   "A B", "epilog", "L2", "plan ms", "median ms", "min ms", "TFLOP/s", "of ceil.");
      if (columns.peer) std::fprintf(out, " %10s %8s", "peer ms", "x peer");
      if (columns.baseline) std::fprintf(out, " %10s %8s", "old ms", "new/old");
      std::fprintf(out, "  %-16s %s\n", "error", "configuration");
      break;
    case Format::json:
      break;
    case Format::markdown:
      std::fprintf(out,
                   "| M×N×K | type | A | B | epilogue | vkgemm ms | TFLOP/s | of ceiling | peer | "
                   "peer ms | peer TFLOP/s | vkgemm/peer | error | configuration |\n"
                   "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
      break;
  }
  std::fflush(out);
}

void print_row(std::FILE* out, Format format, const Columns& columns, const BenchRow& row) {
  switch (format) {
    case Format::table:
      print_table_row(out, columns, row);
      break;
    case Format::json:
      std::fprintf(out, "%s\n", json_line(row).c_str());
      break;
    case Format::markdown:
      print_markdown_row(out, row);
      break;
  }
  std::fflush(out);
}

void print_origins(std::FILE* out, std::string_view who, const std::vector<BenchRow>& rows) {
  std::set<std::string> origins, commits;
  for (const BenchRow& row : rows) {
    origins.insert(row.device + ", " + row.driver);
    if (!row.commit.empty()) commits.insert(row.commit);
  }
  for (const std::string& origin : origins) {
    std::fprintf(out, "%.*s: %s", static_cast<int>(who.size()), who.data(), origin.c_str());
    for (const std::string& commit : commits) std::fprintf(out, ", %s", commit.c_str());
    std::fprintf(out, "\n");
  }
}

}  // namespace vkgemm::report
