#include "base/json_lines.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace vkgemm {
namespace {

using nlohmann::json;

// Follows the parser through the text; each event says whether to go on.
class Finder : public nlohmann::json_sax<json> {
 public:
  Finder(std::string_view wanted, const std::size_t& line) : wanted_(wanted), line_(line) {}

  std::size_t found() const { return found_; }

  bool null() override { return element(); }
  bool boolean(bool) override { return element(); }
  bool number_integer(std::int64_t) override { return element(); }
  bool number_unsigned(std::uint64_t) override { return element(); }
  bool number_float(double, const std::string&) override { return element(); }
  bool string(std::string&) override { return element(); }
  bool binary(json::binary_t&) override { return element(); }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    path_ = concat(open_.back().path, open_.back().path.empty() ? "" : ".", name);
    return check();
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
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

std::size_t line_of(std::string_view text, std::string_view path) {
  std::size_t line = 1;
  Finder finder(path, line);
  const char* const begin = text.data();
  json::sax_parse(LineCounter{begin, &line}, LineCounter{begin + text.size(), nullptr}, &finder);
  return finder.found();
}

}  // namespace vkgemm
