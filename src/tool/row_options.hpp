// row_options.hpp: row reductions on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

// The operations of is_scalar(), as messages name them.
inline constexpr const char* scalar_row_ops = "logsumexp, sum, max, mean or variance";

struct RowOptions {
  std::optional<RowOp> op;
  std::optional<float> eps;
  bool gamma = false;
  bool beta = false;
  std::optional<DataType> vector_type;
  std::optional<DataType> value_type;
  bool without_d = false;

  void add(CLI::App& app);

  // Throws if the operation has no use for what else was said, or if there is none.
  std::optional<RowReduction> reduction() const;
};

}  // namespace vkgemm::tool
