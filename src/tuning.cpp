// tuning.cpp: the tuning tables: a strict parser, since a table may come from anywhere.
#include "tuning.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <exception>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "embedded.hpp"
#include "text.hpp"

namespace vkgemm {
namespace {

using nlohmann::json;

// A table of every row one could measure is far below these.
constexpr std::size_t longest_text = std::size_t{16} << 20;
constexpr int deepest_nesting = 8;

constexpr std::string_view provenance_kinds[] = {"measured: ", "compiled: ", "derived: "};

// Thrown and caught within parse_tuning_table.
struct TableError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& message) { throw TableError(message); }

// One value of the table and how to name it: "rows[3].rate".
class Node {
 public:
  Node(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  void check_keys(const std::vector<std::string_view>& known) const {
    if (!value_.is_object()) fail(concat(path_, " is ", value_.type_name(), ", not an object"));
    for (const auto& item : value_.items()) {
      if (std::ranges::find(known, item.key()) == known.end()) {
        fail(concat(path_, ": unknown key ", in_quotes(item.key())));
      }
    }
  }

  std::optional<Node> find(std::string_view key) const {
    const auto it = value_.find(key);
    if (it == value_.end()) return std::nullopt;
    return Node(*it, concat(path_, path_.empty() ? "" : ".", key));
  }

  Node at(std::string_view key) const {
    auto node = find(key);
    if (!node) fail(concat(path_, path_.empty() ? "" : ".", key, " is missing"));
    return *std::move(node);
  }

  std::vector<Node> elements() const {
    if (!value_.is_array()) fail(concat(path_, " is ", value_.type_name(), ", not an array"));
    std::vector<Node> out;
    out.reserve(value_.size());
    for (const json& element : value_) {
      out.emplace_back(element, concat(path_, '[', out.size(), ']'));
    }
    return out;
  }

  const std::string& text() const {
    if (!value_.is_string()) fail(concat(path_, " is ", value_.type_name(), ", not a string"));
    return value_.get_ref<const std::string&>();
  }

  const std::string& nonempty_text() const {
    if (text().empty()) fail(concat(path_, " is empty"));
    return text();
  }

  std::uint64_t natural() const {
    if (!value_.is_number_unsigned()) {
      fail(concat(path_, " is ", in_quotes(value_.dump()), ", not an integer of at least 0"));
    }
    return value_.get<std::uint64_t>();
  }

  double positive() const {
    const double number = value_.is_number() ? value_.get<double>() : std::nan("");
    if (!std::isfinite(number) || number <= 0.0) {
      fail(concat(path_, " is ", in_quotes(value_.dump()), ", not a finite number above 0"));
    }
    return number;
  }

  // A name of an enumeration.
  template <class Parse>
  auto named(Parse parse, std::string_view what) const {
    const auto value = parse(text());
    if (!value) fail(concat(path_, " is ", in_quotes(text()), ", which is no ", what));
    return *value;
  }

  Config config() const {
    auto parsed = parse_config(text());
    if (!parsed) fail(concat(path_, ": ", parsed.error().message));
    return *parsed;
  }

  const std::string& path() const { return path_; }

 private:
  const json& value_;
  std::string path_;
};

std::string parse_architecture(const Node& node) {
  const std::string& text = node.nonempty_text();
  const bool fits = std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (!fits) fail(concat(node.path(), " is ", in_quotes(text), ", not a name in snake_case"));
  return text;
}

Range parse_range(const Node& node) {
  node.check_keys({"min", "max"});
  Range range;
  if (const auto min = node.find("min")) range.min = min->natural();
  if (const auto max = node.find("max")) range.max = max->natural();
  if (range.min > range.max) {
    fail(concat(node.path(), " is empty: min ", range.min, ", max ", range.max));
  }
  return range;
}

std::vector<DataType> parse_types(const Node& node) {
  std::vector<DataType> types;
  for (const Node& element : node.elements()) {
    const DataType type = element.named(parse_data_type, "data type");
    if (std::ranges::find(types, type) != types.end()) {
      fail(concat(element.path(), " is ", in_quotes(element.text()), " again"));
    }
    types.push_back(type);
  }
  if (types.empty()) fail(concat(node.path(), " is empty: leave it out for any type"));
  return types;
}

std::string parse_provenance(const Node& node) {
  const std::string& text = node.text();
  const bool fits = std::ranges::any_of(provenance_kinds, [&](std::string_view kind) {
    return text.starts_with(kind) && text.size() > kind.size();
  });
  if (!fits) {
    fail(concat(node.path(), " is ", in_quotes(text),
                ": must start with 'measured: ', 'compiled: ' or 'derived: ' and go on"));
  }
  return text;
}

std::string parse_family(const Node& node) {
  const auto family = node.find("family");
  if (!family) return "gemm";
  if (family->text() != "gemm" && family->text() != "grouped") {
    fail(concat(family->path(), " is ", in_quotes(family->text()), ", which is no kernel family"));
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
  row.config = node.at("config").config();
  row.rate = node.at("rate").positive();
  row.provenance = parse_provenance(node.at("provenance"));
  return row;
}

struct TimingField {
  std::string_view name;
  double TimingModel::*value;
};
constexpr TimingField timing_fields[] = {
    {"compute_units", &TimingModel::compute_units},
    {"launch", &TimingModel::launch},
    {"tile", &TimingModel::tile},
    {"store", &TimingModel::store},
    {"latency", &TimingModel::latency},
    {"first_latency", &TimingModel::first_latency},
    {"ring_latency", &TimingModel::ring_latency},
    {"load", &TimingModel::load},
    {"memory", &TimingModel::memory},
    {"sum", &TimingModel::sum},
    {"workspace", &TimingModel::workspace},
    {"copy", &TimingModel::copy},
    {"shared_memory_bytes", &TimingModel::shared_memory_bytes},
    {"registers", &TimingModel::registers},
};

TimingModel parse_timing(const Node& node) {
  std::vector<std::string_view> keys = {"provenance"};
  for (const TimingField& field : timing_fields) keys.push_back(field.name);
  node.check_keys(keys);
  TimingModel timing;
  for (const TimingField& field : timing_fields) {
    timing.*field.value = node.at(field.name).positive();
  }
  timing.provenance = parse_provenance(node.at("provenance"));
  return timing;
}

RefusedConfig parse_refused(const Node& node) {
  node.check_keys({"architecture", "family", "config", "reason"});
  return {.architecture = parse_architecture(node.at("architecture")),
          .family = parse_family(node),
          .config = node.at("config").config(),
          .reason = node.at("reason").nonempty_text()};
}

// Counts lines as the parser reads them: its callback isn't told where it is.
class LineIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineIterator(const char* at, std::size_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineIterator& operator++() {
    *line_ += *at_ == '\n' ? 1 : 0;
    ++at_;
    return *this;
  }
  bool operator==(const LineIterator& other) const { return at_ == other.at_; }
  bool operator!=(const LineIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* line_;
};

// The JSON library keeps the last of two equal keys and nests without end; a table does neither.
json parse_json(std::string_view text) {
  std::size_t line = 1;
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest_nesting) {
      fail(concat("line ", line, ": nested deeper than ", deepest_nesting, " levels"));
    }
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        fail(concat("line ", line, ": key ", in_quotes(key), " appears twice"));
      }
    }
    return true;
  };
  const char* const end = text.data() + text.size();
  return json::parse(LineIterator(text.data(), &line), LineIterator(end, &line), check);
}

