// compare.hpp: rows beside those of the same cases that somebody else, or an older commit, took.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "report/rows.hpp"

namespace vkgemm::report {

// The fastest row of each case, by case_key(); cases that nobody timed are not in it.
using Fastest = std::map<std::string, BenchRow>;
Fastest fastest(const std::vector<BenchRow>& rows);

// The fastest row of each case, in the order that cases appear in. Cases without a time: their
// first row.
std::vector<BenchRow> best_of_cases(const std::vector<BenchRow>& rows);

// Sets what the row says of its peer.
void join_peer(BenchRow& row, const Fastest& peers);

// Takes the place of all rows of the same cases: of several files the later one counts.
void replace_cases(std::vector<BenchRow>& rows, const std::vector<BenchRow>& later);

struct Change {
  BenchRow now;             // the fastest of its case
  double old_ms = 0.0;      // 0: the case is new
  bool regression = false;  // slower than the tolerance allows, or no longer timed
};

struct Comparison {
  std::vector<Change> changes;        // a case each, in the order of the new rows
  std::vector<std::string> warnings;  // other devices, other drivers, cases that are not there
  std::size_t matched = 0;
  std::size_t regressions = 0;
};

// A regression: now / old above `tolerance`, of the fastest rows of a case.
Comparison compare(const std::vector<BenchRow>& now, const std::vector<BenchRow>& baseline,
                   double tolerance);

void print_comparison(std::FILE* out, const Comparison& comparison, double tolerance);

}  // namespace vkgemm::report
