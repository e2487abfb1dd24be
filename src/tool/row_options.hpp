// row_options.hpp: row reductions on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "tool/options.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

// The operations of is_scalar(), as messages name them.
inline constexpr const char* scalar_row_ops = "logsumexp, sum, max, mean or variance";

struct RowOptions : FieldOptions<RowReduction> {
  // Throws if the operation has no use for what else was said, or if there is none.
  std::optional<RowReduction> reduction() const;
};

}  // namespace vkgemm::tool
