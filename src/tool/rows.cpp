#include "tool/rows.hpp"

#include <nlohmann/json.hpp>

namespace vkgemm::tool {
namespace {

std::string shape(const BenchRow& row) {
  const std::string shape =
      std::to_string(row.m) + "x" + std::to_string(row.n) + "x" + std::to_string(row.k);
  return row.groups.empty() ? shape : shape + " in " + row.groups.substr(0, row.groups.find(' '));
}

std::string verdict(const BenchRow& row) {
  if (!row.error.empty()) return row.error;
  if (row.relative_error < 0.0) return "unverified";
  char text[48];
  std::snprintf(text, sizeof text, "%s %.1e", row.verified ? "ok" : "WRONG", row.relative_error);
  return text;
}

// "row col": the first words of both layouts.
std::string layouts(const BenchRow& row) {
  return row.layout_a.substr(0, 3) + ' ' + row.layout_b.substr(0, 3);
}

std::string quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

void print_table_header(std::FILE* out) {
  std::fprintf(out, "%-20s %-4s %-7s %-12s %-4s %8s %10s %10s %9s %8s  %-16s %s\n", "M x N x K",
               "type", "A B", "epilog", "L2", "plan ms", "median ms", "min ms", "TFLOP/s",
               "of ceil.", "error", "configuration");
}

void print_table_row(std::FILE* out, const BenchRow& row) {
  char fraction[16] = "-";
  if (row.fraction() > 0.0) std::snprintf(fraction, sizeof fraction, "%.3f", row.fraction());
  std::fprintf(out, "%-20s %-4s %-7s %-12s %-4s %8.4g %10.4f %10.4f %9.4g %8s  %-16s %s\n",
               shape(row).c_str(), row.type.c_str(), layouts(row).c_str(), row.epilogue.c_str(),
               row.l2.c_str(), row.plan_ms, row.median_ms, row.min_ms, row.tflops, fraction,
               verdict(row).c_str(), row.config.c_str());
  std::fflush(out);
}

void print_csv_header(std::FILE* out) {
  std::fprintf(out,
               "device,driver,commit,m,n,k,groups,type,layout_a,layout_b,epilogue,l2,kernel,config,"
               "plan_ms,repeats,"
               "median_ms,min_ms,tflops,ceiling_tflops,fraction,relative_error,verified,error\n");
}

void print_csv_row(std::FILE* out, const BenchRow& row) {
  std::fprintf(
      out,
      "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%.4g,%zu,%.6g,%.6g,%.6g,%.6g,%.4g,%.3g,%s,%s\n",
      quote(row.device).c_str(), quote(row.driver).c_str(), quote(row.commit).c_str(),
      std::to_string(row.m).c_str(), std::to_string(row.n).c_str(), std::to_string(row.k).c_str(),
      quote(row.groups).c_str(), row.type.c_str(), row.layout_a.c_str(), row.layout_b.c_str(),
      row.epilogue.c_str(), row.l2.c_str(), row.kernel.c_str(), quote(row.config).c_str(),
      row.plan_ms, row.repeats, row.median_ms, row.min_ms, row.tflops, row.ceiling_tflops,
      row.fraction(), row.relative_error, row.verified ? "yes" : "no", quote(row.error).c_str());
  std::fflush(out);
}

void print_json_line(std::FILE* out, const BenchRow& row) {
  nlohmann::ordered_json json;
  json["device"] = row.device;
  json["driver"] = row.driver;
  json["commit"] = row.commit;
  json["m"] = row.m;
  json["n"] = row.n;
  json["k"] = row.k;
  if (!row.groups.empty()) json["groups"] = row.groups;
  json["type"] = row.type;
  json["layout_a"] = row.layout_a;
  json["layout_b"] = row.layout_b;
  json["epilogue"] = row.epilogue;
  json["l2"] = row.l2;
  json["kernel"] = row.kernel;
  json["config"] = row.config;
  if (row.error.empty()) {
    json["plan_ms"] = row.plan_ms;
    json["repeats"] = row.repeats;
    json["median_ms"] = row.median_ms;
    json["min_ms"] = row.min_ms;
    json["tflops"] = row.tflops;
    if (row.ceiling_tflops > 0.0) {
      json["ceiling_tflops"] = row.ceiling_tflops;
      json["fraction"] = row.fraction();
    }
    if (row.relative_error >= 0.0) {
      json["relative_error"] = row.relative_error;
      json["verified"] = row.verified;
    }
  } else {
    json["error"] = row.error;
  }
  std::fprintf(out, "%s\n", json.dump().c_str());
  std::fflush(out);
}

}  // namespace vkgemm::tool
