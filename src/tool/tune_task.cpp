#include "tool/tune_task.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.hpp"
#include "base/paths.hpp"
#include "tool/tool.hpp"
#include "tuning/table_file.hpp"

namespace vkgemm::tool {
namespace {

using Json = nlohmann::json;
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

std::string handed_on(const TuneTask& task) {
  const std::chrono::duration<double> left = task.deadline - Clock::now();
  Json problems = Json::array();
  for (const TuneProblem& problem : task.problems) {
    problems.push_back({{"arguments", problem.arguments}, {"list", problem.list}});
  }
  return Json{{"seconds", left.count()},
              {"problems", problems},
              {"table", table_json(task.table, task.table_text)},
              {"table_is_optional", task.table_is_optional},
              {"before", table_json(task.before, task.before_text)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
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