TuningTable parse_table(std::string_view text) {
  if (text.size() > longest_text) {
    fail(concat("is ", text.size(), " bytes long, at most ", longest_text, " are read"));
  }
  const json document = parse_json(text);
  if (!document.is_object()) fail(concat("is ", document.type_name(), ", not an object"));
  const Node root(document, "");
  root.check_keys({"architecture", "rows", "timing", "refused"});
  TuningTable table;
  table.architecture = parse_architecture(root.at("architecture"));
  for (const Node& row : root.at("rows").elements()) table.rows.push_back(parse_row(row));
  if (const auto timing = root.find("timing")) table.timing = parse_timing(*timing);
  if (const auto refused = root.find("refused")) {
    for (const Node& entry : refused->elements()) table.refused.push_back(parse_refused(entry));
  }
  return table;
}

using Tables = std::map<std::string, TuningTable, std::less<>>;

const Tables& built_in_tables() {
  static const Tables tables = [] {
    Tables out;
    for (const embedded::Text& embedded : embedded::tables()) {
      auto table = parse_tuning_table(embedded.text, embedded.name);
      assert(table && "a table that is built in must parse: tuning_test says what is wrong");
      if (!table) continue;
      std::string name = table->architecture;
      out.insert_or_assign(std::move(name), *std::move(table));
    }
    out.try_emplace("generic");
    return out;
  }();
  return tables;
}

}  // namespace

