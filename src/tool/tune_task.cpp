#include "tool/tune_task.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/paths.hpp"
#include "problem/resolve.hpp"
#include "tool/tool.hpp"
#include "tuning/table_file.hpp"

namespace vkgemm::tool {
namespace {

using Clock = std::chrono::steady_clock;

Json table_json(const std::optional<TuningTable>& table, const std::string& text) {
  if (!table) return nullptr;
  return {{"source", table->source}, {"text", text}};
}

void read_table_json(const Json& object, std::optional<TuningTable>& table, std::string& text) {
  if (object.is_null()) return;
  const std::string source = object.at("source");
  text = object.at("text");
  table = unwrap(parse_tuning_table(text, source));
  table->source = source;
}

}  // namespace

void go_on_with(TuneTask& task, const std::string& out, bool may_exist) {
  std::error_code error;
  if (out.empty() || !std::filesystem::exists(path_of(out), error)) return;
  if (!may_exist) {
    throw Failure(
        usage_error,
        "--out: " + out + " is there already: give --resume to go on with it, or another name");
  }
  TuningTable table = unwrap(read_tuning_file(path_of(out), &task.before_text));
  if (!table.rows.empty() || !table.refused.empty() || table.has_timing) {
    throw Failure(usage_error, out + " has rows, refused or timing, which tune does not write");
  }
  task.before = std::move(table);
}

void compare_with(TuneTask& task, const std::string& file) {
  if (!file.empty()) {
    task.table = unwrap(read_tuning_file(path_of(file), &task.table_text));
    return;
  }
  const std::string variable = environment_variable("VKGEMM_TUNING");
  if (variable.empty() || variable == "0") return;
  auto table = read_tuning_file(path_of(variable), &task.table_text);
  if (!table) return;  // the context that is made says so
  task.table = *std::move(table);
  task.table_is_optional = true;
}

TuneSession session_of(const TuneTask& task) {
  TuneSession session;
  session.threads = task.limits.threads;
  for (const TuneProblem& problem : task.problems) {
    TuneCase tuned;
    tuned.arguments = problem.arguments;
    tuned.list = problem.list;
    tuned.problem = tuned_problem(unwrap(resolve(problem.problem)));
    tuned.multiply_adds = multiply_adds(problem.groups.worked(problem.problem));
    session.cases.push_back(std::move(tuned));
  }
  return session;
}

std::string handed_on(const TuneTask& task) {
  const std::chrono::duration<double> left = task.deadline - Clock::now();
  Json problems = Json::array();
  for (const TuneProblem& problem : task.problems) {
    problems.push_back({{"arguments", problem.arguments}, {"list", problem.list}});
  }
  return json_text({{"seconds", left.count()},
                    {"problems", problems},
                    {"table", table_json(task.table, task.table_text)},
                    {"table_is_optional", task.table_is_optional},
                    {"before", table_json(task.before, task.before_text)}});
}

void take_over(TuneTask& task, std::string_view line) {
  const Json told = Json::parse(line);
  const std::chrono::duration<double> left(told.at("seconds").get<double>());
  task.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
  for (const Json& problem : told.at("problems")) {
    TuneProblem parsed = problem_of_command(problem.at("arguments"));
    parsed.list = problem.at("list");
    task.problems.push_back(std::move(parsed));
  }
  read_table_json(told.at("table"), task.table, task.table_text);
  read_table_json(told.at("before"), task.before, task.before_text);
  task.table_is_optional = told.at("table_is_optional");
}

}  // namespace vkgemm::tool
