#include "report/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "report/compare.hpp"
#include "report/plot_internal.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::report {
namespace {

constexpr double kWidth = 900.0;

struct FamilyLook {
  const char* name;
  const char* colour;
};
constexpr std::array<FamilyLook, kFamilies> looks = {{{"dense", "#0072b2"},
                                                      {"epilogue", "#56a5d8"},
                                                      {"split-K", "#d99000"},
                                                      {"grouped", "#009e73"},
                                                      {"row reduction", "#d55e00"},
                                                      {"gated", "#b4649a"}}};

// The last part of "heavy+softmax", and the first of "swiglu:interleaved".
std::optional<RowOp> row_op_of(std::string_view epilogue) {
  return parse_row_op(epilogue.substr(epilogue.rfind('+') + 1));
}
std::optional<Gate> gate_of(std::string_view epilogue) {
  return parse_gate(epilogue.substr(0, epilogue.find(':')));
}

double bytes_of(std::string_view type) { return type == "f32" ? 4.0 : 2.0; }

// Many runs measure the ceiling once and pass the other cases a flag.
void lend_ceilings(std::vector<BenchRow>& rows) {
  const auto origin = [](const BenchRow& row) {
    return row.device + '\n' + row.driver + '\n' + row.commit;
  };
  std::map<std::string, BenchRow> lenders;
  for (const BenchRow& row : rows) {
    BenchRow& lender = lenders[origin(row)];
    if (row.on_matrices()) {
      lender.ceiling_tflops = std::max(lender.ceiling_tflops, row.ceiling_tflops);
    }
    lender.bandwidth_gbs = std::max(lender.bandwidth_gbs, row.bandwidth_gbs);
  }
  for (BenchRow& row : rows) {
    const BenchRow& lender = lenders[origin(row)];
    if (row.ceiling_tflops <= 0.0 && row.on_matrices()) row.ceiling_tflops = lender.ceiling_tflops;
    if (row.bandwidth_gbs <= 0.0) row.bandwidth_gbs = lender.bandwidth_gbs;
  }
}

std::string title_of(PlotKind kind) {
  switch (kind) {
    case PlotKind::roofline:
      return "Speed over arithmetic intensity";
    case PlotKind::ceiling:
      return "Fraction of the ceiling of the units that compute";
    case PlotKind::peers:
      return "Speed relative to peers on the same device";
    case PlotKind::all:
      break;
  }
  return "Speed";
}

// Device, driver, commit; of peers too. Returns where the figure begins.
double draw_title(Svg& svg, const std::vector<BenchRow>& rows, PlotKind kind) {
  std::set<std::string> devices, commits, peers;
  for (const BenchRow& row : rows) {
    devices.insert(row.device + ", " + row.driver);
    if (!row.commit.empty()) commits.insert(row.commit);
    if (row.peer_ms > 0.0 && !row.peer_driver.empty()) peers.insert(row.peer_driver);
  }
  svg.text({24.0, 34.0}, title_of(kind), {.size = 17.0, .bold = true});
  std::string origin = join(devices, "; ");
  if (!commits.empty()) origin += "; vkgemm " + join(commits, ", ");
  svg.text({24.0, 54.0}, origin, {.colour = ink::faint});
  if (kind == PlotKind::roofline || kind == PlotKind::ceiling || peers.empty()) return 66.0;
  svg.text({24.0, 71.0}, "peers: " + join(peers, "; "), {.colour = ink::faint});
  return 83.0;
}

double work_of(const BenchRow& row) {
  return static_cast<double>(row.m) * static_cast<double>(row.n) * static_cast<double>(row.k);
}

bool has_fraction(const BenchRow& row) { return row.fraction() > 0.0; }
bool has_peer(const BenchRow& row) { return row.times_peer() > 0.0; }

}  // namespace

std::optional<PlotKind> parse_plot_kind(std::string_view text) noexcept {
  if (text == "all") return PlotKind::all;
  if (text == "roofline") return PlotKind::roofline;
  if (text == "ceiling") return PlotKind::ceiling;
  if (text == "peers") return PlotKind::peers;
  return std::nullopt;
}

Family family_of(const BenchRow& row) {
  if (!row.groups.empty()) return Family::grouped;
  if (row_op_of(row.epilogue)) return Family::row_reduction;
  if (gate_of(row.epilogue)) return Family::gated;
  if (row.epilogue != "plain" && !row.epilogue.starts_with("batch:")) return Family::epilogue;
  return row.config.find("slices=") != std::string::npos ? Family::split_k : Family::dense;
}