bool TuningRow::matches(const ResolvedProblem& problem) const noexcept {
  const auto agrees = [](const std::optional<Layout>& wanted, Layout layout) {
    return !wanted || *wanted == layout;
  };
  const bool type_fits =
      input_types.empty() || std::ranges::find(input_types, problem.a.type) != input_types.end();
  const bool family_fits = family == "gemm" || (family == "grouped" && problem.grouping);
  return family_fits && type_fits && agrees(a_layout, problem.a.layout) &&
         agrees(b_layout, problem.b.layout) && m.contains(problem.typical_m()) &&
         n.contains(problem.product_n()) && k.contains(problem.typical_k());
}

Result<TuningTable> parse_tuning_table(std::string_view text, std::string_view source) {
  try {
    return parse_table(text);
  } catch (const TableError& error) {
    return Error{Status::invalid_argument, concat(source, ": ", error.what())};
  } catch (const json::exception& error) {
    // Says line and column.
    return Error{Status::invalid_argument, concat(source, ": not JSON: ", error.what())};
  }
}

std::string provenance_of(const TuningRow& row, const Config& config) {
  const Config& own = row.config;
  const bool reshaped = config.tile_m != own.tile_m || config.tile_n != own.tile_n ||
                        config.tile_k != own.tile_k || config.stages != own.stages;
  if (!reshaped) return row.provenance;
  return concat("derived: whole rows in a tile, made from ", to_string(own), ", ", row.provenance);
}

std::optional<std::string> why_refused(const TuningTable& table, const Config& config,
                                       const ResolvedProblem& problem,
                                       std::string_view architecture) {
  for (const RefusedConfig& refused : table.refused) {
    if (refused.architecture != architecture) continue;
    if (refused.family == "grouped" && !problem.grouping) continue;
    // What the main loop and the accumulators are made of; the rest changes no fragment.
    Config same = config;
    same.swizzle = refused.config.swizzle;
    same.unroll_k = refused.config.unroll_k;
    same.slices = refused.config.slices;
    same.tier = refused.config.tier;
    same.spin_limit = refused.config.spin_limit;
    same.pack_a = refused.config.pack_a;
    same.pack_b = refused.config.pack_b;
    same.peel = refused.config.peel;
    same.static_shape = refused.config.static_shape;
    // A refusal of the persistent schedule leaves the simple one, which needs fewer registers.
    if (refused.config.schedule == Schedule::simple) same.schedule = Schedule::simple;
    same.workgroups = refused.config.workgroups;
    same.rows = refused.config.rows;
    if (same == refused.config) {
      return concat("refused on ", architecture, ": ", refused.reason);
    }
  }
  return std::nullopt;
}

std::optional<std::string> why_refused(const Config& config, const ResolvedProblem& problem,
                                       std::string_view architecture) {
  for (const auto& [name, table] : built_in_tables()) {
    if (auto reason = why_refused(table, config, problem, architecture)) return reason;
  }
  return std::nullopt;
}

const TuningTable& built_in_table(std::string_view architecture) {
  const Tables& tables = built_in_tables();
  const auto it = tables.find(architecture);
  return it != tables.end() ? it->second : tables.find("generic")->second;
}

}  // namespace vkgemm
