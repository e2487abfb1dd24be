// options.hpp: command line options of vkgemm's own kinds of values.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "oracle/reference.hpp"
#include "problem/enumerators.hpp"
#include "tool/matrices.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

// The whole text as a number from 0 to `limit`, else a CLI::ValidationError that names the option.
std::uint64_t parse_size(const std::string& option, const std::string& text, std::uint64_t limit);

// "8192x4096x512" as its numbers.
std::vector<std::uint64_t> parse_sizes(const std::string& option, const std::string& text);

constexpr std::uint64_t kMaxSize = (1ULL << 31) - 1;

// Value: an integer, maybe optional.
template <class Value>
CLI::Option* add_size(CLI::App& app, const std::string& names, Value& value,
                      const std::string& help, std::uint64_t limit = kMaxSize) {
  const auto parse = [&value, names, limit](const std::string& text) {
    value = static_cast<Value>(parse_size(names, text, limit));
  };
  return app.add_option_function<std::string>(names, parse, help)->type_name("SIZE");
}
CLI::Option* add_fill(CLI::App& app, Fill& value);

// The contents of the file that the option names. A Failure if it is empty, or cannot be read.
std::string read_file(const std::string& option, const std::string& file);

// "nv|khr|fma": the enumerators, which to_string() names.
template <class Enum>
std::string names_of() {
  std::string names;
  for (unsigned i = 0; i <= static_cast<unsigned>(last_enumerator<Enum>); ++i) {
    names.append(i == 0 ? "" : "|").append(to_string(static_cast<Enum>(i)));
  }
  return names;
}

// The name that resembles the word most, or nothing if none does.
std::string nearest(std::string_view word, const std::vector<std::string>& names);
// "; did you mean int4?", for a word and names between '|'. It compares up to the first of ":[".
std::string suggestion(std::string_view word, std::string_view choices);

// Adds an option whose text `parse` turns into a value, or into nothing if it names none.
template <class Value, class Parse>
CLI::Option* add_named(CLI::App& app, const std::string& names, Value& value,
                       const std::string& help, const std::string& choices, const Parse& parse) {
  return app
      .add_option_function<std::string>(
          names,
          [&value, names, choices, parse](const std::string& text) {
            const auto parsed = parse(text);
            if (!parsed) {
              throw CLI::ValidationError(names + " is '" + text + "': one of " + choices +
                                         " is needed" + suggestion(text, choices));
            }
            value = *parsed;
          },
          help)
      ->type_name(choices);
}

// The same for an enumerator, by the names that to_string() gives.
template <class Enum>
std::optional<Enum> parse_enumerator(std::string_view text) {
  for (unsigned i = 0; i <= static_cast<unsigned>(last_enumerator<Enum>); ++i) {
    if (to_string(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}
template <class Enum>
requires std::is_enum_v<Enum> CLI::Option* add_named(CLI::App& app, const std::string& names,
                                                     Enum& value, const std::string& help) {
  return add_named(app, names, value, help, names_of<Enum>(), parse_enumerator<Enum>);
}
template <class Enum>
CLI::Option* add_named(CLI::App& app, const std::string& names, std::optional<Enum>& value,
                       const std::string& help) {
  return add_named(app, names, value, help, names_of<Enum>(), parse_enumerator<Enum>);
}

// The same for an element type that `accepts` returns true for.
std::string names_of(bool (*accepts)(DataType));
std::optional<DataType> parse_type(std::string_view text, bool (*accepts)(DataType));
template <class Type>
CLI::Option* add_type(CLI::App& app, const std::string& names, Type& value, const std::string& help,
                      bool (*accepts)(DataType)) {
  return add_named(app, names, value, help, names_of(accepts),
                   [accepts](const std::string& text) { return parse_type(text, accepts); });
}

// A structure of a problem whose fields are options, and which of these were given.
template <class T>
struct FieldOptions {
  T values = {};
  std::set<std::string_view> given;

  bool has(std::string_view field) const { return given.contains(field); }
};

// Adds the options of its fields (src/problem/fields.hpp).
void add(CLI::App& app, FieldOptions<Epilogue>& options);
void add(CLI::App& app, FieldOptions<RowReduction>& options);
// Adds the options of some fields of a problem, or of its groups, by their names.
void add(CLI::App& app, FieldOptions<Grouping>& options, std::vector<std::string_view> fields);
void add(CLI::App& app, FieldOptions<Problem>& options, std::vector<std::string_view> fields);

// Throws if an option describes a generated operand: files describe theirs themselves.
void refuse_generated(const FieldOptions<Epilogue>& options);
void refuse_generated(const FieldOptions<RowReduction>& options);

// Throws if the operation has no use for other options, or if there is none.
std::optional<RowReduction> row_reduction(const FieldOptions<RowReduction>& options);

// How a matrix lies in memory, as far as the command line says.
struct MatrixOptions : FieldOptions<Matrix> {
  // Adds --dtype-x, --layout-x, --ld-x, --batch-stride-x, --alignment-x. A's type is --dtype.
  void add(CLI::App& app, std::string_view name);
  Matrix matrix(DataType default_type, Layout default_layout) const;
  // True if one says what files say themselves: files of 8-bit floats have uint8.
  bool describe_a_file(DataType type) const {
    const bool names_bytes = type == DataType::u8 || type == values.type;
    return (has("type") && !(names_bytes && is_byte(values.type))) || has("layout") || has("ld") ||
           has("batch_stride");
  }
};

// The default type of results: that of A. For s8 products it is s32 if D may be the sums
// themselves. For other 8-bit types it is f16. For row operation quantise it is s8.
DataType default_result(const Problem& problem, bool quantised_b);

}  // namespace vkgemm::tool
