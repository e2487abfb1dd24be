// json.hpp: JSON texts of files: read strictly, written, and searched for the line of a value.
//
// json.cpp alone instantiates the library's parser and writer, which are large.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vkgemm {

using Json = nlohmann::ordered_json;

// JSON that parse_json() refuses: nested deeper than 8 levels, because writing a value into a
// message recurses; with a key twice; or with more than 256 keys in one object, because lookups in
// an object are linear.
class JsonRefusal : public std::invalid_argument {
 public:
  JsonRefusal(std::size_t where, const std::string& message)
      : std::invalid_argument(message), line(where) {}
  std::size_t line;  // from 1
};

// Throws JsonRefusal, or Json::parse_error, which says line and column.
Json parse_json(std::string_view text);

// `indent`: spaces a level; -1: all in one line. Bytes that are not UTF-8 are replaced.
std::string json_text(const Json& value, int indent = -1);

// The line of the value that is called "rows[3].config" (of a member: of its key), or of the
// innermost one around it that is there. The text must be JSON as far as that.
std::size_t line_of(std::string_view json, std::string_view path);

}  // namespace vkgemm
