#include "report/loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "report/lines.hpp"

namespace vkgemm::report {
namespace {

// The configuration and its time, if it has one.
void read_timed(const Fields& row, const char* key, std::string& config, double& microseconds,
                std::string& error) {
  if (!row.has(key)) return;
  const Fields timed = row.object(key);
  timed.needed_text("config", config);
  timed.number("us", microseconds);
  if (timed.has("error") && error.empty()) timed.text("error", error);
}

LossRow parse_row(const Fields& fields) {
  LossRow row;
  fields.needed_text("problem", row.problem);
  row.list = "problems";
  fields.text("list", row.list);
  row.label = row.problem;
  fields.text("label", row.label);
  fields.text("error", row.error);
  read_timed(fields, "built_in", row.choice, row.choice_us, row.error);
  read_timed(fields, "best", row.best, row.best_us, row.error);
  row.tuned = fields.has("estimate");
  std::string ignored;
  read_timed(fields, "estimate", ignored, row.estimate_us, ignored);
  if (!row.counts() && row.error.empty()) row.error = "not measured";
  if (fields.has("measured")) fields.size("measured", row.tried);
  if (fields.has("legal")) fields.size("legal", row.legal);
  return row;
}

std::uint64_t median(std::vector<std::uint64_t> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

Result<void> add_loss_rows(std::vector<LossRow>& rows, std::string_view text,
                           std::string_view source) {
  return for_each_line(text, source, [&](const nlohmann::json& document) {
    const Fields fields(document);
    if (fields.has("event")) return;
    LossRow row = parse_row(fields);
    const auto same = std::ranges::find_if(rows, [&](const LossRow& other) {
      return other.list == row.list && other.problem == row.problem;
    });
    if (same != rows.end()) {
      *same = std::move(row);
    } else {
      rows.push_back(std::move(row));
    }
  });
}

std::vector<LossSummary> summarize(const std::vector<LossRow>& rows) {
  std::vector<LossSummary> summaries;
  for (const LossRow& row : rows) {
    if (std::ranges::find(summaries, row.list, &LossSummary::list) == summaries.end()) {
      summaries.push_back({.list = row.list});
    }
  }
  for (LossSummary& summary : summaries) {
    double logarithms = 0.0, of_estimates = 0.0;
    std::vector<std::uint64_t> tried, legal;
    for (const LossRow& row : rows) {
      if (row.list != summary.list) continue;
      if (!row.counts()) {
        ++summary.not_compared;
        continue;
      }
      ++summary.compared;
      logarithms += std::log(row.loss());
      if (row.tuned) ++summary.tuned;
      if (const double loss = row.loss_of_estimate(); loss > 0.0 && std::isfinite(loss)) {
        ++summary.estimates;
        of_estimates += std::log(loss);
        summary.estimates_worst = std::max(summary.estimates_worst, loss);
      }
      tried.push_back(row.tried);
      legal.push_back(row.legal);
      if (row.loss() <= summary.worst) continue;
      summary.worst = row.loss();
      summary.worst_label = row.label;
    }
    summary.tried = median(tried);
    summary.legal = median(legal);
    if (summary.compared == 0) continue;
    summary.mean = std::exp(logarithms / static_cast<double>(summary.compared));
    if (summary.estimates == 0) continue;
    summary.estimates_mean = std::exp(of_estimates / static_cast<double>(summary.estimates));
  }
  return summaries;
}

std::string to_string(const LossSummary& summary) {
  std::string text = "loss: " + summary.list + " " + std::to_string(summary.compared) +
                     (summary.compared == 1 ? " problem" : " problems");
  if (summary.compared != 0) {
    char figures[128];
    std::snprintf(figures, sizeof figures, ", geometric mean %.3f, worst %.3f (", summary.mean,
                  summary.worst);
    text += figures + summary.worst_label + "); the best of " + std::to_string(summary.tried) +
            " tried of " + std::to_string(summary.legal) + " legal configurations (medians)";
    if (summary.tuned != 0) {
      std::snprintf(figures, sizeof figures,
                    "; %zu by tuned shapes; estimates alone would lose %.3f (%zu), worst %.3f",
                    summary.tuned, summary.estimates_mean, summary.estimates,
                    summary.estimates_worst);
      text += figures;
    }
  }
  if (summary.not_compared != 0) {
    text += ", " + std::to_string(summary.not_compared) + " not compared";
  }
  return text;
}

}  // namespace vkgemm::report
