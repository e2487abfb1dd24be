// read.cpp: rows from JSON lines and back. Reading is strict about the fields that it knows, since
// files come from anywhere.
#include "base/json.hpp"
#include "report/lines.hpp"
#include "report/rows.hpp"

namespace vkgemm::report {
namespace {

// Passes each member of a line to a visitor, with the field of the row, in the order of the line.
void visit(auto& visitor, auto&& row) {
  visitor.text("device", row.device);
  visitor.text("driver", row.driver);
  visitor.text("commit", row.commit);
  visitor.text("suite", row.suite);
  visitor.size("m", row.m);
  visitor.size("n", row.n);
  visitor.size("k", row.k);
  visitor.text("groups", row.groups);
  visitor.needed_text("type", row.type);
  visitor.text("layout_a", row.layout_a);
  visitor.text("layout_b", row.layout_b);
  visitor.text("packed", row.packed);
  visitor.needed_text("epilogue", row.epilogue);
  visitor.text("l2", row.l2);
  visitor.text("kernel", row.kernel);
  visitor.text("config", row.config);
  visitor.number("plan_ms", row.plan_ms);
  visitor.count("repeats", row.repeats);
  visitor.number("median_ms", row.median_ms);
  visitor.number("min_ms", row.min_ms);
  visitor.number("tflops", row.tflops);
  visitor.number("bytes", row.bytes);
  visitor.number("ceiling_tflops", row.ceiling_tflops);
  visitor.derived("fraction", row.fraction());
  visitor.number("bandwidth_gbs", row.bandwidth_gbs);
  visitor.number("clock", row.clock);
  visitor.verdict(row.relative_error, row.verified);
  visitor.text("error", row.error);
  visitor.text("peer", row.peer);
  visitor.number("peer_ms", row.peer_ms);
  visitor.derived("times_peer", row.times_peer());
  visitor.text("peer_driver", row.peer_driver);
  visitor.derived("baseline_ms", row.baseline_ms);
  visitor.derived("of_baseline", row.of_baseline());
}

struct Reader : Fields {
  using Fields::Fields;
  void count(const char* key, std::uint64_t& value) const {
    if (has(key)) size(key, value);
  }
  void verdict(double& relative_error, bool& verified) const {
    number("relative_error", relative_error);
    flag("verified", verified);
  }
  void derived(const char*, double) const {}
};

// Leaves out what is empty, 0 or not known.
struct Writer {
  void text(const char* key, const std::string& value) {
    if (!value.empty()) line[key] = value;
  }
  void needed_text(const char* key, const std::string& value) { line[key] = value; }
  void size(const char* key, std::uint64_t value) { line[key] = value; }
  void count(const char* key, std::uint64_t value) {
    if (value != 0) line[key] = value;
  }
  void number(const char* key, double value) {
    if (value > 0.0) line[key] = value;
  }
  void derived(const char* key, double value) { number(key, value); }
  void verdict(double relative_error, bool verified) {
    if (relative_error < 0.0) return;
    line["relative_error"] = relative_error;
    line["verified"] = verified;
  }

  Json& line;
};

}  // namespace

Result<std::vector<BenchRow>> parse_rows(std::string_view text, std::string_view source) {
  std::vector<BenchRow> rows;
  auto read = for_each_line(text, source, [&](const nlohmann::json& document) {
    Reader reader(document);
    visit(reader, rows.emplace_back());
  });
  if (!read) return read.error();
  return rows;
}

std::string json_line(const BenchRow& row) {
  Json line;
  Writer writer{line};
  visit(writer, row);
  return json_text(line);
}

}  // namespace vkgemm::report
