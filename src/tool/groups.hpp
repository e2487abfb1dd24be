// groups.hpp: groups on the command line: how many there are, of which sizes, and in which file.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tool/options.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

// The groups of a grouped problem, or none.
struct Groups {
  std::optional<Grouping> grouping;
  std::vector<std::int64_t> offsets;

  // The dense problem with as much work.
  Problem worked(const Problem& problem) const;

  // How many groups divide M among them; 1 if none do.
  double sharing_rows() const;
};

// M or K not set: what the groups hold.
struct Shape {
  std::optional<std::uint64_t> m;
  std::uint64_t n = 0;
  std::optional<std::uint64_t> k;
};

// "4 groups along m, b shared"
std::string describe(const Grouping& grouping);

struct GroupOptions {
  // Adds --groups, --group-count, --offsets, --group-along, --b-per-group, --offset-type and the
  // fields of rows and matrices by index.
  void add(CLI::App& app);

  bool given() const { return !sizes.empty() || count || !file.empty(); }

  // The groups of a problem with this M, or K: as far as that is not known, it becomes what the
  // groups hold.
  Groups groups(std::optional<std::uint64_t>& m, std::optional<std::uint64_t>& k) const;

  // The shapes of --shapes: MxNxK or N, separated by commas; with groups NxK or MxN, too.
  std::vector<Shape> shapes(const std::string& text) const;

  GroupAlong along = GroupAlong::m;
  bool b_per_group = false;
  FieldOptions<Grouping> indices;

 private:
  std::vector<std::int64_t> offsets(const std::optional<std::uint64_t>& capacity,
                                    OffsetType& type) const;

  std::string sizes;
  std::optional<std::uint64_t> count;
  std::string file;
  std::optional<OffsetType> type;
};

}  // namespace vkgemm::tool
