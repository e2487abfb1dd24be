#include "tuning/table_file.hpp"

#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "device/caps.hpp"

namespace vkgemm {
namespace {

// Adds warnings about a table that is used all the same.
void warn_of(const TuningTable& table, const DeviceCaps& caps, std::vector<std::string>& warnings) {
  const auto warn = [&](std::string_view what, const std::string& theirs, const std::string& ours) {
    if (theirs.empty() || theirs == ours) return;
    warnings.push_back(concat(table.source, ": tuned for ", what, " ", in_quotes(theirs),
                              ", this is ", in_quotes(ours), ": used all the same"));
  };
  warn("device", table.device, caps.name);
  warn("driver", table.driver, driver_text(caps));
}

Result<TuningTable> load(const std::filesystem::path& path, const DeviceCaps& caps) {
  Result<TuningTable> table = read_tuning_file(path);
  if (!table) return table;
  if (auto checked = check_device(*table, caps); !checked) return checked.error();
  // Rates of one table are compared by one model: by that of the device, unless it has its own.
  if (!table->has_timing) table->timing = built_in_table(caps.architecture).timing;
  return table;
}

}  // namespace

Result<TuningTable> read_tuning_file(const std::filesystem::path& path, std::string* text) {
  const std::string name = "tuning table " + utf8(path);
  std::error_code error;
  // A pipe or a device might never end.
  if (!std::filesystem::is_regular_file(path, error)) {
    return Error{Status::io_error, concat(name, ": ", error ? error.message() : "is no file")};
  }
  const Result<std::vector<std::byte>> bytes = read_file(path, longest_tuning_table);
  if (!bytes) return Error{bytes.error().status, "tuning table " + bytes.error().message};
  const std::string_view content(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (text != nullptr) *text = content;
  Result<TuningTable> table = parse_tuning_table(content, name);
  if (table) table->source = utf8(path);
  return table;
}

Result<void> check_device(const TuningTable& table, const DeviceCaps& caps) {
  if (table.architecture == caps.architecture) return {};
  return Error{Status::invalid_argument, concat("tuning table ", table.source, ": architecture is ",
                                                in_quotes(table.architecture), ", ", caps.name,
                                                " is ", in_quotes(caps.architecture))};
}

Result<LoadedTables> load_tables(const std::filesystem::path& file, std::string_view variable,
                                 const DeviceCaps& caps) {
  LoadedTables loaded;
  const auto add = [&](TuningTable table) {
    warn_of(table, caps, loaded.warnings);
    loaded.tables.push_back(std::move(table));
  };
  if (!variable.empty()) {
    if (auto table = load(path_of(variable), caps)) {
      add(*std::move(table));
    } else {
      loaded.warnings.push_back(concat("VKGEMM_TUNING is left out: ", table.error().message));
    }
  }
  if (!file.empty()) {
    auto table = load(file, caps);
    if (!table) return table.error();
    add(*std::move(table));
  }
  return loaded;
}

}  // namespace vkgemm
