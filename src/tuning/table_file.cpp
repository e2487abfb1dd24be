#include "tuning/table_file.hpp"

#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/file_lock.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "device/caps.hpp"
#include "tuning/table_text.hpp"

namespace vkgemm {
namespace {

// A change takes far less.
constexpr std::chrono::seconds writers_patience{2};

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
  if (!table->has_timing) table->timing = built_in_table(table_name(caps)).timing;
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

Result<LoadedTables> load_tables(const TableSources& sources, const DeviceCaps& caps) {
  LoadedTables loaded;
  const auto add = [&](TuningTable table) {
    warn_of(table, caps, loaded.warnings);
    loaded.tables.push_back(std::move(table));
  };
  const auto add_if_valid = [&](std::string_view name, const std::filesystem::path& path) {
    if (auto table = load(path, caps)) {
      add(*std::move(table));
    } else {
      loaded.warnings.push_back(concat(name, " is left out: ", table.error().message));
    }
  };
  const bool none = sources.variable == "0";
  if (!sources.variable.empty() && !none) {
    add_if_valid("VKGEMM_TUNING", path_of(sources.variable));
  }
  if (!sources.file.empty()) {
    auto table = load(sources.file, caps);
    if (!table) return table.error();
    add(*std::move(table));
  }
  std::error_code error;
  if (!none && !sources.user_file.empty() && std::filesystem::exists(sources.user_file, error)) {
    add_if_valid("the user's tuning table", sources.user_file);
  }
  return loaded;
}

Result<void> change_file(const std::filesystem::path& path,
                         const std::function<Result<std::string>(const TuningTable*)>& change) {
  // A fault of the folder shows when the file is written.
  (void)os::create_private_folders(path.parent_path());
  std::filesystem::path lock_path = path;
  lock_path += ".lock";
  Result<LockFile> lock = LockFile::open(lock_path);
  const bool locked = lock && lock->lock(0, writers_patience);
  Result<void> changed = [&]() -> Result<void> {
    std::optional<TuningTable> before;
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      auto read = read_tuning_file(path);
      if (!read) return read.error();
      before = *std::move(read);
    }
    const Result<std::string> text = change(before ? &*before : nullptr);
    if (!text) return text.error();
    return write_file(path, std::as_bytes(std::span(*text)), os::Links::refuse);
  }();
  if (locked) lock->unlock(0);
  return changed;
}

Result<void> add_to_file(const std::filesystem::path& path, const TunedShape& shape,
                         const DeviceCaps& caps) {
  return change_file(path, [&](const TuningTable* before) -> Result<std::string> {
    TuningTable table{.architecture = caps.architecture};
    if (before != nullptr) {
      if (auto checked = check_device(*before, caps); !checked) return checked.error();
      if (!before->rows.empty() || !before->refused.empty() || before->has_timing) {
        return invalid_argument(
            concat(utf8(path), " has rows, refused or timing, which tuning does not write"));
      }
      if (auto reason = why_not_continued(*before, caps.name, driver_text(caps))) {
        return invalid_argument(*reason);
      }
      table = *before;
    }
    table.device = caps.name;
    table.driver = driver_text(caps);
    add_tuned(table, shape);
    return table_text(table);
  });
}

std::optional<std::string> why_not_continued(const TuningTable& table, std::string_view device,
                                             std::string_view driver) {
  const auto differs = [](const std::string& theirs, std::string_view ours) {
    return !theirs.empty() && theirs != ours;
  };
  if (!differs(table.device, device) && !differs(table.driver, driver)) return std::nullopt;
  return concat(table.source, " was measured on ", in_quotes(table.device), ", driver ",
                in_quotes(table.driver), ", this is ", in_quotes(device), ", driver ",
                in_quotes(driver));
}

}  // namespace vkgemm
