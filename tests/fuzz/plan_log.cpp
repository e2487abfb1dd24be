// The log of an application, of which the tuner takes the lines that name problems: every line is
// counted once, and no problem appears twice.
#include "files/plan_log.hpp"

#include <set>
#include <sstream>

#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vkgemm;
  std::istringstream stream{std::string(fuzz::as_text(data, size))};
  const files::PlanLog log = files::read_plan_log(stream);
  fuzz::require(log.problems.size() + log.repeats + log.others == log.lines,
                "a line is a problem, a repeated one, or another line");
  if (!log.problems.empty()) ++fuzz::accepted;
  fuzz::require(log.lines_of.size() == log.problems.size(), "every problem has its line");
  const std::set<std::string> unique(log.problems.begin(), log.problems.end());
  fuzz::require(unique.size() == log.problems.size(), "a problem appears once");
  for (const std::string& problem : log.problems) {
    fuzz::require(!problem.empty() && problem.size() <= size, "a problem is part of the text");
  }
  return 0;
}
