// job.hpp: what `vkgemm run` is to compute: a problem, and its operands from files or generated.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oracle/reference.hpp"
#include "tool/groups.hpp"
#include "tool/matrices.hpp"
#include "tool/options.hpp"
#include "tool/packing.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

// The command line's options for a job, and the files that results go to.
struct JobOptions {
  PerOperand<std::string> files;
  bool bf16 = false;
  FieldOptions<Problem> product;
  std::optional<DataType> type;
  PerOperand<MatrixOptions> matrices;
  FieldOptions<Epilogue> epilogue;
  GroupOptions groups;
  FieldOptions<RowReduction> rows;
  PackOptions packs;
  Fill fill = Fill::random;
  std::uint64_t seed = 1;

  void add(CLI::App& app);
  void add_problem(CLI::App& app);  // without files
  void add_plan(CLI::App& app);     // wishes for the plan

  bool from_files() const { return !files[OperandId::a].empty() || !files[OperandId::b].empty(); }
};

// The problem, and its operands as `source` lays them out: those that are packed before they are
// multiplied lie plain there.
struct Job {
  Problem problem;
  Problem source;
  Groups groups;
  PerOperand<std::vector<std::byte>> data;
  PerOperand<std::optional<oracle::CodeMatrix>> codes;  // whose elements the data are
  // Blocks of codes from GGUF files, and what they are.
  PerOperand<std::vector<std::byte>> blocks;
  std::optional<Quantisation> blocks_of;
  // Operands from .vkp files, whose payloads the data are.
  PerOperand<std::optional<files::PackedHeader>> packed;

  oracle::HostOperands operands() const;
};

// With the operands that files hold. Throws where options and files contradict each other.
Job make_job(const JobOptions& options);

// The others. After a plan has accepted the problem: until then a stride may be nonsense.
void generate_operands(const JobOptions& options, Job& job);

}  // namespace vkgemm::tool
