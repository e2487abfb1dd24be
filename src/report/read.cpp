// read.cpp: rows from JSON lines: strict about the fields that it knows, since files come from
// anywhere.
#include "report/lines.hpp"
#include "report/rows.hpp"

namespace vkgemm::report {
namespace {

BenchRow parse_row(const nlohmann::json& document) {
  const Fields fields(document);
  BenchRow row;
  fields.text("device", row.device);
  fields.text("driver", row.driver);
  fields.text("commit", row.commit);
  fields.text("suite", row.suite);
  fields.size("m", row.m);
  fields.size("n", row.n);
  fields.size("k", row.k);
  fields.text("groups", row.groups);
  fields.needed_text("type", row.type);
  row.layout_a = row.layout_b = "row_major";  // peers' oldest rows don't say it
  fields.text("layout_a", row.layout_a);
  fields.text("layout_b", row.layout_b);
  fields.text("packed", row.packed);
  fields.needed_text("epilogue", row.epilogue);
  row.l2 = "cold";
  fields.text("l2", row.l2);
  fields.text("kernel", row.kernel);
  fields.text("config", row.config);
  fields.number("plan_ms", row.plan_ms);
  if (document.contains("repeats")) fields.size("repeats", row.repeats);
  fields.number("median_ms", row.median_ms);
  fields.number("min_ms", row.min_ms);
  fields.number("tflops", row.tflops);
  fields.number("bytes", row.bytes);
  fields.number("ceiling_tflops", row.ceiling_tflops);
  fields.number("bandwidth_gbs", row.bandwidth_gbs);
  fields.number("relative_error", row.relative_error);
  fields.number("clock", row.clock);
  fields.flag("verified", row.verified);
  fields.text("error", row.error);
  fields.text("peer", row.peer);
  fields.text("peer_driver", row.peer_driver);
  fields.number("peer_ms", row.peer_ms);
  return row;
}

}  // namespace

Result<std::vector<BenchRow>> parse_rows(std::string_view text, std::string_view source) {
  std::vector<BenchRow> rows;
  auto read = for_each_line(
      text, source, [&](const nlohmann::json& document) { rows.push_back(parse_row(document)); });
  if (!read) return read.error();
  return rows;
}

}  // namespace vkgemm::report
