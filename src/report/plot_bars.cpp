// plot_bars.cpp: a line for each case, under a heading for each family: the fraction of the ceiling
// as a bar, the speed relative to a peer's as a point on a logarithmic axis.
#include <algorithm>
#include <cmath>

#include "report/plot_internal.hpp"

namespace vkgemm::report {
namespace {

constexpr double kPitch = 17.0, kHeading = 25.0, kTimes = 228.0;
constexpr double kLeastLabels = 262.0, kLabelSize = 11.5;

// The times that peers.py takes of a CUDA program contain launches by the host; below this they may
// be most of the time: the same case took 0.018 to 0.084 ms on one day (H200, 2026-11-22).
constexpr double kLaunchMs = 0.1;

bool is_hollow(const BenchRow& row) { return row.times_peer() > 0.0 && row.peer_ms < kLaunchMs; }

struct Panel {
  double left = 0.0, right = 0.0;
  double low = 0.0, high = 1.0;  // of a logarithmic one: logarithms
  double at(double value) const {
    return left + (std::clamp(value, low, high) - low) / (high - low) * (right - left);
  }
};

// The axis from 0 to 1, or beyond if somebody beats the ceiling.
Panel ceiling_panel(const std::vector<BenchRow>& rows, double left, double right) {
  double most = 0.5;
  for (const BenchRow& row : rows) most = std::max(most, row.fraction());
  return {.left = left, .right = right, .low = 0.0, .high = std::clamp(most, 1.0, 4.0)};
}

Panel peers_panel(const std::vector<BenchRow>& rows, double left, double right) {
  double low = std::log2(0.5), high = std::log2(2.0);
  for (const BenchRow& row : rows) {
    if (row.times_peer() <= 0.0) continue;
    low = std::min(low, std::log2(row.times_peer()));
    high = std::max(high, std::log2(row.times_peer()));
  }
  low = std::max(low, -12.0);  // files may say anything
  high = std::min(high, 12.0);
  return {.left = left, .right = right, .low = low - 0.85, .high = high + 0.85};
}

void draw_ceiling_axis(Svg& svg, const Panel& panel, double top, double bottom) {
  for (int step = 0; step <= 5; ++step) {
    const double value = step / 5.0;
    svg.line({panel.at(value), top}, {panel.at(value), bottom},
             step == 0 || step == 5 ? ink::axis : ink::grid);
    svg.text({panel.at(value), bottom + 16.0}, number("%g", value),
             {.size = 11.0, .anchor = "middle", .colour = ink::faint});
  }
  svg.text({(panel.left + panel.right) / 2.0, bottom + 34.0}, "fraction of the ceiling",
           {.anchor = "middle"});
}

void draw_peers_axis(Svg& svg, const Panel& panel, double top, double bottom) {
  for (double power = std::ceil(panel.low); power <= panel.high; ++power) {
    svg.line({panel.at(power), top}, {panel.at(power), bottom},
             power == 0.0 ? ink::text : ink::grid, power == 0.0 ? 1.4 : 1.0);
    if (panel.at(1.0) - panel.at(0.0) < 34.0 && std::fmod(power, 2.0) != 0.0) continue;
    svg.text({panel.at(power), bottom + 16.0}, number("%g×", std::exp2(power)),
             {.size = 11.0, .anchor = "middle", .colour = ink::faint});
  }
  svg.text({panel.at(0.0) - 8.0, bottom + 34.0}, "← slower", {.anchor = "end"});
  svg.text({panel.at(0.0) + 8.0, bottom + 34.0}, "faster →");
}

void draw_fraction(Svg& svg, const Panel& panel, const BenchRow& row, double y) {
  if (row.fraction() <= 0.0) return;
  const double end = panel.at(row.fraction());
  svg.rectangle({panel.left, y - 5.0}, std::max(end - panel.left, 1.0), 10.0,
                colour_of(family_of(row)), 1.5);
  svg.text({end + 6.0, y + 4.0}, number("%.3f", row.fraction()), {.size = 11.0, .outlined = true});
}

void draw_ratio(Svg& svg, const Panel& panel, const BenchRow& row, double y) {
  if (row.times_peer() <= 0.0) return;
  const double value = std::log2(row.times_peer());
  const double x = panel.at(value);
  const char* const colour = colour_of(family_of(row));
  svg.line({panel.at(0.0), y}, {x, y}, colour, 2.0);
  svg.marker(Marker::circle, {x, y}, 5.0, colour, describe(row));
  if (is_hollow(row)) svg.marker(Marker::circle, {x, y}, 3.0, "#fff", "");
  const bool right = value >= 0.0;
  svg.text({x + (right ? 9.0 : -9.0), y + 4.0}, number("%.2f×", row.times_peer()),
           {.size = 11.0, .anchor = right ? "start" : "end", .outlined = true});
}

// The width of the widest label, and of what is between it and the axis.
double labels_width(const std::vector<BenchRow>& rows) {
  double width = kLeastLabels;
  for (const BenchRow& row : rows) {
    width = std::max(width, text_width(short_label(row), kLabelSize) + 12.0);
  }
  return width;
}

double height_of(const std::vector<BenchRow>& rows) {
  double height = 0.0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || family_of(rows[i]) != family_of(rows[i - 1])) height += kHeading;
    height += kPitch;
  }
  return height;
}

}  // namespace

