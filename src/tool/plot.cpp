// plot.cpp: the benchmark's plot, as SVG written by hand: axes, grid, one line a series, a legend.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tool/rows.hpp"

namespace vkgemm::tool {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 64, kRight = 20, kTop = 40, kBottom = 96;
constexpr std::array<const char*, 6> kColours = {"#1b6ca8", "#c0392b", "#27874a",
                                                 "#8e44ad", "#b9770e", "#455a64"};

std::string format(const char* pattern, double a, double b = 0, double c = 0, double d = 0) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, a, b, c, d);
  return text.data();
}

std::string escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return escaped;
}

std::string label(double x, double y, const std::string& text, const char* anchor = "middle") {
  return format("<text x='%.1f' y='%.1f' ", x, y) + "text-anchor='" + anchor + "'>" + escape(text) +
         "</text>\n";
}

}  // namespace

std::string plot_svg(const std::vector<BenchRow>& rows) {
  const bool of_ceiling =
      std::any_of(rows.begin(), rows.end(), [](const BenchRow& r) { return r.fraction() > 0.0; });
  std::map<std::string, std::map<double, double>> series;  // name -> size -> best value
  double low = 1e9, high = 1, top = 0.0;
  for (const BenchRow& row : rows) {
    const double value = of_ceiling ? row.fraction() : row.tflops;
    if (!row.error.empty() || value <= 0.0) continue;
    const double size = std::cbrt(static_cast<double>(row.m) * static_cast<double>(row.n) *
                                  static_cast<double>(row.k));
    double& best = series[row.type + ", A " + row.layout_a + ", B " + row.layout_b + ", " +
                          row.epilogue][size];
    best = std::max(best, value);
    low = std::min(low, size);
    high = std::max(high, size);
    top = std::max(top, value);
  }
  std::string svg =
      format("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %.0f %.0f' ", kWidth, kHeight) +
      "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' "
      "fill='white'/>\n";
  if (series.empty()) return svg + "</svg>\n";

  // Sizes on a logarithmic axis that ends at powers of two; values from zero.
  const double first = std::floor(std::log2(low));
  const double last = std::max(first + 1, std::ceil(std::log2(high)));
  const double unit = std::pow(10.0, std::floor(std::log10(top)));
  top = of_ceiling ? std::max(1.0, top) : std::ceil(top / unit) * unit;
  const auto x_of = [&](double size) {
    return kLeft + (std::log2(size) - first) / (last - first) * (kWidth - kLeft - kRight);
  };
  const auto y_of = [&](double value) {
    return kHeight - kBottom - value / top * (kHeight - kTop - kBottom);
  };

  svg += label(kWidth / 2, 22,
               rows.front().device +
                   (of_ceiling ? ": fraction of the cooperative-matrix ceiling" : ": TFLOP/s"));
  const std::string grid = "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ddd'/>\n";
  for (double power = first; power <= last; ++power) {
    const double x = x_of(std::exp2(power));
    svg += format(grid.c_str(), x, kTop, x, kHeight - kBottom);
    svg += label(x, kHeight - kBottom + 18, format("%.0f", std::exp2(power)));
  }
  for (int step = 0; step <= 5; ++step) {
    const double value = top * step / 5;
    svg += format(grid.c_str(), kLeft, y_of(value), kWidth - kRight, y_of(value));
    svg += label(kLeft - 8, y_of(value) + 4, format("%.3g", value), "end");
  }
  svg += label(kWidth / 2, kHeight - kBottom + 36, "cube root of M*N*K");

  std::size_t index = 0;
  for (const auto& [name, points] : series) {
    const std::string colour = kColours[index % kColours.size()];
    std::string path;
    for (const auto& [size, value] : points) {
      path += format("%.1f,%.1f ", x_of(size), y_of(value));
      svg += format("<circle cx='%.1f' cy='%.1f' r='3' ", x_of(size), y_of(value)) + "fill='" +
             colour + "'/>\n";
    }
    svg += "<polyline points='" + path + "' fill='none' stroke='" + colour + "'/>\n";
    const double x = kLeft + static_cast<double>(index % 2) * 340;
    const auto line = index / 2;
    const double y = kHeight - 36 + static_cast<double>(line) * 16;
    svg += format("<rect x='%.1f' y='%.1f' width='10' height='10' ", x, y - 9) + "fill='" + colour +
           "'/>\n" + label(x + 16, y, name, "start");
    ++index;
  }
  return svg + "</svg>\n";
}

}  // namespace vkgemm::tool
