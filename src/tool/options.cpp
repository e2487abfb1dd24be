#include "tool/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <numeric>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "problem/data_type.hpp"
#include "problem/fields.hpp"
#include "problem/inputs/input.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {

std::uint64_t parse_size(const std::string& option, const std::string& text, std::uint64_t limit) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || value > limit) {
    throw CLI::ValidationError(option + " is '" + text + "': a whole number from 0 to " +
                               std::to_string(limit) + " is needed");
  }
  return value;
}

std::string read_file(const std::string& option, const std::string& file) {
  const auto bytes = vkgemm::read_file(path_of(file), std::numeric_limits<std::uint64_t>::max());
  if (!bytes) throw Failure(usage_error, option + ": " + bytes.error().message);
  if (bytes->empty()) {
    throw Failure(usage_error, option + ": " + file + " cannot be read, or is empty");
  }
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

std::vector<std::uint64_t> parse_sizes(const std::string& option, const std::string& text) {
  std::vector<std::uint64_t> sizes;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find('x', begin);
    sizes.push_back(parse_size(option, text.substr(begin, end - begin), kMaxSize));
    if (end == std::string::npos) return sizes;
    begin = end + 1;
  }
}

namespace {

// How many letters must be put in, left out or exchanged to make one word of another.
std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t exchanged = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({exchanged, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  const std::string* found = nullptr;
  std::size_t least = (word.size() + 2) / 3;  // more edits than this make another word
  for (const std::string& name : names) {
    const std::size_t distance =
        std::min(edits(word, name), edits(word, name.substr(0, name.find('_'))));  // gelu_erf: gelu
    if (distance > least || (distance == least && found != nullptr)) continue;
    least = distance;
    found = &name;
  }
  return found == nullptr ? "" : *found;
}

std::string suggestion(std::string_view word, std::string_view choices) {
  const auto before_options = [](std::string_view text) {
    return text.substr(0, text.find_first_of(":["));
  };
  std::vector<std::string> names;
  for (std::string_view rest = before_options(choices); !rest.empty();) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::string_view name = before_options(word);
  const std::string meant = nearest(name, names);
  return meant.empty() || meant == name ? "" : "; did you mean " + meant + "?";
}

CLI::Option* add_fill(CLI::App& app, Fill& value) {
  return add_named(app, "--fill", value,
                   "Values of generated matrices: random in [-1, 1), or integers from -2 to 2, "
                   "whose products are exact",
                   "random|integers", parse_fill);
}

std::string names_of(bool (*accepts)(DataType)) {
  std::string names;
  for (const DataTypeRow& row : data_types) {
    if (accepts(row.type)) names.append(names.empty() ? "" : "|").append(row.name);
  }
  return names;
}

std::optional<DataType> parse_type(std::string_view text, bool (*accepts)(DataType)) {
  const auto type = parse_data_type(text);
  return type && accepts(*type) ? type : std::nullopt;
}

DataType default_result(const Problem& problem, bool quantised_b) {
  if (problem.row_reduction && problem.row_reduction->op == RowOp::quantise) {
    return RowQuantisation{}.codes.type;
  }
  const Input* const input = find_input(problem, problem.a);
  if (input == nullptr || input->accumulator == DataType::f32) {
    return is_byte(problem.a.type) ? DataType::f16 : problem.a.type;
  }
  const bool sums =
      !quantised_b && problem.epilogue == Epilogue{} && !problem.gated && !problem.row_reduction;
  return sums ? input->accumulator : DataType::f16;
}

namespace {

// "swiglu", "swiglu:interleaved" or "swiglu:swapped:limit=7:slope=1.702:offset=1"
std::optional<Gated> parse_gated(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, ':');
  const auto gate = vkgemm::parse_gate(parts.front());
  if (!gate) return std::nullopt;
  Gated gated{.gate = *gate};
  const std::pair<std::string_view, float Gated::*> numbers[] = {
      {"limit=", &Gated::limit}, {"slope=", &Gated::slope}, {"offset=", &Gated::offset}};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    if (const auto b = parse_gated_b(part)) {
      gated.b = *b;
      continue;
    }
    if (part == "swapped") {
      gated.swapped = true;
      continue;
    }
    const auto* const number = std::ranges::find_if(
        numbers, [part](const auto& one) { return part.starts_with(one.first); });
    if (number == std::end(numbers)) return std::nullopt;
    const auto value = parse_number<float>(part.substr(number->first.size()));
    if (!value) return std::nullopt;
    gated.*number->second = *value;
  }
  return gated;
}

// "auto", "4" or "4:last_arriver"
SplitK parse_split_k(const std::string& text) {
  SplitK split;
  const std::size_t colon = text.find(':');
  const std::string slices = text.substr(0, colon);
  if (slices != "auto") {
    split.slices = static_cast<std::uint32_t>(parse_size("--split-k", slices, most_slices));
  }
  if (colon == std::string::npos) return split;
  split.reduction_mode = parse_reduction_mode(text.substr(colon + 1));
  if (split.reduction_mode) return split;
  throw CLI::ValidationError("--split-k is '" + text +
                             "': after the colon one of two_dispatches, last_arriver, "
                             "device_barrier is needed");
}

// "activate:silu,multiply:t0"
void parse_list(const std::string& text, std::array<EpilogueStep, most_steps>& steps) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() > most_steps) {
    throw CLI::ValidationError("--steps has " + std::to_string(parts.size()) + " steps: at most " +
                               std::to_string(most_steps) + " are supported");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto step = parse_epilogue_step(parts[i]);
    if (!step) throw CLI::ValidationError("--steps: " + step.error().message);
    steps[i] = *step;
  }
}

