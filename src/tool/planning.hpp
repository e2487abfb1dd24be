// planning.hpp: from options to devices and plans, for the commands that compute.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headless/runner.hpp"
#include "problem/operands.hpp"
#include "vkgemm/vkgemm.hpp"

namespace vkgemm::tool {

struct DeviceOptions {
  std::string device;
  bool validation = false;
  std::string pipeline_cache_file;

  void add(CLI::App& app);
  // Commands that time or compare the built-in choices leave default_tuning_file() out.
  std::unique_ptr<headless::Runner> open(bool reads_default_tuning_file = false) const;
};

// The best plan, the best one of `path`, or the one of `config`, which the problem's split_k
// overrules. A Failure says why there is none.
Plan choose_plan(const Context& context, const Problem& problem, std::optional<Path> path,
                 const std::string& config);

// The configurations that the options mean, best first: all the candidates (of `path`) if
// `configs` is just "all", else those it names, else the best.
std::vector<Config> choose_configs(const Context& context, const Problem& problem,
                                   std::optional<Path> path,
                                   const std::vector<std::string>& configs);

std::string type_of(const DeviceCaps& caps);

double multiply_adds(const Problem& problem);

}  // namespace vkgemm::tool
