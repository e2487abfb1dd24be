#include "tool/tune_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "base/system.hpp"

namespace vkgemm::tool {
namespace {

constexpr auto between_lines = std::chrono::seconds(30);
constexpr auto between_updates = std::chrono::milliseconds(200);

template <class... Values>
std::string format(const char* text, Values... values) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, text, values...);
  return buffer;
}

std::string microseconds(const Measured* measured) {
  if (measured == nullptr || measured->outcome != TuneOutcome::good) return "-";
  const double us = measured->median();
  return format(us < 100.0 ? "%.2f" : "%.1f", us);
}

const Measured* chosen_by(const TuneCase& tuned, const std::string& name) {
  for (const NamedConfig& choice : tuned.choices) {
    if (choice.name == name) return tuned.find(choice.config);
  }
  return nullptr;
}

// How much slower than the fastest, in per cent.
std::string loss(const TuneCase& tuned, const Measured* measured) {
  const Measured* best = fastest(tuned, true);
  if (measured == nullptr || best == nullptr || measured->outcome != TuneOutcome::good) return "";
  return format("%+.1f %%", 100.0 * (measured->median() / best->median() - 1.0));
}

}  // namespace

TuneProgress::TuneProgress(const TuneSession& session, Clock::time_point deadline)
    : session_(session),
      begin_(Clock::now()),
      deadline_(deadline),
      last_(begin_),
      terminal_(os::is_terminal(stderr)) {}

TuneProgress::~TuneProgress() { clear(); }

void TuneProgress::clear() {
  if (terminal_ && shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void TuneProgress::say(const std::string& line) {
  clear();
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
}

// By the problems so far, but not beyond the time limit.
std::string TuneProgress::left() const {
  const auto now = Clock::now();
  double seconds = std::chrono::duration<double>(deadline_ - now).count();
  const auto finished = std::ranges::count(session_.cases, true, &TuneCase::done);
  if (finished > 0) {
    const double each =
        std::chrono::duration<double>(now - begin_).count() / static_cast<double>(finished);
    const auto more = static_cast<std::ptrdiff_t>(session_.cases.size()) - finished;
    seconds = std::min(seconds, each * static_cast<double>(more));
  }
  const int whole = static_cast<int>(std::max(seconds, 0.0));
  return format("%d:%02d left", whole / 60, whole % 60);
}

std::string TuneProgress::state() const {
  if (!session_.at) return "starting, " + left();
  const TuneCase& tuned = session_.cases[*session_.at];
  std::string text = format("[%zu/%zu] ", *session_.at + 1, session_.cases.size()) +
                     label(tuned.problem) + format(": %zu tried", tuned.measured.size());
  if (const Measured* best = fastest(tuned)) {
    text += ", best " + microseconds(best) + " us";
  }
  return text + ", " + left();
}

void TuneProgress::update() {
  for (const TuneCase& tuned : session_.cases) {
    for (const Measured& m : tuned.measured) {
      if (m.outcome == TuneOutcome::good || m.outcome == TuneOutcome::unfit) continue;
      const std::string config = to_string(m.config);
      if (!told_.insert(tuned.arguments + config).second) continue;
      say((m.outcome == TuneOutcome::wrong    ? "WRONG RESULT: "
           : m.outcome == TuneOutcome::failed ? "FAILED: "
                                              : "LATE: ") +
          label(tuned.problem) + ", " + config + ": " + m.reason +
          (m.outcome == TuneOutcome::late ? "; another process goes on" : "; denied from now on"));
    }
    if (!tuned.done || !told_.insert(tuned.arguments).second) continue;
    const Measured* best = fastest(tuned);
    say(label(tuned.problem) + ": " +
        (best == nullptr ? (tuned.error.empty() ? "nothing could be timed" : tuned.error)
                         : microseconds(best) + " us, " + to_string(best->config) +
                               format(" (%zu tried)", tuned.measured.size())));
  }
  const auto now = Clock::now();
  if (terminal_) {
    if (shown_ && now - last_ < between_updates) return;
    std::fprintf(stderr, "\r\033[K%s", state().c_str());
    std::fflush(stderr);
    shown_ = true;
    last_ = now;
  } else if (now - last_ > between_lines) {
    say(state());
    last_ = now;
  }
}

void print_comparison(const TuneSession& session) {
  const bool table = std::ranges::any_of(
      session.cases, [](const TuneCase& tuned) { return chosen_by(tuned, "table") != nullptr; });
  std::size_t width = 7;
  for (const TuneCase& tuned : session.cases) width = std::max(width, label(tuned.problem).size());
  const int w = static_cast<int>(width);
  std::printf("%s, %s\nmedians in us, and how much slower than the best of those that were tried\n",
              session.device.c_str(), session.driver.c_str());
  std::printf("%-*s %10s %9s ", w, "problem", "built-in", "");
  if (table) std::printf("%10s %9s ", "table", "");
  std::printf("%10s %9s %10s %6s %8s\n", "tuned", "", "best", "tried", "of legal");
  double built_in = 0.0, tuned_log = 0.0;
  int both = 0;
  for (const TuneCase& tuned : session.cases) {
    const Measured* best = fastest(tuned, true);
    const Measured* chosen = fastest(tuned);
    const Measured* own = chosen_by(tuned, "built_in");
    const auto column = [&](const Measured* m) {
      std::printf("%10s %9s ", microseconds(m).c_str(), loss(tuned, m).c_str());
    };
    std::printf("%-*s ", w, label(tuned.problem).c_str());
    column(own);
    if (table) column(chosen_by(tuned, "table"));
    column(chosen);
    std::printf("%10s %6zu %8zu\n", microseconds(best).c_str(), tuned.measured.size(), tuned.legal);
    if (best == nullptr || chosen == nullptr || own == nullptr ||
        own->outcome != TuneOutcome::good) {
      continue;
    }
    built_in += std::log(own->median());
    tuned_log += std::log(chosen->median());
    ++both;
  }
  if (both == 0) return;
  std::printf("tuned takes %.1f %% of the built-in table's time (geometric mean of %d)\n",
              100.0 * std::exp((tuned_log - built_in) / both), both);
}

void print_losses(const std::vector<report::LossRow>& rows) {
  std::vector<const report::LossRow*> sorted;
  for (const report::LossRow& row : rows) {
    if (row.counts() && row.choice != row.best) sorted.push_back(&row);
  }
  std::ranges::stable_sort(sorted, std::greater{},
                           [](const report::LossRow* row) { return row->loss(); });
  std::size_t width = 7;
  for (const report::LossRow* row : sorted) {
    width = std::max(width, row->list.size() + 2 + row->label.size());
  }
  const int w = static_cast<int>(width);
  std::printf("%-*s %6s %10s %10s  configurations\n", w, "problem", "loss", "built-in", "best");
  for (const report::LossRow* row : sorted) {
    std::printf("%-*s %6.3f %10.2f %10.2f  %s, best %s\n", w,
                (row->list + ": " + row->label).c_str(), row->loss(), row->choice_us, row->best_us,
                row->choice.c_str(), row->best.c_str());
  }
  for (const report::LossRow& row : rows) {
    if (row.counts()) continue;
    std::printf("%-*s %6s %s\n", w, (row.list + ": " + row.label).c_str(), "-", row.error.c_str());
  }
}

void report_loss(const std::vector<report::LossRow>& rows, std::FILE* out) {
  for (const report::LossSummary& summary : report::summarize(rows)) {
    std::fprintf(out, "%s\n", report::to_string(summary).c_str());
  }
}

}  // namespace vkgemm::tool