// "matrix,along_n"
void parse_list(const std::string& text, std::array<TensorShape, most_tensors>& shapes) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() > most_tensors) {
    throw CLI::ValidationError("--tensors has " + std::to_string(parts.size()) +
                               " shapes: t0 to t3 are supported");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto shape = parse_tensor_shape(parts[i]);
    if (!shape) {
      throw CLI::ValidationError("--tensors has '" + std::string(parts[i]) +
                                 "': " + names_of<TensorShape>() + " is needed" +
                                 suggestion(parts[i], names_of<TensorShape>()));
    }
    shapes[i] = *shape;
  }
}

// Adds the option of each field that has one, or of those that are named.
class AddFields {
 public:
  AddFields(CLI::App& app, std::set<std::string_view>& given, std::string_view matrix = {},
            std::vector<std::string_view> fields = {})
      : app_(app), given_(given), matrix_(matrix), fields_(std::move(fields)) {}

  template <class Enum>
  void enumerator(const Field& field, Enum& value, Enum&) {
    if (!is_wanted(field)) return;
    told(field, add_named(app_, named(field.option), value, named(field.help)));
  }
  void enumerator(const Field& field, DataType& value, DataType&) {
    if (matrix_ == "a" || !is_wanted(field)) return;  // A's is --dtype
    const auto accepts = matrix_ == "d" ? is_result : matrix_.empty() ? is_wide_float : is_element;
    told(field, add_type(app_, named(field.option), value, named(field.help), accepts));
  }
  void enumerator(const Field& field, std::optional<DataType>& value, std::optional<DataType>&) {
    if (!is_wanted(field)) return;
    const auto multiplies = [](DataType type) {
      return is_multiplied_as(type) || multiplies_codes(type) ||
             (is_float8(type) && is_input(type));
    };
    told(field, add_type(app_, field.option, value, field.help, multiplies));
  }
  void enumerator(const Field&, Packing&, Packing&) {}  // PackOptions adds it
  void number(const Field& field, float& value, float&) {
    told(field, app_.add_option(field.option, value, field.help)->capture_default_str());
  }
  void number(const Field& field, std::int32_t& value, std::int32_t&) {
    told(field, app_.add_option(field.option, value, field.help)->capture_default_str());
  }
  void number(const Field& field, std::uint32_t& value, std::uint32_t&) {
    if (!is_wanted(field)) return;
    told(field, add_size(app_, named(field.option), value, named(field.help)));
  }
  void number(const Field& field, std::uint64_t& value, std::uint64_t&) {
    const std::uint64_t limit = field.name.ends_with("stride") ? UINT64_MAX >> 8 : kMaxSize;
    if (is_wanted(field)) told(field, add_size(app_, field.option, value, field.help, limit));
  }
  void number(const Field& field, double& value, double&) {
    if (is_wanted(field)) told(field, app_.add_option(field.option, value, field.help));
  }
  void size(const Field& field, std::optional<std::uint64_t>& value,
            std::optional<std::uint64_t>&) {
    told(field, add_size(app_, named(field.option), value, named(field.help), UINT64_MAX >> 8));
  }
  void real(const Field& field, std::optional<float>& value, std::optional<float>&) {
    told(field, app_.add_option(field.option, value, field.help));
  }
  // A flag inverts the default.
  void boolean(const Field& field, bool& value, bool&) {
    if (!is_wanted(field)) return;
    const auto turn = [&value, other = !value](std::int64_t times) {
      if (times > 0) value = other;
    };
    told(field, app_.add_flag_function(field.option, turn, field.help));
  }

