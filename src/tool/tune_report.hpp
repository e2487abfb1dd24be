// tune_report.hpp: what `vkgemm tune` tells people: progress, and at the end how tables did.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "support/tune_session.hpp"

namespace vkgemm::tool {

// "4096x4096x4096 f16", with what else is not as most have it
std::string label(const TunedProblem& problem);

// On stderr: one line that changes if it is a terminal, else a line now and then. What is wrong, or
// killed its process, is told at once.
class TuneProgress {
 public:
  using Clock = std::chrono::steady_clock;

  TuneProgress(const support::TuneSession& session, Clock::time_point deadline);
  ~TuneProgress();
  TuneProgress(const TuneProgress&) = delete;
  TuneProgress& operator=(const TuneProgress&) = delete;

  void update();
  void say(const std::string& line);

 private:
  std::string state() const;
  std::string left() const;
  void clear();

  const support::TuneSession& session_;
  Clock::time_point begin_, deadline_, last_;
  bool terminal_;
  bool shown_ = false;
  std::set<std::string> told_;
};

// A table on stdout: what tables choose, what was chosen of what was measured, and what was fastest
// of all.
void print_comparison(const support::TuneSession& session);

}  // namespace vkgemm::tool
