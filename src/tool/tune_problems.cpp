#include "tool/tune_problems.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/paths.hpp"
#include "files/plan_log.hpp"
#include "problem/resolve.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// Sizes of groups are data, so to_command_line() says only how many there are; but they decide what
// is fast.
std::string arguments_of(const Job& job) {
  std::string text = to_command_line(job.problem);
  const std::vector<std::int64_t>& offsets = job.groups.offsets;
  if (!job.groups.grouping || offsets.front() != 0) return text;
  const bool of_rows = job.groups.grouping->along == GroupAlong::m;
  const std::uint64_t whole = of_rows ? job.problem.m : job.problem.k;
  const std::uint64_t count = offsets.size() - 1;
  bool even = true;
  std::string sizes;
  for (std::uint64_t g = 1; g <= count; ++g) {
    even = even && offsets[g] == static_cast<std::int64_t>(whole * g / count);
    sizes += (g == 1 ? "" : ",") + std::to_string(offsets[g] - offsets[g - 1]);
  }
  const std::string counted = "--group-count " + std::to_string(count);
  const std::size_t at = text.find(counted);
  if (!even && at != std::string::npos) text.replace(at, counted.size(), "--groups " + sizes);
  return text;
}

TuneProblem make_problem(const JobOptions& options) {
  Job job = make_job(options);
  if (is_empty(job.problem) || job.problem.k == 0) {
    throw Failure(usage_error, "a product of nothing has no time: " + to_command_line(job.problem));
  }
  unwrap(resolve(job.problem));
  return {arguments_of(job), job.problem, std::move(job.groups)};
}

std::string counted(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + ' ' + (count == 1 ? one : many);
}

}  // namespace

std::vector<TuneProblem> problems_of(const JobOptions& options, const std::string& shapes) {
  std::vector<TuneProblem> problems;
  if (shapes.empty()) {
    problems.push_back(make_problem(options));
    return problems;
  }
  for (const Shape& shape : options.groups.shapes(shapes)) {
    JobOptions one = options;
    Problem& p = one.product.values;
    p.m = shape.m.value_or(0);
    p.n = shape.n;
    p.k = shape.k.value_or(0);
    one.product.given.insert("n");
    if (shape.m) one.product.given.insert("m");
    if (shape.k) one.product.given.insert("k");
    add_problems(problems, {make_problem(one)});
  }
  return problems;
}

std::vector<TuneProblem> problems_of_log(const std::string& file) {
  std::ifstream stream(path_of(file));
  if (!stream) throw Failure(usage_error, "--log: " + file + " cannot be read");
  const files::PlanLog log = files::read_plan_log(stream);
  const std::string list = utf8(path_of(file).stem());
  std::vector<TuneProblem> problems;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < log.problems.size(); ++i) {
    std::string reason;
    try {
      TuneProblem problem = problem_of_command(log.problems[i]);
      problem.list = list;
      add_problems(problems, {std::move(problem)});
    } catch (const CLI::Error& error) {
      reason = error.what();
    } catch (const Failure& failure) {
      reason = failure.what();
    }
    if (!reason.empty() && bad++ < 3) {
      std::fprintf(stderr, "%s:%zu: left out: %s\n", file.c_str(), log.lines_of[i], reason.c_str());
    }
  }
  std::fprintf(stderr, "%s: %s in %s (%zu repeated, %zu left out, %zu of other things)\n",
               file.c_str(), counted(problems.size(), "problem", "problems").c_str(),
               counted(log.lines, "line", "lines").c_str(), log.repeats, bad, log.others);
  return problems;
}

TuneProblem problem_of_command(const std::string& arguments) {
  CLI::App app;
  JobOptions options;
  options.add_problem(app);
  options.add_plan(app);
  std::istringstream stream(arguments);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  std::ranges::reverse(words);  // as CLI11 wants them
  app.parse(words);
  return make_problem(options);
}

void add_problems(std::vector<TuneProblem>& problems, std::vector<TuneProblem> more) {
  for (TuneProblem& problem : more) {
    const auto same = [&](const TuneProblem& other) {
      return other.arguments == problem.arguments;
    };
    if (std::ranges::none_of(problems, same)) problems.push_back(std::move(problem));
  }
}

}  // namespace vkgemm::tool
