// row_options.hpp: row reductions on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

struct RowOptions {
  std::optional<RowOp> op;
  std::optional<float> eps;
  bool gamma = false;
  bool beta = false;
  std::optional<DataType> vector_type;
  std::optional<DataType> value_type;
  bool without_d = false;

  void add(CLI::App& app);

  // Throws if there is no operation for what else was said.
  std::optional<RowReduction> reduction() const;
};

}  // namespace vkgemm::tool
