// bench_report.hpp: where the rows of `vkgemm bench` go: printed as they come, beside peers and a
// baseline, then compared.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "report/compare.hpp"
#include "report/rows.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

struct ReportOptions {
  bool json = false;
  bool markdown = false;
  std::vector<std::string> from;
  std::vector<std::string> peers;
  std::string baseline;
  double tolerance = 1.05;

  // `timed`: options that say nothing about rows that are read from files.
  void add(CLI::App& command, const std::vector<CLI::Option*>& timed);

  report::Format format() const;
};

class BenchReport {
 public:
  // Reads all files that the options name; throws if one is wrong.
  explicit BenchReport(const ReportOptions& options);

  // The rows of --from, a later file's in place of an earlier one's.
  const std::vector<report::BenchRow>& stored() const noexcept { return stored_; }

  // `heading` is for people.
  void begin(const std::string& heading);
  void add(report::BenchRow row);

  // Compares. verification_failed, regression or success.
  ExitCode finish();

 private:
  ExitCode compare() const;

  const ReportOptions& options_;
  report::Columns columns_;
  std::vector<report::BenchRow> stored_, baseline_, rows_;
  std::vector<report::BenchRow> peer_rows_;
  report::Fastest peers_, baseline_of_cases_;
};

}  // namespace vkgemm::tool
