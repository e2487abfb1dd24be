// table.cpp: the tuning tables: a strict parser, since a table may come from anywhere.
#include "tuning/table.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <exception>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "device/caps.hpp"
#include "embedded/embedded.hpp"
#include "kernels/legality.hpp"
#include "kernels/occupancy.hpp"
#include "kernels/refusals.hpp"

namespace vkgemm {
namespace {

// A table of every row one could measure is far below these. Rows are looked at whenever a plan is
// made.
constexpr std::size_t most_rows = 4096;
constexpr std::size_t most_tuned_shapes = 16384;

constexpr std::string_view provenance_kinds[] = {"measured: ", "compiled: ", "derived: "};

// Thrown and caught within parse_tuning_table.
struct TableError : std::runtime_error {
  TableError(std::string where, std::size_t at_line, const std::string& message)
      : std::runtime_error(message), path(std::move(where)), line(at_line) {}
  std::string path;  // to find the line by, if that is 0
  std::size_t line;
};

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw TableError(path, 0, message);
}

// One value of the table and how to name it: "rows[3].rate".
class Node {
 public:
  Node(const Json& value, std::string path) : value_(value), path_(std::move(path)) {}

  void check_keys(const std::vector<std::string_view>& known) const {
    if (!value_.is_object())
      fail(path_, concat(path_, " is ", value_.type_name(), ", not an object"));
    for (const auto& item : value_.items()) {
      if (std::ranges::find(known, item.key()) == known.end()) {
        fail(member(item.key()),
             concat(path_, path_.empty() ? "" : ": ", "unknown key ", in_quotes(item.key())));
      }
    }
  }

  std::optional<Node> find(std::string_view key) const {
    const auto it = value_.find(key);
    if (it == value_.end()) return std::nullopt;
    return Node(*it, member(key));
  }

  Node at(std::string_view key) const {
    auto node = find(key);
    if (!node) fail(member(key), concat(member(key), " is missing"));
    return *std::move(node);
  }

  [[noreturn]] void refuse(std::string_view message) const {
    fail(path_, concat(path_, ": ", message));
  }

  std::vector<Node> elements() const {
    if (!value_.is_array())
      fail(path_, concat(path_, " is ", value_.type_name(), ", not an array"));
    std::vector<Node> out;
    out.reserve(value_.size());
    for (const Json& element : value_) {
      out.emplace_back(element, concat(path_, '[', out.size(), ']'));
    }
    return out;
  }

  const std::string& text() const {
    if (!value_.is_string())
      fail(path_, concat(path_, " is ", value_.type_name(), ", not a string"));
    return value_.get_ref<const std::string&>();
  }

  const std::string& nonempty_text() const {
    if (text().empty()) fail(path_, concat(path_, " is empty"));
    return text();
  }

  // Words for people, to be printed with whatever they speak of.
  std::string note() const {
    constexpr std::size_t longest = 1000;
    if (nonempty_text().size() > longest) {
      fail(path_, concat(path_, " has ", text().size(), " bytes, at most ", longest));
    }
    return text();
  }

  std::uint64_t natural() const {
    if (!value_.is_number_unsigned()) {
      fail(path_,
           concat(path_, " is ", in_quotes(json_text(value_)), ", not an integer of at least 0"));
    }
    return value_.get<std::uint64_t>();
  }

  double positive() const {
    const double number = value_.is_number() ? value_.get<double>() : std::nan("");
    if (!std::isfinite(number) || number <= 0.0) {
      fail(path_,
           concat(path_, " is ", in_quotes(json_text(value_)), ", not a finite number above 0"));
    }
    return number;
  }

  // A name of an enumeration.
  template <class Parse>
  auto named(Parse parse, std::string_view what) const {
    const auto value = parse(text());
    if (!value) fail(path_, concat(path_, " is ", in_quotes(text()), ", which is no ", what));
    return *value;
  }

  Config config() const {
    auto parsed = parse_config(text());
    if (!parsed) refuse(parsed.error().message);
    return *parsed;
  }

  // One to compute with.
  Config proposed_config() const {
    const Config proposed = config();
    if (std::string reason; !has_legal_ranges(proposed, &reason)) refuse(reason);
    return proposed;
  }

  bool boolean() const {
    if (!value_.is_boolean()) {
      fail(path_, concat(path_, " is ", value_.type_name(), ", not true or false"));
    }
    return value_.get<bool>();
  }

  const std::string& path() const { return path_; }

 private:
  std::string member(std::string_view key) const {
    return concat(path_, path_.empty() ? "" : ".", key);
  }

