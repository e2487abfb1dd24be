// plot_loss.cpp: two columns of panels, a list each: problems by loss on a logarithmic axis.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "report/compare.hpp"
#include "report/loss.hpp"
#include "report/plot_internal.hpp"

namespace vkgemm::report {
namespace {

constexpr double kPageWidth = 940.0, kMargin = 24.0, kAxis = 44.0, kGap = 34.0;
constexpr double kPanelHeight = 150.0, kHead = 46.0;
constexpr double kMostShown = 4.0;  // beyond it a point stands at the edge

// Lists that are called as families are have their colours.
const char* colour_of_list(const std::string& list, std::size_t place) {
  constexpr std::array<std::string_view, kFamilies> names = {"dense",   "epilogue", "splitk",
                                                             "grouped", "rowred",   "gated"};
  const auto named = std::ranges::find(names, list);
  const auto family =
      named == names.end() ? place % kFamilies : static_cast<std::size_t>(named - names.begin());
  return colour_of(static_cast<Family>(family));
}

struct LossPanel {
  double left = 0.0, top = 0.0, width = 0.0;
  double high = 0.0;  // a logarithm
  double y(double loss) const {
    const double at = std::clamp(std::log(loss) / high, -0.03, 1.0);
    return top + kPanelHeight * (1.0 - at);
  }
};

void draw_axis(Svg& svg, const LossPanel& panel) {
  for (const double loss : {1.0, 1.1, 1.5, 2.0, 3.0, 4.0}) {
    if (std::log(loss) > panel.high) break;
    svg.line({panel.left, panel.y(loss)}, {panel.left + panel.width, panel.y(loss)},
             loss == 1.0 ? ink::axis : ink::grid);
    svg.text({panel.left - 6.0, panel.y(loss) + 4.0}, number("%g", loss),
             {.size = 11.0, .anchor = "end", .colour = ink::faint});
  }
  for (const double loss : {loss_in_the_mean, loss_at_worst}) {
    svg.line({panel.left, panel.y(loss)}, {panel.left + panel.width, panel.y(loss)}, ink::text, 1.0,
             "4 3");
    svg.text({panel.left + 4.0, panel.y(loss) - 3.0}, number("%g", loss),
             {.size = 10.0, .colour = ink::faint, .outlined = true});
  }
}

void draw_panel(Svg& svg, const LossPanel& panel, const LossSummary& summary,
                std::vector<const LossRow*> rows, const char* colour) {
  svg.rectangle({panel.left, panel.top - 34.0}, 10.0, 10.0, colour, 2.0);
  svg.text({panel.left + 15.0, panel.top - 25.0}, summary.list, {.bold = true});
  std::string head = count_problems(summary.compared) + ", geometric mean " +
                     number("%.3f", summary.mean) + ", worst " + number("%.3f", summary.worst);
  if (summary.not_compared != 0)
    head += ", " + std::to_string(summary.not_compared) + " not compared";
  svg.text({panel.left, panel.top - 9.0}, head, {.size = 11.0, .colour = ink::faint});
  draw_axis(svg, panel);
  std::ranges::stable_sort(rows, {}, [](const LossRow* row) { return row->loss(); });
  const double step = panel.width / static_cast<double>(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LossRow& row = *rows[i];
    const double x = panel.left + (static_cast<double>(i) + 0.5) * step;
    const bool beyond = row.loss() > kMostShown;
    svg.marker(beyond ? Marker::triangle : Marker::circle, {x, panel.y(row.loss())}, 3.2, colour,
               row.label + ": " + number("%.3f", row.loss()) + "; " + row.choice + " " +
                   print_time(row.choice_us / 1000.0) + ", " + row.best + " " +
                   print_time(row.best_us / 1000.0));
  }
  if (rows.empty()) return;
  svg.text({panel.left + panel.width, panel.y(summary.worst) - 6.0}, summary.worst_label,
           {.size = 10.0, .anchor = "end", .outlined = true});
}

std::string origin_of(const std::vector<LossRow>& rows) {
  std::set<std::string> devices, commits;
  for (const LossRow& row : rows) {
    devices.insert(row.device + ", " + row.driver);
    if (!row.commit.empty()) commits.insert(row.commit);
  }
  std::string text = join(devices, "; ");
  for (const std::string& commit : commits) text += "; vkgemm " + commit;
  return text;
}

}  // namespace

Result<std::string> plot_loss(const std::vector<LossRow>& rows) {
  double most = loss_at_worst * 1.08;
  std::size_t drawn = 0;
  for (const LossRow& row : rows) {
    if (!row.counts()) continue;
    most = std::max(most, row.loss());
    ++drawn;
  }
  if (drawn < 2) {
    return Error{Status::invalid_argument, "--plot: " + count_problems(drawn) +
                                               " with a loss, at least 2 are needed to draw"};
  }
  const double high = std::log(std::min(most, kMostShown) * 1.02);

  Svg svg(kPageWidth);
  svg.text({kMargin, 34.0},
           "What the built-in choice loses: its time over that of the fastest tried",
           {.size = 17.0, .bold = true});
  svg.text({kMargin, 54.0}, origin_of(rows), {.colour = ink::faint});
  const std::vector<LossSummary> summaries = summarize(rows);
  const double width = (kPageWidth - 2.0 * kMargin - kGap) / 2.0 - kAxis;
  double bottom = 70.0;
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    const double column = static_cast<double>(i % 2), line = std::floor(static_cast<double>(i) / 2);
    const LossPanel panel{.left = kMargin + kAxis + column * (width + kAxis + kGap),
                          .top = 70.0 + kHead + line * (kPanelHeight + kHead + 18.0),
                          .width = width,
                          .high = high};
    std::vector<const LossRow*> own;
    for (const LossRow& row : rows) {
      if (row.list == summaries[i].list && row.counts()) own.push_back(&row);
    }
    draw_panel(svg, panel, summaries[i], own, colour_of_list(summaries[i].list, i));
    bottom = panel.top + kPanelHeight;
  }
  svg.text({kMargin, bottom + 30.0},
           "a point for each problem, by loss; the fastest is that of what was tried, not of all "
           "that is legal",
           {.size = 11.0, .colour = ink::faint});
  return svg.finish(bottom + 46.0);
}

}  // namespace vkgemm::report
