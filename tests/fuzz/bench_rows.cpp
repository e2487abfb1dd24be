// Lines of benchmarks, as `vkgemm bench --from` and --baseline read them: refused with file and
// line, or compared and drawn.
#include "fuzz.hpp"
#include "report/compare.hpp"
#include "report/plot.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  const auto rows = report::parse_rows(fuzz::as_text(data, size), "rows.jsonl");
  if (!rows) {
    fuzz::require_message(rows.error().message, "rows.jsonl:");
    return 0;
  }
  const report::Comparison same = report::compare(*rows, *rows, 1.0);
  fuzz::require(same.regressions == 0, "rows are as fast as they are");
  for (const auto kind : {report::PlotKind::all, report::PlotKind::ceiling}) {
    const auto svg = report::plot_svg(*rows, {.kind = kind, .bandwidth_gbs = 100.0});
    if (!svg) continue;
    fuzz::require(svg->starts_with("<svg") && svg->ends_with("</svg>\n"), "a drawing is whole");
    // Of texts no quote is left as it was: these are attributes.
    fuzz::require(svg->find("nan'") == std::string::npos && svg->find("inf'") == std::string::npos,
                  "every place is a number");
  }
  return 0;
}