  const Json& value_;
  std::string path_;
};

std::string parse_architecture(const Node& node) {
  const std::string& text = node.nonempty_text();
  const bool fits = std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (!fits)
    fail(node.path(), concat(node.path(), " is ", in_quotes(text), ", not a name in snake_case"));
  return text;
}

Range parse_range(const Node& node) {
  node.check_keys({"min", "max"});
  Range range;
  if (const auto min = node.find("min")) range.min = min->natural();
  if (const auto max = node.find("max")) range.max = max->natural();
  if (range.min > range.max) {
    fail(node.path(), concat(node.path(), " is empty: min ", range.min, ", max ", range.max));
  }
  return range;
}

std::vector<DataType> parse_types(const Node& node) {
  std::vector<DataType> types;
  for (const Node& element : node.elements()) {
    const DataType type = element.named(parse_data_type, "data type");
    if (std::ranges::find(types, type) != types.end()) {
      fail(element.path(), concat(element.path(), " is ", in_quotes(element.text()), " again"));
    }
    types.push_back(type);
  }
  if (types.empty()) fail(node.path(), concat(node.path(), " is empty: leave it out for any type"));
  return types;
}

std::string parse_provenance(const Node& node) {
  const std::string& text = node.text();
  const bool fits = std::ranges::any_of(provenance_kinds, [&](std::string_view kind) {
    return text.starts_with(kind) && text.size() > kind.size();
  });
  if (!fits) {
    fail(node.path(),
         concat(node.path(), " is ", in_quotes(text),
                ": must start with 'measured: ', 'compiled: ' or 'derived: ' and go on"));
  }
  return node.note();
}

std::string parse_family(const Node& node) {
  const auto family = node.find("family");
  if (!family) return "gemm";
  if (!is_row_family(family->text())) {
    fail(family->path(),
         concat(family->path(), " is ", in_quotes(family->text()), ", which is no kernel family"));
  }
  return family->text();
}

TuningRow parse_row(const Node& node) {
  node.check_keys({"family", "input_types", "a_layout", "b_layout", "m", "n", "k", "config", "rate",
                   "provenance"});
  TuningRow row;
  row.family = parse_family(node);
  if (const auto types = node.find("input_types")) row.input_types = parse_types(*types);
  if (const auto layout = node.find("a_layout")) {
    row.a_layout = layout->named(parse_layout, "layout");
  }
  if (const auto layout = node.find("b_layout")) {
    row.b_layout = layout->named(parse_layout, "layout");
  }
  if (const auto range = node.find("m")) row.m = parse_range(*range);
  if (const auto range = node.find("n")) row.n = parse_range(*range);
  if (const auto range = node.find("k")) row.k = parse_range(*range);
  row.config = node.at("config").proposed_config();
  row.rate = node.at("rate").positive();
  row.provenance = parse_provenance(node.at("provenance"));
  return row;
}

struct TimingField {
  std::string_view name;
  double TimingModel::*value;
  std::optional<double> left_out = {};  // what it is if it is not there
};
constexpr TimingField timing_fields[] = {
    {"compute_units", &TimingModel::compute_units},
    {"launch", &TimingModel::launch},
    {"tile", &TimingModel::tile},
    {"tile_values", &TimingModel::tile_values, TimingModel{}.tile_values},
    {"store", &TimingModel::store},
    {"latency", &TimingModel::latency},
    {"first_latency", &TimingModel::first_latency},
    {"ring_latency", &TimingModel::ring_latency},
    {"direct_latency", &TimingModel::direct_latency, TimingModel{}.direct_latency},
    {"load", &TimingModel::load},
    {"single_loads", &TimingModel::single_loads, TimingModel{}.single_loads},
    {"single_stores", &TimingModel::single_stores, TimingModel{}.single_stores},
    {"memory", &TimingModel::memory},
    {"sum", &TimingModel::sum},
    {"workspace", &TimingModel::workspace},
    {"copy", &TimingModel::copy},
    {"shared_memory_bytes", &TimingModel::shared_memory_bytes},
    {"shared_memory_overhead_bytes", &TimingModel::shared_memory_overhead_bytes, 0.0},
    {"registers", &TimingModel::registers},
};

// `base`: the timing that this one changes; null: it stands alone.
TimingModel parse_timing(const Node& node, const TimingModel* base) {
  std::vector<std::string_view> keys = {"provenance"};
  for (const TimingField& field : timing_fields) keys.push_back(field.name);
  node.check_keys(keys);
  TimingModel timing;
  for (const TimingField& field : timing_fields) {
    const bool left_out = (base != nullptr || field.left_out) && !node.find(field.name);
    timing.*field.value = !left_out         ? node.at(field.name).positive()
                          : base != nullptr ? base->*field.value
                                            : *field.left_out;
  }
  timing.provenance = parse_provenance(node.at("provenance"));
  return timing;
}

RefusedConfig parse_refused(const Node& node) {
  node.check_keys({"architecture", "family", "config", "rows", "reason"});
  RefusedConfig refused{.architecture = parse_architecture(node.at("architecture")),
                        .family = parse_family(node),
                        .reason = node.at("reason").note()};
  if (const auto rows = node.find("rows")) {
    refused.rows = rows->named(parse_row_strategy, "strategy for rows");
    if (refused.rows == RowStrategy::none) rows->refuse("none is no strategy");
    if (node.find("config")) node.refuse("config and rows stand there: one of them is needed");
  } else {
    refused.config = node.at("config").config();
  }
  return refused;
}

TunedShape parse_tuned(const Node& node) {
  node.check_keys(
      {"family",    "input_type", "a_layout", "b_layout",    "aligned",        "packed",
       "converted", "epilogue",   "d_type",   "d_col_major", "f32_arithmetic", "m",
       "n",         "k",          "count",    "config",      "microseconds",   "problem",
       "complete",  "provenance", "summed",   "indexed"});
  TunedShape shape;
  TunedProblem& p = shape.problem;
  const Node family = node.at("family");
  p.family = family.named(parse_tuned_family, "kernel family");
  p.input_type = node.at("input_type").named(parse_data_type, "data type");
  p.a_layout = node.at("a_layout").named(parse_layout, "layout");
  p.b_layout = node.at("b_layout").named(parse_layout, "layout");
  p.aligned = node.at("aligned").boolean();
  if (const auto packed = node.find("packed")) {
    p.packed = packed->named(parse_packed_operands, "list of packed operands: none, a, b or ab");
  }
  if (const auto converted = node.find("converted")) {
    p.converted =
        converted->named(parse_packed_operands, "list of converted operands: none, a, b or ab");
  }
  if (const auto summed = node.find("summed")) p.summed = summed->boolean();
  if (const auto indexed = node.find("indexed")) p.indexed = indexed->boolean();
  if (const auto epilogue = node.find("epilogue")) {
    p.epilogue =
        epilogue->named(parse_epilogue_work, "epilogue: none, c, aux, sums, or these joined by _");
  }
  if (const auto arithmetic = node.find("f32_arithmetic")) {
    p.f32_arithmetic = arithmetic->named(parse_f32_arithmetic, "f32 arithmetic");
  }
  p.d_type = p.input_type;
  if (const auto type = node.find("d_type")) p.d_type = type->named(parse_data_type, "data type");
  if (const auto columns = node.find("d_col_major")) p.d_col_major = columns->boolean();
  const auto size = [&](std::string_view name) {
    const std::uint64_t value = node.at(name).natural();
    if (value == 0) fail(node.at(name).path(), concat(node.at(name).path(), " is '0'"));
    return value;
  };
  p.m = size("m");
  p.n = size("n");
  p.k = size("k");
  if (node.find("count")) p.count = size("count");
  shape.microseconds = node.at("microseconds").positive();
  shape.row.config = node.at("config").proposed_config();
  shape.row.rate = 2e-6 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                   static_cast<double>(p.k) * static_cast<double>(p.count) / shape.microseconds;
  shape.row.provenance = parse_provenance(node.at("provenance"));
  if (const auto arguments = node.find("problem")) shape.arguments = arguments->text();
  if (const auto complete = node.find("complete")) shape.complete = complete->boolean();
  return shape;
}

DeniedConfig parse_denied(const Node& node) {
  node.check_keys({"config", "input_type", "verdict", "reason"});
  DeniedConfig denied{.config = node.at("config").config(), .reason = node.at("reason").note()};
  if (const auto type = node.find("input_type")) {
    denied.input_type = type->named(parse_data_type, "data type");
  }
  const auto is_wrong = [](std::string_view text) -> std::optional<bool> {
    if (text != "wrong" && text != "failed") return std::nullopt;
    return text == "wrong";
  };
  if (const auto verdict = node.find("verdict")) {
    denied.wrong = verdict->named(is_wrong, "verdict: wrong or failed");
  }
  return denied;
}

// The elements of an array of limited size.
std::vector<Node> list(const std::optional<Node>& node, std::size_t most) {
  if (!node) return {};
  std::vector<Node> elements = node->elements();
  if (elements.size() > most) {
    fail(node->path(),
         concat(node->path(), " has ", elements.size(), " elements, at most ", most, " are read"));
  }
  return elements;
}

std::uint32_t parse_device_id(const Node& node) {
  const std::string& text = node.text();
  std::uint32_t id = 0;
  const char* const end = text.data() + text.size();
  const bool has_prefix = text.starts_with("0x");
  if (!has_prefix || std::from_chars(text.data() + 2, end, id, 16).ptr != end || text.size() < 3) {
    node.refuse(concat("is ", in_quotes(text), ", not a PCI id such as '0x2335'"));
  }
  return id;
}

TuningTable parse_table(std::string_view text, const TuningTables& architectures) {
  const Json document = parse_json(text);
  if (!document.is_object()) {
    throw TableError("", 1, concat("is ", document.type_name(), ", not an object"));
  }
  const Node root(document, "");
  root.check_keys({"architecture", "device", "driver", "device_ids", "rows", "tuned", "timing",
                   "refused", "denied"});
  TuningTable table;
  table.architecture = parse_architecture(root.at("architecture"));
  if (const auto device = root.find("device")) table.device = device->nonempty_text();
  if (const auto driver = root.find("driver")) table.driver = driver->nonempty_text();
  for (const Node& id : list(root.find("device_ids"), most_rows)) {
    table.device_ids.push_back(parse_device_id(id));
  }
  const TuningTable* base = nullptr;
  if (!table.device_ids.empty()) {
    const auto found = architectures.find(table.architecture);
    if (found == architectures.end()) {
      root.at("device_ids")
          .refuse(
              "only tables of this library have them, in addition to one for "
              "the whole architecture");
    }
    base = &found->second;
    if (const auto rows = root.find("rows")) rows->refuse("a table with device_ids has none");
    table.rows = base->rows;
    table.timing = base->timing;
    table.has_timing = base->has_timing;
  } else {
    for (const Node& row : list(root.at("rows"), most_rows)) table.rows.push_back(parse_row(row));
  }
  for (const Node& entry : list(root.find("tuned"), most_tuned_shapes)) {
    table.tuned.push_back(parse_tuned(entry));
  }
  if (const auto timing = root.find("timing")) {
    table.timing = parse_timing(*timing, base != nullptr ? &base->timing : nullptr);
    table.has_timing = true;
  }
  for (const Node& entry : list(root.find("refused"), most_rows)) {
    table.refused.push_back(parse_refused(entry));
  }
  for (const Node& entry : list(root.find("denied"), most_rows)) {
    table.denied.push_back(parse_denied(entry));
  }
  return table;
}

}  // namespace

