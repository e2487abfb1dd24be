// table_file.hpp: tuning tables that are loaded at run time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tuning/table.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Reads and parses a file. io_error if it cannot be read, is too long or is no regular file,
// invalid_argument, with line and field, for what is in it.
// `text`, if it is not null, becomes what stands in the file.
Result<TuningTable> read_tuning_file(const std::filesystem::path& path,
                                     std::string* text = nullptr);

// Why a table is not for this device: it is of another architecture.
Result<void> check_device(const TuningTable& table, const DeviceCaps& caps);

struct LoadedTables {
  std::vector<TuningTable> tables;    // the preferred one first
  std::vector<std::string> warnings;  // of what was left out, or measured elsewhere
};

// The tables that ContextCreateInfo::tuning_file and VKGEMM_TUNING name (`file` and `variable`;
// empty: none), as context.hpp says.
Result<LoadedTables> load_tables(const std::filesystem::path& file, std::string_view variable,
                                 const DeviceCaps& caps);

}  // namespace vkgemm
