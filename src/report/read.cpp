// read.cpp: rows from JSON lines: strict about the fields that it knows, since files come from
// anywhere.
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "report/rows.hpp"

namespace vkgemm::report {
namespace {

using nlohmann::json;

// Thousands of times what all suites print together.
constexpr std::size_t kLongestText = std::size_t{64} << 20;
constexpr int kDeepestNesting = 4;
constexpr std::uint64_t kLargestSize = (std::uint64_t{1} << 40) - 1;

// Thrown and caught within parse_rows.
struct RowError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& message) { throw RowError(message); }

// A value as messages show it.
std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

class Fields {
 public:
  explicit Fields(const json& row) : row_(row) {}

  void text(const char* key, std::string& value) const {
    const auto found = row_.find(key);
    if (found == row_.end()) return;
    if (!found->is_string()) fail(std::string(key) + " is " + shown(*found) + ", not a string");
    value = found->get<std::string>();
  }
  void needed_text(const char* key, std::string& value) const {
    text(key, value);
    if (value.empty()) fail(std::string(key) + " is missing");
  }

  void size(const char* key, std::uint64_t& value) const {
    const auto found = row_.find(key);
    if (found == row_.end()) fail(std::string(key) + " is missing");
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > kLargestSize) {
      fail(std::string(key) + " is " + shown(*found) + ", not a size");
    }
    value = found->get<std::uint64_t>();
  }

  void number(const char* key, double& value) const {
    const auto found = row_.find(key);
    if (found == row_.end()) return;
    const double number = found->is_number() ? found->get<double>() : std::nan("");
    if (!std::isfinite(number) || number < 0.0) {
      fail(std::string(key) + " is " + shown(*found) + ", not a finite number of at least 0");
    }
    value = number;
  }

  void flag(const char* key, bool& value) const {
    const auto found = row_.find(key);
    if (found == row_.end()) return;
    if (!found->is_boolean())
      fail(std::string(key) + " is " + shown(*found) + ", not true or false");
    value = found->get<bool>();
  }

 private:
  const json& row_;
};

BenchRow parse_row(std::string_view line) {
  const auto check = [](int depth, json::parse_event_t, const json&) {
    if (depth > kDeepestNesting) fail("nested too deeply");
    return true;
  };
  const json document = json::parse(line, check);
  if (!document.is_object()) fail(std::string("is ") + document.type_name() + ", not an object");
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
  fields.flag("verified", row.verified);
  fields.text("error", row.error);
  fields.text("peer", row.peer);
  fields.number("peer_ms", row.peer_ms);
  return row;
}

}  // namespace

Result<std::vector<BenchRow>> parse_rows(std::string_view text, std::string_view source) {
  const auto error = [&](std::size_t line, const std::string& what) {
    return Error{Status::invalid_argument,
                 std::string(source) + ':' + std::to_string(line) + ": " + what};
  };
  if (text.size() > kLongestText) {
    return error(1, "the file has " + std::to_string(text.size()) + " bytes, at most " +
                        std::to_string(kLongestText) + " are read");
  }
  std::vector<BenchRow> rows;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      rows.push_back(parse_row(line));
    } catch (const RowError& wrong) {
      return error(number, wrong.what());
    } catch (const json::exception& wrong) {
      return error(number, std::string("not JSON: ") + wrong.what());
    }
  }
  return rows;
}

}  // namespace vkgemm::report
