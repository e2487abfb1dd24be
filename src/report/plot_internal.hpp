// plot_internal.hpp: what the panels of a plot share.
#pragma once

#include <string>
#include <vector>

#include "report/rows.hpp"
#include "report/svg.hpp"

namespace vkgemm::report {

enum class Family : std::uint8_t { dense, epilogue, split_k, grouped, row_reduction, gated };
inline constexpr std::size_t kFamilies = 6;

Family family_of(const BenchRow& row);
const char* name_of(Family family);
const char* colour_of(Family family);
Marker marker_of(const BenchRow& row);

// Bytes of operands and results, each once: as the row says, else as its case has them.
double compulsory_bytes(const BenchRow& row);

// "8192³", and "8192³ bf16, B col, geglu_erf".
std::string short_shape(const BenchRow& row);
std::string short_label(const BenchRow& row);

// A number in a format of printf's.
std::string number(const char* format, double value);

// "7.4 µs", "3.31 ms"
std::string print_time(double ms);

// Both draw from `top` on and give where they end.
double draw_roofline(Svg& svg, const std::vector<BenchRow>& all, double bandwidth_gbs, double top);

struct BarPanels {
  bool ceiling = false;
  bool peers = false;
};
double draw_bars(Svg& svg, const std::vector<BenchRow>& rows, const BarPanels& panels, double top);

}  // namespace vkgemm::report
