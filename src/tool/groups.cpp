#include "tool/groups.hpp"

#include <sstream>

#include "base/paths.hpp"
#include "files/npy.hpp"
#include "oracle/groups.hpp"
#include "tool/options.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

constexpr std::uint64_t kMostGroups = 65535;

// The library takes any offsets for what they mean, but what is wrong in a file is better said.
void check(const std::vector<std::int64_t>& offsets, const std::string& from) {
  if (offsets.empty()) usage(from + " has no offsets: groups + 1 are needed");
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t least = i == 0 ? 0 : offsets[i - 1];
    if (offsets[i] >= least && offsets[i] <= static_cast<std::int64_t>(kMaxSize)) continue;
    usage(from + ": offset " + std::to_string(i) + " is " + std::to_string(offsets[i]) + ": from " +
          std::to_string(least) + " to " + std::to_string(kMaxSize) + " is possible");
  }
}

}  // namespace

Problem Groups::worked(const Problem& problem) const {
  Problem dense = problem;
  if (!grouping) return dense;
  dense.grouping.reset();
  (grouping->along == GroupAlong::m ? dense.m : dense.k) =
      static_cast<std::uint64_t>(offsets.back() - offsets.front());
  return dense;
}

double Groups::sharing_rows() const {
  return grouping && grouping->along == GroupAlong::m ? static_cast<double>(grouping->groups) : 1.0;
}

std::string describe(const Grouping& grouping) {
  return std::to_string(grouping.groups) + " groups along " +
         std::string(to_string(grouping.along)) + ", b " + std::string(to_string(grouping.b));
}

void GroupOptions::add(CLI::App& app) {
  CLI::Option* list = app.add_option("--groups", sizes,
                                     "Grouped: sizes of the groups, e.g. 64,128,192; they add up "
                                     "to M, or to K. If --m is more, the rows of no group are not "
                                     "computed, nor verified: they are NaN in the files written");
  CLI::Option* number =
      add_size(app, "--group-count", count, "Grouped: as many groups of equal size", kMostGroups);
  CLI::Option* offsets =
      app.add_option("--offsets", file, "Grouped: where groups begin and the last one ends, .npy")
          ->type_name("FILE");
  list->excludes(number)->excludes(offsets);
  number->excludes(offsets);
  add_named(app, "--group-along", along, "What the groups are of: rows, or K with a D each");
  app.add_flag("--b-per-group", b_per_group, "Every group of rows has a matrix B of its own");
  add_named(app, "--offset-type", type, "Type of the offsets in memory");
  tool::add(app, indices,
            {"bounds", "a_rows", "a_terms", "d_rows", "d_terms", "row_weights", "b_matrices"});
}

std::vector<std::int64_t> GroupOptions::offsets(const std::optional<std::uint64_t>& capacity,
                                                OffsetType& in_file) const {
  if (!file.empty()) {
    files::NpyOffsets read = unwrap(files::read_npy_offsets(path_of(file)));
    in_file = read.type;
    return std::move(read.values);
  }
  std::vector<std::int64_t> out{0};
  if (count) {
    const std::string option = along == GroupAlong::m ? "--m" : "--k";
    if (!capacity) usage("--group-count needs " + option);
    for (std::uint64_t g = 1; g <= *count; ++g) {
      out.push_back(static_cast<std::int64_t>(*capacity * g / *count));
    }
    return out;
  }
  std::istringstream stream(sizes + ',');  // so that the last one may be empty, which is refused
  for (std::string size; std::getline(stream, size, ',');) {
    out.push_back(out.back() + static_cast<std::int64_t>(parse_size("--groups", size, kMaxSize)));
  }
  return out;
}

std::vector<Shape> GroupOptions::shapes(const std::string& text) const {
  std::vector<Shape> out;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one, ',');) {
    const std::vector<std::uint64_t> numbers = parse_sizes("--shapes", one);
    if (numbers.size() == 2 && given()) {
      const bool along_m = along == GroupAlong::m;
      out.push_back(along_m ? Shape{std::nullopt, numbers[0], numbers[1]}
                            : Shape{numbers[0], numbers[1], std::nullopt});
    } else if (numbers.size() == 1 || numbers.size() == 3) {
      out.push_back({numbers.front(), numbers[numbers.size() / 2], numbers.back()});
    } else {
      usage("--shapes: '" + one + "' is neither N nor MxNxK");
    }
  }
  return out;
}

Groups GroupOptions::groups(std::optional<std::uint64_t>& m,
                            std::optional<std::uint64_t>& k) const {
  if (!given()) {
    if (b_per_group) usage("--b-per-group needs groups: give --groups");
    if (!indices.given.empty()) {
      usage("grouping." + std::string(*indices.given.begin()) + " needs groups: give --groups");
    }
    return {};
  }
  std::optional<std::uint64_t>& capacity = along == GroupAlong::m ? m : k;
  OffsetType in_memory = OffsetType::int32;
  Groups groups;
  groups.offsets = offsets(capacity, in_memory);
  const std::string from = file.empty() ? "--groups" : file;
  check(groups.offsets, from);
  const auto needed = static_cast<std::uint64_t>(groups.offsets.back());
  if (!capacity) capacity = needed;
  if (needed > *capacity) {
    usage(from + ": the groups end at " + std::to_string(needed) + ", beyond " +
          (along == GroupAlong::m ? "M = " : "K = ") + std::to_string(*capacity));
  }
  if (groups.offsets.size() - 1 > kMostGroups) {
    usage(from + ": " + std::to_string(groups.offsets.size() - 1) + " groups, at most " +
          std::to_string(kMostGroups));
  }
  Grouping& grouping = groups.grouping.emplace(indices.values);
  grouping.groups = static_cast<std::uint32_t>(groups.offsets.size() - 1);
  grouping.offsets = type.value_or(in_memory);
  grouping.along = along;
  grouping.b = b_per_group ? GroupedB::per_group : GroupedB::shared;
  if (grouping.bounds == GroupBounds::sizes && groups.offsets.front() != 0) {
    usage(from + ": the first offset is " + std::to_string(groups.offsets.front()) +
          ", and groups of --group-bounds sizes begin at 0");
  }
  return groups;
}

}  // namespace vkgemm::tool
