// plot_roofline.cpp: TFLOP/s over FLOP/byte, both logarithmic, under the roofs that were measured.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "report/plot_internal.hpp"

namespace vkgemm::report {
namespace {

constexpr double kLeft = 66.0, kRight = 24.0, kHeight = 430.0;

double intensity_of(const BenchRow& row) {
  return row.tflops * row.median_ms * 1e9 / compulsory_bytes(row);
}

// Files may say anything: nothing real is beyond these decades.
bool is_plausible(const BenchRow& row) {
  const double intensity = intensity_of(row);
  return row.tflops > 1e-6 && row.tflops < 1e6 && intensity > 1e-6 && intensity < 1e9 &&
         row.ceiling_tflops < 1e6 && row.bandwidth_gbs < 1e7;
}

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

struct Axis {
  double first, last;  // exponents of ten
  double from, to;     // pixels
  double operator()(double value) const {
    return from + (std::log10(value) - first) / (last - first) * (to - from);
  }
};

// Lines and numbers at 1, 2 and 5 times powers of ten.
void draw_grid(Svg& svg, const Axis& axis, bool vertical, double low, double high) {
  for (double power = std::floor(axis.first); power <= axis.last; ++power) {
    for (const double step : {1.0, 2.0, 5.0}) {
      const double value = step * std::pow(10.0, power);
      if (std::log10(value) < axis.first - 1e-9 || std::log10(value) > axis.last + 1e-9) continue;
      const double at = axis(value);
      if (vertical) {
        svg.line({at, low}, {at, high}, ink::grid);
        svg.text({at, high + 17.0}, number("%.6g", value),
                 {.size = 11.0, .anchor = "middle", .colour = ink::faint});
      } else {
        svg.line({low, at}, {high, at}, ink::grid);
        svg.text({low - 7.0, at + 4.0}, number("%.6g", value),
                 {.size = 11.0, .anchor = "end", .colour = ink::faint});
      }
    }
  }
}

double draw_legend(Svg& svg, const std::vector<BenchRow>& rows, double y) {
  std::set<Family> families;
  std::set<std::string> types;
  for (const BenchRow& row : rows) {
    families.insert(family_of(row));
    types.insert(row.type);
  }
  double x = kLeft;
  for (const Family family : families) {
    svg.rectangle({x, y - 9.0}, 10.0, 10.0, colour_of(family), 2.0);
    svg.text({x + 15.0, y}, name_of(family));
    x += 32.0 + text_width(name_of(family), 12.0);
  }
  x += 14.0;
  for (const std::string& type : types) {
    BenchRow row;
    row.type = type;
    svg.marker(marker_of(row), {x + 5.0, y - 4.0}, 5.0, ink::faint, "");
    svg.text({x + 15.0, y}, type);
    x += 32.0 + text_width(type, 12.0);
  }
  return y;
}

// The roofs: rows of several runs have several ceilings, close to each other.
void draw_roofs(Svg& svg, const Axis& x, const Axis& y, double ceiling, double lowest_ceiling,
                double bandwidth_gbs) {
  const double left = std::pow(10.0, x.first), right = std::pow(10.0, x.last);
  const double bottom = std::pow(10.0, y.first);
  double ridge = left;
  if (bandwidth_gbs > 0.0) {
    const double slope = bandwidth_gbs * 1e-3;  // TFLOP/s at 1 FLOP/byte
    const double top = ceiling > 0.0 ? ceiling : std::pow(10.0, y.last);
    const double begin = std::max(left, bottom / slope);
    const double end = std::min(right, top / slope);
    if (begin < end) {
      svg.line({x(begin), y(begin * slope)}, {x(end), y(end * slope)}, ink::text, 1.6);
      const double middle = std::sqrt(begin * end);
      const double turn = std::atan2(y(end * slope) - y(begin * slope), x(end) - x(begin));
      char text[64];
      std::snprintf(text, sizeof text, "memory %.3g TB/s", bandwidth_gbs * 1e-3);
      svg.text({x(middle) + 8.0 * std::sin(turn), y(middle * slope) - 8.0 * std::cos(turn)}, text,
               {.anchor = "middle", .turn = turn * 180.0 / 3.14159265358979, .outlined = true});
    }
    ridge = std::clamp(top / slope, left, right);
  }
  if (ceiling <= 0.0) return;
  svg.line({x(ridge), y(ceiling)}, {x.to, y(ceiling)}, ink::text, 1.6);
  char text[96];
  if (lowest_ceiling > 0.999 * ceiling) {
    std::snprintf(text, sizeof text, "%.3g TFLOP/s: f16 matrices from registers", ceiling);
  } else {
    std::snprintf(text, sizeof text,
                  "%.3g TFLOP/s (%.3g in another run): f16 matrices from registers", ceiling,
                  lowest_ceiling);
  }
  svg.text({x.to - 6.0, y(ceiling) - 7.0}, text, {.anchor = "end"});
}

// Tries places around the points; what fits nowhere has no label, but a title.
class Labels {
 public:
  Labels(Svg& svg, const Box& area) : svg_(svg), area_(area) {}

  void avoid(const Box& box) { taken_.push_back(box); }
  void avoid(Point from, Point to) {
    constexpr int pieces = 60;
    for (int i = 0; i <= pieces; ++i) {
      const double part = static_cast<double>(i) / pieces;
      const double x = from.x + part * (to.x - from.x), y = from.y + part * (to.y - from.y);
      avoid({x - 4.0, y - 4.0, x + 4.0, y + 4.0});
    }
  }