  void part(const Field& field, std::optional<Gated>& value, std::optional<Gated>&) {
    const std::string choices =
        names_of<Gate>() + "[:" + names_of<GatedB>() + "][:swapped][:limit=X][:slope=X][:offset=X]";
    if (!is_wanted(field)) return;
    told(field, add_named(app_, field.option, value, field.help, choices, parse_gated));
  }
  void part(const Field& field, SplitK& value, SplitK&) {
    const auto parse = [&value](const std::string& text) { value = parse_split_k(text); };
    if (!is_wanted(field)) return;
    told(field, app_.add_option_function<std::string>(field.option, parse, field.help)
                    ->type_name("SLICES[:MODE]"));
  }
  template <class Element, std::size_t count>
  void list(const Field& field, std::array<Element, count>& values, std::array<Element, count>&) {
    const auto parse = [&values](const std::string& text) { parse_list(text, values); };
    told(field, app_.add_option_function<std::string>(field.option, parse, field.help)
                    ->type_name(std::is_enum_v<Element> ? "SHAPE,…" : "STEP,…"));
  }
  void part(const Field&, auto&, auto&) {}  // added by itself

 private:
  bool is_wanted(const Field& field) const {
    return field.option != nullptr &&
           (fields_.empty() || std::ranges::find(fields_, field.name) != fields_.end());
  }
  void told(const Field& field, CLI::Option* option) {
    option->each([&given = given_, name = field.name](const std::string&) { given.insert(name); });
  }
  std::string named(std::string text) const {
    for (std::size_t at = 0; (at = text.find('%', at)) != std::string::npos;) {
      text.replace(at, 1, matrix_);
    }
    return text;
  }

  CLI::App& app_;
  std::set<std::string_view>& given_;
  std::string_view matrix_;
  std::vector<std::string_view> fields_;
};

// Calls a function for each field whose option was given.
template <class Function>
class GivenFields {
 public:
  GivenFields(const std::set<std::string_view>& given, Function function)
      : given_(given), function_(std::move(function)) {}

  void number(const Field& field, auto&, auto&) { see(field); }
  void enumerator(const Field& field, auto&, auto&) { see(field); }
  void boolean(const Field& field, auto&, auto&) { see(field); }
  void real(const Field& field, auto&, auto&) { see(field); }
  void size(const Field& field, auto&, auto&) { see(field); }
  void list(const Field& field, auto&, auto&) { see(field); }

 private:
  void see(const Field& field) {
    if (given_.contains(field.name)) function_(field);
  }

  const std::set<std::string_view>& given_;
  Function function_;
};

template <class T, class Function>
void for_given(const FieldOptions<T>& options, const Function& function) {
  GivenFields fields(options.given, function);
  FieldsOf<T>::visit(fields, options.values, options.values);
}

void refuse_if_generated(const Field& field) {
  if (!field.generated) return;
  usage(option_name(field.option) + " is for generated matrices: a file says it itself");
}

}  // namespace

void add(CLI::App& app, FieldOptions<Epilogue>& options) {
  AddFields fields(app, options.given);
  FieldsOf<Epilogue>::visit(fields, options.values, options.values);
}

void add(CLI::App& app, FieldOptions<RowReduction>& options) {
  AddFields fields(app, options.given);
  FieldsOf<RowReduction>::visit(fields, options.values, options.values);
}

void add(CLI::App& app, FieldOptions<Grouping>& options, std::vector<std::string_view> names) {
  AddFields fields(app, options.given, {}, std::move(names));
  FieldsOf<Grouping>::visit(fields, options.values, options.values);
}

void add(CLI::App& app, FieldOptions<Problem>& options, std::vector<std::string_view> names) {
  AddFields fields(app, options.given, {}, std::move(names));
  FieldsOf<Problem>::visit(fields, options.values, options.values);
}

void refuse_generated(const FieldOptions<Epilogue>& options) {
  for_given(options, refuse_if_generated);
}
void refuse_generated(const FieldOptions<RowReduction>& options) {
  for_given(options, refuse_if_generated);
}

std::optional<RowReduction> row_reduction(const FieldOptions<RowReduction>& options) {
  const bool has_op = options.has("op");
  for_given(options, [&](const Field& field) {
    if (!has_op) usage(option_name(field.option) + " needs --row-op: what is done with rows");
    if (!field.used) usage(option_name(field.option) + " needs " + field.needs);
  });
  return has_op ? std::optional(options.values) : std::nullopt;
}

void MatrixOptions::add(CLI::App& app, std::string_view name) {
  AddFields fields(app, given, name);
  FieldsOf<Matrix>::visit(fields, values, values);
}

Matrix MatrixOptions::matrix(DataType default_type, Layout default_layout) const {
  Matrix matrix = values;
  if (!has("type")) matrix.type = default_type;
  if (!has("layout")) matrix.layout = default_layout;
  return matrix;
}

}  // namespace vkgemm::tool
