// table_text.hpp: a table of tuned shapes as parse_tuning_table() reads it. Pure.
#pragma once

#include <string>

#include "tuning/table.hpp"

namespace vkgemm {

// The text of what tuning adds to a table: tuned shapes and denied configurations, an object a
// line. The table must have no rows, no timing and no refusals.
std::string table_text(const TuningTable& table);

// Puts a shape in front. One of the same arguments, or of the same problem, goes.
void add_tuned(TuningTable& table, TunedShape shape);

}  // namespace vkgemm