  void add(Point at, const std::string& text, const char* colour) {
    constexpr double size = 10.5;
    // Neighbours of one name: of other types, or with another layout.
    for (const auto& [name, place] : named_) {
      if (name == text && std::hypot(place.x - at.x, place.y - at.y) < 60.0) return;
    }
    const double width = text_width(text, size);
    struct Place {
      double x, y;
      const char* anchor;
    };
    const Place places[] = {{9.0, 4.0, "start"},   {-9.0, 4.0, "end"},   {0.0, -9.0, "middle"},
                            {0.0, 17.0, "middle"}, {8.0, -6.0, "start"}, {-8.0, -6.0, "end"},
                            {8.0, 14.0, "start"},  {-8.0, 14.0, "end"}};
    for (const Place& place : places) {
      const double x = at.x + place.x, y = at.y + place.y;
      const std::string_view anchor(place.anchor);
      const double left = anchor == "start" ? x : anchor == "end" ? x - width : x - width / 2.0;
      const Box box{left - 1.0, y - size + 1.0, left + width + 1.0, y + 2.0};
      const bool inside = box.left > area_.left && box.right < area_.right && box.top > area_.top &&
                          box.bottom < area_.bottom;
      const bool free = std::none_of(taken_.begin(), taken_.end(),
                                     [&](const Box& other) { return box.meets(other); });
      if (!inside || !free) continue;
      svg_.text({x, y}, text,
                {.size = size, .anchor = place.anchor, .colour = colour, .outlined = true});
      named_.emplace_back(text, at);
      return taken_.push_back(box);
    }
  }

 private:
  Svg& svg_;
  Box area_;
  std::vector<Box> taken_;
  std::vector<std::pair<std::string, Point>> named_;
};

}  // namespace

double draw_roofline(Svg& svg, const std::vector<BenchRow>& all, double bandwidth_gbs, double top) {
  std::vector<BenchRow> rows;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rows), is_plausible);
  if (rows.empty()) return top;
  double ceiling = 0.0, lowest_ceiling = 1e30, least_x = 1e30, most_x = 0.0, least_y = 1e30,
         most_y = 0.0;
  for (const BenchRow& row : rows) {
    if (row.bandwidth_gbs > 0.0) bandwidth_gbs = std::max(bandwidth_gbs, row.bandwidth_gbs);
    const double roof = row.on_matrices() ? row.ceiling_tflops : 0.0;
    if (roof > 0.0) {
      ceiling = std::max(ceiling, roof);
      lowest_ceiling = std::min(lowest_ceiling, roof);
    }
    const double intensity = intensity_of(row);
    least_x = std::min(least_x, intensity);
    most_x = std::max(most_x, intensity);
    least_y = std::min(least_y, row.tflops);
    most_y = std::max({most_y, row.tflops, roof});
  }
  const double bottom = top + kHeight;
  const Axis x{std::log10(least_x) - 0.12, std::log10(most_x) + 0.12, kLeft, svg.width() - kRight};
  const Axis y{std::log10(least_y) - 0.15, std::log10(most_y) + 0.12, bottom - 48.0, top + 38.0};
  draw_legend(svg, rows, top + 20.0);
  draw_grid(svg, x, true, y.to, y.from);
  draw_grid(svg, y, false, x.from, x.to);
  svg.line({x.from, y.from}, {x.to, y.from}, ink::axis);
  svg.line({x.from, y.from}, {x.from, y.to}, ink::axis);
  svg.text({(x.from + x.to) / 2.0, bottom - 12.0},
           "FLOP per byte, every operand and result counted once", {.anchor = "middle"});
  svg.text({18.0, (y.from + y.to) / 2.0}, "TFLOP/s", {.anchor = "middle", .turn = -90.0});
  draw_roofs(svg, x, y, ceiling, lowest_ceiling, bandwidth_gbs);

  Labels labels(svg, {x.from, y.to, x.to, y.from});
  if (bandwidth_gbs > 0.0) {
    const double slope = bandwidth_gbs * 1e-3;
    const double begin = std::pow(10.0, x.first), end = std::min(most_x, most_y / slope);
    if (begin < end) labels.avoid({x(begin), y(begin * slope)}, {x(end), y(end * slope)});
  }
  if (ceiling > 0.0) labels.avoid(Box{x.to - 420.0, y(ceiling) - 20.0, x.to, y(ceiling) + 3.0});
  const auto place = [&](const BenchRow& row) {
    return Point{x(intensity_of(row)), y(row.tflops)};
  };
  for (const BenchRow& row : rows) {
    const Point at = place(row);
    char text[64];
    std::snprintf(text, sizeof text, ": %.1f TFLOP/s, ", row.tflops);
    svg.marker(marker_of(row), at, 5.0, colour_of(family_of(row)),
               describe(row) + text + print_time(row.median_ms));
    labels.avoid(Box{at.x - 6.0, at.y - 6.0, at.x + 6.0, at.y + 6.0});
  }
  for (const BenchRow& row : rows) {
    std::string text = short_shape(row);
    if (!row.groups.empty()) text = row.groups.substr(0, row.groups.find(' ')) + " groups";
    if (row.epilogue != "plain") text += ' ' + row.epilogue;
    labels.add(place(row), text, ink::faint);
  }
  return bottom;
}

}  // namespace vkgemm::report
