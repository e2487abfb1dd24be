#include "tool/bench_report.hpp"

#include <algorithm>
#include <cstdio>

#include "tool/options.hpp"

namespace vkgemm::tool {

using report::BenchRow;
using report::Format;

namespace {

std::vector<BenchRow> read_rows(const std::string& option, const std::string& file) {
  return unwrap(report::parse_rows(read_file(option, file), file));
}

}  // namespace

void ReportOptions::add(CLI::App& command, const std::vector<CLI::Option*>& timed) {
  CLI::Option* as_json =
      command.add_flag("--json", json, "Print a JSON object a line, which bench/plot.py draws");
  command.add_flag("--markdown", markdown, "Print a Markdown table")->excludes(as_json);
  CLI::Option* stored =
      command
          .add_option("--from", from,
                      "Report what --json printed before, without a device; may be repeated, a "
                      "later file replaces an earlier one's rows of the same cases")
          ->type_name("FILE");
  for (CLI::Option* option : timed) stored->excludes(option);
  command
      .add_option("--peers", peers,
                  "Lines of bench/peers/peers.py: the fastest of each case beside ours; may be "
                  "repeated")
      ->type_name("FILE");
  CLI::Option* old =
      command
          .add_option("--baseline", baseline,
                      "Lines of an older run: compare the fastest rows of each case, and fail if "
                      "one has become slower")
          ->type_name("FILE");
  command.add_option("--tolerance", tolerance, "A regression takes more than this times as long")
      ->check(CLI::Range(1.0, 100.0))
      ->capture_default_str()
      ->needs(old);
}

Format ReportOptions::format() const {
  return json ? Format::json : markdown ? Format::markdown : Format::table;
}

BenchReport::BenchReport(const ReportOptions& options)
    : options_(options),
      columns_{.peer = !options.peers.empty(), .baseline = !options.baseline.empty()} {
  for (const std::string& file : options.from) {
    report::replace_cases(stored_, read_rows("--from", file));
  }
  for (const std::string& file : options.peers) {
    const std::vector<BenchRow> rows = read_rows("--peers", file);
    peer_rows_.insert(peer_rows_.end(), rows.begin(), rows.end());
  }
  peers_ = report::fastest(peer_rows_);
  if (options.baseline.empty()) return;
  baseline_ = read_rows("--baseline", options.baseline);
  baseline_of_cases_ = report::fastest(baseline_);
}

void BenchReport::begin(const std::string& heading) {
  const Format format = options_.format();
  if (format == Format::markdown) {
    report::print_origins(stdout, "vkgemm", stored_);
    std::printf("%s", heading.c_str());
    report::print_origins(stdout, "peers", peer_rows_);
    std::printf("\n");
  }
  if (format == Format::table) {
    report::print_origins(stdout, "from", stored_);
    std::printf("%s", heading.c_str());
  }
  report::print_header(stdout, format, columns_);
}

void BenchReport::add(BenchRow row) {
  report::join_peer(row, peers_);
  if (const auto old = baseline_of_cases_.find(report::case_key(row));
      old != baseline_of_cases_.end()) {
    row.baseline_ms = old->second.median_ms;
  }
  report::print_row(stdout, options_.format(), columns_, row);
  rows_.push_back(std::move(row));
}

ExitCode BenchReport::finish() {
  const auto wrong =
      std::count_if(rows_.begin(), rows_.end(), [](const BenchRow& row) { return row.wrong(); });
  const auto untimed =
      std::count_if(rows_.begin(), rows_.end(), [](const BenchRow& row) { return !row.timed(); });
  if (untimed != 0) {
    std::fprintf(stderr, "vkgemm: %lld of %zu rows have no time\n", static_cast<long long>(untimed),
                 rows_.size());
  }
  const ExitCode compared = options_.baseline.empty() ? success : compare();
  if (wrong == 0) return compared;
  std::fprintf(stderr, "vkgemm: %lld of %zu results are wrong\n", static_cast<long long>(wrong),
               rows_.size());
  return verification_failed;
}

ExitCode BenchReport::compare() const {
  const report::Comparison comparison = report::compare(rows_, baseline_, options_.tolerance);
  for (const std::string& warning : comparison.warnings) {
    std::fprintf(stderr, "vkgemm: --baseline: %s\n", warning.c_str());
  }
  // A comparison of nothing must not look like one that went well.
  if (comparison.matched == 0) {
    throw Failure(usage_error, "--baseline: " + options_.baseline + " has none of these cases");
  }
  const bool for_people = options_.format() == Format::table;
  report::print_comparison(for_people ? stdout : stderr, comparison, options_.tolerance);
  return comparison.regressions == 0 ? success : regression;
}

}  // namespace vkgemm::tool
