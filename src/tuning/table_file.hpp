// table_file.hpp: tuning tables that are loaded at run time.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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

// The files that ContextCreateInfo and the environment name; empty: none.
struct TableSources {
  std::string variable;             // VKGEMM_TUNING; "0": no table but `file`
  std::filesystem::path file;       // ContextCreateInfo::tuning_file
  std::filesystem::path user_file;  // read if it exists
};

// Their tables, as context.hpp says.
Result<LoadedTables> load_tables(const TableSources& sources, const DeviceCaps& caps);

// Replaces the file by the text that `change` makes of its table, which is null if there is no
// file. Processes may do so at the same time. Errors are those of read_tuning_file() and `change`.
Result<void> change_file(const std::filesystem::path& path,
                         const std::function<Result<std::string>(const TuningTable*)>& change);

// Adds a shape to the file, or makes it. Errors: invalid_argument for a file that has parts which
// tuning does not write, or is of another device or driver; io_error.
Result<void> add_to_file(const std::filesystem::path& path, const TunedShape& shape,
                         const DeviceCaps& caps);

// Why what this device and driver measure may not be added to the table, if it may not.
std::optional<std::string> why_not_continued(const TuningTable& table, std::string_view device,
                                             std::string_view driver);

}  // namespace vkgemm