double draw_bars(Svg& svg, const std::vector<BenchRow>& rows, const BarPanels& panels, double top) {
  const double left = 24.0 + labels_width(rows);
  const double right = svg.width() - 20.0 - (panels.peers ? kTimes : 24.0);
  const double middle = left + 0.46 * (right - left);
  const Panel ceiling = ceiling_panel(rows, left, panels.peers ? middle - 22.0 : right);
  const Panel peers = peers_panel(rows, panels.ceiling ? middle + 12.0 : left, right);
  double y = top + (panels.peers ? 22.0 : 8.0);
  const double bottom = y + height_of(rows) + 4.0;
  if (panels.ceiling) draw_ceiling_axis(svg, ceiling, y, bottom);
  if (panels.peers) {
    draw_peers_axis(svg, peers, y, bottom);
    const double x = right + 66.0;
    svg.text({x, y - 4.0}, "vkgemm", {.size = 11.0, .anchor = "end", .colour = ink::faint});
    svg.text({x + 62.0, y - 4.0}, "peer", {.size = 11.0, .anchor = "end", .colour = ink::faint});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const BenchRow& row = rows[i];
    const Family family = family_of(row);
    if (i == 0 || family != family_of(rows[i - 1])) {
      y += kHeading;
      svg.rectangle({24.0, y - 16.0}, 10.0, 10.0, colour_of(family), 2.0);
      svg.text({39.0, y - 7.0}, name_of(family), {.bold = true});
    }
    y += kPitch;
    const double centre = y - kPitch / 2.0;
    svg.text({left - 12.0, centre + 4.0}, short_label(row), {.size = kLabelSize, .anchor = "end"});
    if (panels.ceiling) draw_fraction(svg, ceiling, row, centre);
    if (!panels.peers) continue;
    draw_ratio(svg, peers, row, centre);
    const double x = right + 66.0;
    svg.text({x, centre + 4.0}, print_time(row.median_ms), {.size = 11.0, .anchor = "end"});
    if (row.peer_ms <= 0.0) continue;
    svg.text({x + 62.0, centre + 4.0}, print_time(row.peer_ms), {.size = 11.0, .anchor = "end"});
    svg.text({x + 70.0, centre + 4.0}, row.peer.substr(0, row.peer.find(',')),
             {.size = 10.0, .colour = ink::faint});
  }
  const bool has_hollow = std::ranges::any_of(rows, is_hollow);
  if (!panels.peers || !has_hollow) return bottom + 48.0;
  svg.text({24.0, bottom + 58.0},
           "hollow: the peer takes less than 0.1 ms, of which launches by the host may be most",
           {.size = 11.0, .colour = ink::faint});
  return bottom + 72.0;
}

}  // namespace vkgemm::report
