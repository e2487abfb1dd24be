#include "files/plan_log.hpp"

#include <istream>
#include <sstream>
#include <string_view>
#include <unordered_set>

namespace vkgemm::files {
namespace {

constexpr std::string_view command = "vkgemm run ";

// With single spaces, and without --config and its value.
std::string arguments_of(const std::string& line, std::size_t begin) {
  std::istringstream words(line.substr(begin));
  std::string out;
  for (std::string word; words >> word;) {
    if (word == "--config") {
      words >> word;
      continue;
    }
    if (word.starts_with("--config=")) continue;
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

}  // namespace

PlanLog read_plan_log(std::istream& stream) {
  PlanLog log;
  std::unordered_set<std::string> seen;
  for (std::string line; std::getline(stream, line);) {
    ++log.lines;
    const std::size_t at = line.rfind(command);
    std::string arguments = at == std::string::npos ? "" : arguments_of(line, at + command.size());
    if (arguments.empty()) {
      ++log.others;
    } else if (!seen.insert(arguments).second) {
      ++log.repeats;
    } else {
      log.problems.push_back(std::move(arguments));
      log.lines_of.push_back(log.lines);
    }
  }
  return log;
}

}  // namespace vkgemm::files