const char* name_of(Family family) { return looks[static_cast<std::size_t>(family)].name; }
const char* colour_of(Family family) { return looks[static_cast<std::size_t>(family)].colour; }

Marker marker_of(const BenchRow& row) {
  if (row.type == "f32") return Marker::triangle;
  return row.type == "bf16" ? Marker::diamond : Marker::circle;
}

double compulsory_bytes(const BenchRow& row) {
  if (row.bytes > 0.0) return row.bytes;
  const auto m = static_cast<double>(row.m), n = static_cast<double>(row.n),
             k = static_cast<double>(row.k);
  const bool gated = family_of(row) == Family::gated;
  double matrices = 1.0;  // of B, where "64 groups along m, b per_group" says so
  if (row.groups.ends_with("b per_group")) matrices = std::atof(row.groups.c_str());
  double elements = m * k + matrices * (gated ? 2.0 : 1.0) * n * k;
  // A row's number alone is what such rows are for; D beside it would be in `bytes`.
  if (const auto op = row_op_of(row.epilogue); !op || !is_scalar(*op)) elements += m * n;
  if (row.epilogue.starts_with("heavy")) elements += 2.0 * m * n;
  return elements * bytes_of(row.type);
}

std::string short_shape(const BenchRow& row) {
  if (row.m == row.n && row.n == row.k) return std::to_string(row.m) + "³";
  return std::to_string(row.m) + "×" + std::to_string(row.n) + "×" + std::to_string(row.k);
}

std::string short_label(const BenchRow& row) {
  std::string text = short_shape(row) + ' ' + row.type;
  if (!row.groups.empty()) {
    text += ", " + row.groups.substr(0, row.groups.find(' ')) + " groups";
    if (row.groups.ends_with("b shared")) text += ", one B";
  }
  if (!row.packed.empty()) text += ", packed " + row.packed;
  if (row.layout_a != "row_major") text += ", A col";
  if (row.layout_b != "row_major") text += ", B col";
  if (row.epilogue != "plain") text += ", " + row.epilogue;
  if (row.l2 != "cold") text += ", L2 " + row.l2;
  return text;
}

std::string number(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string print_time(double ms) {
  const double value = ms < 1.0 ? ms * 1e3 : ms;
  return number(value < 10.0    ? "%.2f"
                : value < 100.0 ? "%.1f"
                                : "%.0f",
                value) +
         (ms < 1.0 ? " µs" : " ms");
}

Result<std::string> plot_svg(const std::vector<BenchRow>& all, const PlotOptions& options) {
  std::vector<BenchRow> rows = all;
  lend_ceilings(rows);
  rows = best_of_cases(rows);
  std::erase_if(rows, [](const BenchRow& row) { return !row.counts() || row.tflops <= 0.0; });
  const PlotKind kind = options.kind;
  if (kind == PlotKind::ceiling) std::erase_if(rows, std::not_fn(has_fraction));
  if (kind == PlotKind::peers) std::erase_if(rows, std::not_fn(has_peer));
  if (rows.empty()) {
    const char* const what = kind == PlotKind::ceiling ? "no row has a ceiling"
                             : kind == PlotKind::peers ? "no row has a peer's time"
                                                       : "no row has a time";
    return Error{Status::invalid_argument, std::string("nothing to draw: ") + what};
  }
  std::stable_sort(rows.begin(), rows.end(), [](const BenchRow& a, const BenchRow& b) {
    const auto key = [](const BenchRow& row) {
      using Text = const std::string&;
      return std::tuple<Family, Text, bool, Text, Text, bool, bool, double>(
          family_of(row), row.epilogue, row.type != "f16", row.type, row.packed,
          row.layout_a == "col_major", row.layout_b == "col_major", work_of(row));
    };
    return key(a) < key(b);
  });

  Svg svg(kWidth);
  double y = draw_title(svg, rows, kind);
  if (kind == PlotKind::all || kind == PlotKind::roofline) {
    y = draw_roofline(svg, rows, options.bandwidth_gbs, y);
  }
  if (kind != PlotKind::roofline) {
    const BarPanels panels{
        .ceiling = kind != PlotKind::peers && std::any_of(rows.begin(), rows.end(), has_fraction),
        .peers = kind != PlotKind::ceiling && std::any_of(rows.begin(), rows.end(), has_peer)};
    if (panels.ceiling || panels.peers) y = draw_bars(svg, rows, panels, y);
  }
  return svg.finish(y);
}

}  // namespace vkgemm::report
