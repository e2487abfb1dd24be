#include "report/compare.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace vkgemm::report {
namespace {

bool faster(const BenchRow& row, const BenchRow& than) {
  return row.counts() && (!than.counts() || row.median_ms < than.median_ms);
}

std::string join(const std::set<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Where the two sides of a comparison come from, if that is not the same.
void warn_of_origins(std::vector<std::string>& warnings, const char* what,
                     const std::set<std::string>& now, const std::set<std::string>& old) {
  if (now == old) return;
  warnings.push_back("the baseline's " + std::string(what) + " is " + join(old) + ", not " +
                     join(now));
}

}  // namespace

std::vector<BenchRow> best_of_cases(const std::vector<BenchRow>& rows) {
  std::vector<BenchRow> best;
  std::map<std::string, std::size_t> places;
  for (const BenchRow& row : rows) {
    const auto [place, is_new] = places.try_emplace(case_key(row), best.size());
    if (is_new) {
      best.push_back(row);
    } else if (faster(row, best[place->second])) {
      best[place->second] = row;
    }
  }
  return best;
}

Fastest fastest(const std::vector<BenchRow>& rows) {
  Fastest best;
  for (BenchRow& row : best_of_cases(rows)) {
    if (row.counts()) best.emplace(case_key(row), std::move(row));
  }
  return best;
}

void join_peer(BenchRow& row, const Fastest& peers) {
  const auto found = peers.find(case_key(row));
  if (found == peers.end()) return;
  row.peer = found->second.kernel;
  row.peer_driver = found->second.driver;
  row.peer_ms = found->second.median_ms;
}

void replace_cases(std::vector<BenchRow>& rows, const std::vector<BenchRow>& later) {
  std::set<std::string> replaced;
  for (const BenchRow& row : later) replaced.insert(case_key(row));
  std::erase_if(rows, [&](const BenchRow& row) { return replaced.contains(case_key(row)); });
  rows.insert(rows.end(), later.begin(), later.end());
}

Comparison compare(const std::vector<BenchRow>& now, const std::vector<BenchRow>& baseline,
                   double tolerance) {
  Comparison comparison;
  const Fastest old = fastest(baseline);
  std::set<std::string> devices, old_devices, drivers, old_drivers, seen;
  for (const BenchRow& row : best_of_cases(now)) {
    Change change{.now = row};
    if (const auto found = old.find(case_key(row)); found != old.end()) {
      seen.insert(found->first);
      change.old_ms = found->second.median_ms;
      change.regression = !row.counts() || row.median_ms > tolerance * change.old_ms;
      comparison.regressions += change.regression ? 1 : 0;
      ++comparison.matched;
      devices.insert(row.device);
      drivers.insert(row.driver);
      old_devices.insert(found->second.device);
      old_drivers.insert(found->second.driver);
    }
    comparison.changes.push_back(std::move(change));
  }
  warn_of_origins(comparison.warnings, "device", devices, old_devices);
  warn_of_origins(comparison.warnings, "driver", drivers, old_drivers);
  const std::size_t without = comparison.changes.size() - comparison.matched;
  if (without != 0)
    comparison.warnings.push_back(std::to_string(without) +
                                  (without == 1 ? " case is" : " cases are") + " not in it");
  if (const std::size_t unseen = old.size() - seen.size(); unseen != 0) {
    comparison.warnings.push_back(std::to_string(unseen) + " of its cases were not timed now");
  }
  return comparison;
}

void print_comparison(std::FILE* out, const Comparison& comparison, double tolerance) {
  std::fprintf(out, "\n%10s %10s %8s  %s\n", "old ms", "new ms", "new/old", "case");
  for (const Change& change : comparison.changes) {
    if (change.old_ms <= 0.0) continue;
    const double ratio = change.now.median_ms / change.old_ms;
    const char* const mark = change.regression         ? "  REGRESSION"
                             : ratio < 1.0 / tolerance ? "  faster"
                                                       : "";
    if (change.now.counts()) {
      std::fprintf(out, "%10.4f %10.4f %8.3f  %s%s\n", change.old_ms, change.now.median_ms, ratio,
                   describe(change.now).c_str(), mark);
    } else {
      std::fprintf(out, "%10.4f %10s %8s  %s%s: %s\n", change.old_ms, "-", "-",
                   describe(change.now).c_str(), mark,
                   change.now.wrong() ? "the result is wrong" : change.now.error.c_str());
    }
  }
  std::fprintf(out, "%zu of %zu cases are slower than %g times the baseline\n",
               comparison.regressions, comparison.matched, tolerance);
  std::fflush(out);
}

}  // namespace vkgemm::report
