#include "base/json.hpp"

#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace vkgemm {
namespace {

constexpr int most_levels = 8;
constexpr std::size_t most_keys = 256;

// Reads characters for the JSON library and counts the lines that it has come to, from 1.
struct LineCounter {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  std::size_t* line = nullptr;

  reference operator*() const { return *at; }
  LineCounter& operator++() {
    if (*at == '\n' && line != nullptr) ++*line;
    ++at;
    return *this;
  }
  LineCounter operator++(int) {
    LineCounter before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCounter& other) const { return at == other.at; }
};

// Follows the parser through the text; each event says whether to go on.
class Finder : public nlohmann::json_sax<Json> {
 public:
  Finder(std::string_view wanted, const std::size_t& line) : wanted_(wanted), line_(line) {}

  std::size_t found() const { return found_; }

  bool null() override { return element(); }
  bool boolean(bool) override { return element(); }
  bool number_integer(std::int64_t) override { return element(); }
  bool number_unsigned(std::uint64_t) override { return element(); }
  bool number_float(double, const std::string&) override { return element(); }
  bool string(std::string&) override { return element(); }
  bool binary(Json::binary_t&) override { return element(); }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    path_ = concat(open_.back().path, open_.back().path.empty() ? "" : ".", name);
    return check();
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  struct Container {
    std::string path;
    bool array;
    std::size_t size = 0;
  };

  // A value begins. A member has been looked at with its key.
  bool element() {
    if (open_.empty() || !open_.back().array) return true;
    path_ = concat(open_.back().path, '[', open_.back().size++, ']');
    return check();
  }
  bool open(bool array) {
    if (!element()) return false;
    open_.push_back({.path = path_, .array = array});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  bool check() {
    if (path_.size() > deepest_ && wanted_.starts_with(path_) &&
        (wanted_.size() == path_.size() || wanted_[path_.size()] == '.' ||
         wanted_[path_.size()] == '[')) {
      deepest_ = path_.size();
      found_ = line_;
    }
    return deepest_ < wanted_.size();
  }

  std::string_view wanted_;
  const std::size_t& line_;
  std::vector<Container> open_;
  std::string path_;
  std::size_t deepest_ = 0;
  std::size_t found_ = 1;
};

}  // namespace

// The library keeps the last of two equal keys, and nests without end.
Json parse_json(std::string_view text) {
  std::size_t line = 1;
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > most_levels) {
      throw JsonRefusal(line, concat("nested deeper than ", most_levels, " levels"));
    }
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        throw JsonRefusal(line, concat("key ", in_quotes(key), " appears twice"));
      }
      if (keys.back().size() > most_keys) {
        throw JsonRefusal(line, concat("an object has more than ", most_keys, " keys"));
      }
    }
    return true;
  };
  const char* const begin = text.data();
  return Json::parse(LineCounter{begin, &line}, LineCounter{begin + text.size(), nullptr}, check);
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::size_t line_of(std::string_view text, std::string_view path) {
  std::size_t line = 1;
  Finder finder(path, line);
  const char* const begin = text.data();
  Json::sax_parse(LineCounter{begin, &line}, LineCounter{begin + text.size(), nullptr}, &finder);
  return finder.found();
}

}  // namespace vkgemm
