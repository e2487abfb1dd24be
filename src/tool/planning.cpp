#include "tool/planning.hpp"

#include <cstdio>

#include "base/environment.hpp"
#include "tool/options.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

// The configuration that the text names, with the problem's own split-K.
Config parse(const Problem& problem, const std::string& text) {
  auto config = parse_config(text);
  if (!config) throw Failure(usage_error, "--config: " + config.error().message);
  if (problem.split_k.slices != 0) config->slices = problem.split_k.slices;
  if (problem.split_k.reduction_mode) config->reduction_mode = *problem.split_k.reduction_mode;
  return *config;
}

// The candidates, of one path if that is asked for. Never empty.
std::vector<Config> candidates(const Context& context, const Problem& problem,
                               std::optional<Path> path) {
  std::vector<Config> configs;
  for (const Candidate& candidate : unwrap(context.candidates(problem))) {
    if (!path || candidate.config.path() == *path) configs.push_back(candidate.config);
  }
  if (!configs.empty()) return configs;
  if (!path) {
    unwrap(context.plan(problem));  // throws, saying of every row why it is not legal
    throw Failure(usage_error, "no configuration is legal for this problem here");
  }
  const PathSupport& support = context.caps().path(*path);
  throw Failure(usage_error,
                "--path " + std::string(to_string(*path)) + ": " +
                    (support.available ? "no configuration of it is legal for this problem"
                                       : support.reason));
}

}  // namespace

void DeviceOptions::add(CLI::App& app) {
  app.add_option("--device", device,
                 "Index (see `vkgemm info`) or part of the name; default: the best");
  app.add_flag("--validation", validation,
               "Run under the Vulkan validation layers; any message fails the command");
  app.add_option("--pipeline-cache", pipeline_cache_file, "File to keep compiled pipelines in");
}

std::unique_ptr<headless::Runner> DeviceOptions::open(bool reads_default_tuning_file) const {
  headless::RunnerOptions options;
  options.device = device;
  options.validation = validation;
  options.pipeline_cache_file = pipeline_cache_file;
  options.reads_verdicts = true;
  options.reads_default_tuning_file = reads_default_tuning_file;
  // A table that is left out is worth a warning. Otherwise there is no log: it costs every plan a
  // line.
  if (reads_default_tuning_file || !environment_variable("VKGEMM_TUNING").empty()) {
    options.log = [](LogLevel level, std::string_view message) {
      if (level != LogLevel::warning) return;
      std::fprintf(stderr, "vkgemm: %.*s\n", static_cast<int>(message.size()), message.data());
    };
  }
  return unwrap(headless::Runner::create(options));
}

Plan choose_plan(const Context& context, const Problem& problem, std::optional<Path> path,
                 const std::string& config) {
  // A product of nothing has no candidates, and needs none.
  if (is_empty(problem)) return unwrap(context.plan(problem));
  if (config.empty() && !path) return unwrap(context.plan(problem));
  return unwrap(context.plan(problem, config.empty() ? candidates(context, problem, path).front()
                                                     : parse(problem, config)));
}

std::vector<Config> choose_configs(const Context& context, const Problem& problem,
                                   std::optional<Path> path,
                                   const std::vector<std::string>& configs) {
  std::vector<Config> chosen;
  if (configs.empty()) chosen.push_back(candidates(context, problem, path).front());
  for (const std::string& text : configs) {
    if (text == "all") {
      const std::vector<Config> all = candidates(context, problem, path);
      chosen.insert(chosen.end(), all.begin(), all.end());
    } else {
      chosen.push_back(parse(problem, text));
    }
  }
  return chosen;
}

std::string type_of(const DeviceCaps& caps) {
  switch (caps.type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

double multiply_adds(const Problem& problem) {
  const double columns = (problem.gated ? 2.0 : 1.0) * static_cast<double>(problem.n);
  return static_cast<double>(problem.m) * columns * static_cast<double>(problem.k) *
         static_cast<double>(problem.batch) * static_cast<double>(problem.outer_batch);
}

}  // namespace vkgemm::tool
