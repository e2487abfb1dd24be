// plot.hpp: rows of a benchmark as a picture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/rows.hpp"

namespace vkgemm::report {

// roofline: TFLOP/s over FLOP/byte, under the measured ceiling and the memory's bandwidth.
// ceiling, peers: a line for each case: the fraction of the ceiling, the speed relative to a peer's
// (logarithmic). all: the three of them in one picture.
enum class PlotKind : std::uint8_t { all, roofline, ceiling, peers };

std::optional<PlotKind> parse_plot_kind(std::string_view text) noexcept;

struct PlotOptions {
  PlotKind kind = PlotKind::all;
  double bandwidth_gbs = 0.0;  // of devices whose rows don't say it; 0: no such line
};

// The fastest row of each case as SVG. Rows of cooperative matrices without a ceiling have that of
// their device, driver and commit, if another row has one. invalid_argument: nothing to draw.
Result<std::string> plot_svg(const std::vector<BenchRow>& rows, const PlotOptions& options);

}  // namespace vkgemm::report
