// cases.hpp: what `vkgemm bench` times: problems, as options or a suite say them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tool/groups.hpp"
#include "tool/options.hpp"
#include "tool/packing.hpp"
#include "tool/planning.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

struct BenchCase {
  std::string suite;  // empty: none
  Problem problem;
  Groups groups;
  std::string epilogue;  // what results call it: with the gate and what is done with rows
};

// Problems of several shapes and types that have all else in common.
struct CaseOptions {
  std::string shapes;
  std::vector<std::string> types = {"f16"};
  std::optional<DataType> type_b, type_d;
  std::optional<Layout> layout_a;
  std::optional<Layout> layout_b;
  std::string epilogue = "plain";
  GroupOptions groups;
  FieldOptions<RowReduction> rows;
  PackOptions packs;
  FieldOptions<Problem> product;

  // All the options that say what is computed.
  void add(CLI::App& app);

  // A case for each type and shape. Throws if the options contradict each other.
  std::vector<BenchCase> cases() const;
};

// Prints every suite and the options of its cases.
void list_suites();

// The cases of these suites; a Failure names one that is not known.
std::vector<BenchCase> suite_cases(const std::vector<std::string>& names);

}  // namespace vkgemm::tool
