// built_in_tables.cpp: the tables that the build embeds, and which of them a device has.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embedded/embedded.hpp"
#include "kernels/occupancy.hpp"
#include "tuning/table.hpp"

namespace vkgemm {
namespace {

const TuningTables& built_in_tables() {
  static const TuningTables tables = [] {
    // In the order of their names: an architecture's own comes before those of its devices.
    std::map<std::string_view, const embedded::File*> files;
    for (const embedded::File& file : embedded::tables()) files.emplace(file.name, &file);
    TuningTables out;
    for (const auto& [name, file] : files) {
      auto table = parse_tuning_table(embedded::text(*file), name, out);
      assert(table && "a table that is built in must parse: tuning_test says what is wrong");
      if (table) out.insert_or_assign(std::string(name), *std::move(table));
    }
    out.try_emplace("generic");
    return out;
  }();
  return tables;
}

}  // namespace

std::vector<RefusedConfig> built_in_refusals(std::string_view architecture) {
  std::vector<RefusedConfig> out;
  for (const auto& [name, table] : built_in_tables()) {
    std::ranges::copy_if(table.refused, std::back_inserter(out), [&](const RefusedConfig& refused) {
      return refused.architecture == architecture;
    });
  }
  return out;
}

const TuningTable& built_in_table(std::string_view name) {
  const TuningTables& tables = built_in_tables();
  const auto it = tables.find(name);
  return it != tables.end() ? it->second : tables.find("generic")->second;
}

std::string_view table_name(const DeviceCaps& caps) {
  const std::string* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [name, table] : built_in_tables()) {
    if (table.architecture != caps.architecture || table.device_ids.empty()) continue;
    if (std::ranges::find(table.device_ids, caps.device_id) != table.device_ids.end()) return name;
    const double unlike = std::abs(std::log2(table.timing.compute_units / compute_units(caps)));
    if (unlike >= least) continue;
    least = unlike;
    nearest = &name;
  }
  return nearest != nullptr ? std::string_view(*nearest) : std::string_view(caps.architecture);
}

}  // namespace vkgemm
