// tune_report.hpp: what `vkgemm tune` tells people: progress, and at the end how tables did.
#pragma once

#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "report/loss.hpp"
#include "tool/tune_session.hpp"

namespace vkgemm::tool {

// On stderr: one line that changes if it is a terminal, else a line now and then. A configuration
// that is wrong, or killed its process, is told at once.
class TuneProgress {
 public:
  using Clock = std::chrono::steady_clock;

  TuneProgress(const TuneSession& session, Clock::time_point deadline);
  ~TuneProgress();
  TuneProgress(const TuneProgress&) = delete;
  TuneProgress& operator=(const TuneProgress&) = delete;

  void update();
  void say(const std::string& line);

 private:
  std::string state() const;
  std::string left() const;
  void clear();

  const TuneSession& session_;
  Clock::time_point begin_, deadline_, last_;
  bool terminal_;
  bool shown_ = false;
  std::set<std::string> told_;
};

// A table on stdout: what tables choose, what was chosen of what was measured, and what was fastest
// of all.
void print_comparison(const TuneSession& session);

// Each problem whose choice loses something, the most first.
void print_losses(const std::vector<report::LossRow>& rows);

// A line for each list.
void report_loss(const std::vector<report::LossRow>& rows, std::FILE* out);

}  // namespace vkgemm::tool