bool TuningRow::serves(const ResolvedProblem& problem) const noexcept {
  const bool type_fits = input_types.empty() ||
                         std::ranges::find(input_types, problem.input_type()) != input_types.end();
  return type_fits && is_of_family(problem, family);
}

bool TuningRow::matches_kind(const ResolvedProblem& problem) const noexcept {
  const auto agrees = [](const std::optional<Layout>& wanted, Layout layout) {
    return !wanted || *wanted == layout;
  };
  return agrees(a_layout, problem.a.layout) && agrees(b_layout, problem.b.layout) &&
         serves(problem);
}

bool TuningRow::matches(const ResolvedProblem& problem) const noexcept {
  return m.contains(problem.typical_m()) && n.contains(problem.product_n()) &&
         k.contains(problem.typical_k()) && matches_kind(problem);
}

Result<TuningTable> parse_tuning_table(std::string_view text, std::string_view source,
                                       const TuningTables& architectures) {
  if (text.size() > longest_tuning_table) {
    return Error{Status::invalid_argument,
                 concat(source, ": is ", text.size(), " bytes long, at most ", longest_tuning_table,
                        " are read")};
  }
  try {
    return parse_table(text, architectures);
  } catch (const TableError& error) {
    const std::size_t line = error.line != 0 ? error.line : line_of(text, error.path);
    return Error{Status::invalid_argument, concat(source, ": line ", line, ": ", error.what())};
  } catch (const JsonRefusal& refusal) {
    return Error{Status::invalid_argument,
                 concat(source, ": line ", refusal.line, ": ", refusal.what())};
  } catch (const Json::exception& error) {
    // Says line and column.
    return Error{Status::invalid_argument, concat(source, ": not JSON: ", excerpt(error.what()))};
  }
}

const DeniedConfig* denial(const TuningTable& table, const Config& config, DataType input_type) {
  const auto found = std::ranges::find_if(table.denied, [&](const DeniedConfig& denied) {
    if (denied.input_type && *denied.input_type != input_type) return false;
    return denied.wrong ? forbids(denied.config, config) : denied.config == config;
  });
  return found != table.denied.end() ? &*found : nullptr;
}

bool is_denied(const TuningTable& table, const Config& config, DataType input_type) {
  return denial(table, config, input_type) != nullptr;
}

std::string provenance_of(const TuningRow& row, const Config& config, DataType input) {
  std::string text = row.provenance;
  if (is_reshaped(config, row.config)) {
    text = concat("derived: whole rows in a tile, made from ", to_string(row.config), ", ", text);
  }
  // "…: 43 TFLOP/s at 4096x4096x4096 f16", in a row that serves all input types.
  const auto timed = parse_data_type(std::string_view(text).substr(text.rfind(' ') + 1));
  const bool serves_all = row.input_types.empty();
  if (serves_all && timed && *timed != input) {
    text += concat("; vkgemm assumes the same rate for ", to_string(input));
  }
  return text;
}

}  // namespace vkgemm
