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
#include "tool/row_options.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::tool {

// The command line's options for a job, and the files that results go to.
struct JobOptions {
  std::string a_file, b_file, b_right_file, c_file, bias_file, d_file, aux_file;
  std::string row_scales_file, column_scales_file;
  std::string gamma_file, beta_file, row_values_file;
  bool bf16 = false;
  std::optional<std::uint64_t> m, n, k;
  std::optional<Gated> gated;
  std::uint64_t batch = 1;
  std::optional<DataType> type;
  F32Arithmetic f32_arithmetic = F32Arithmetic::ieee;
  MatrixOptions a, b, c, d, aux;
  EpilogueOptions epilogue;
  GroupOptions groups;
  RowOptions rows;
  PackOptions packs;
  Fill fill = Fill::random;
  std::uint64_t seed = 1;

  void add(CLI::App& app);
  void add_problem(CLI::App& app);  // without files

  bool from_files() const { return !a_file.empty() || !b_file.empty(); }
};

// The problem, and its operands as `source` lays them out: those that are packed before they are
// multiplied lie plain there.
struct Job {
  Problem problem;
  Problem source;
  Groups groups;
  std::vector<std::byte> a, b, b_right, c, bias, offsets, gamma, beta;
  std::vector<std::byte> row_scales, column_scales;
  std::optional<oracle::CodeMatrix> codes_b, codes_right;  // whose elements b and b_right hold
  // Of operands from .vkp files, whose payloads are in a, b and b_right.
  std::optional<files::PackedHeader> packed_a, packed_b;

  oracle::HostOperands operands() const {
    return {a.data(),     b.data(),    c.data(),       bias.data(),       offsets.data(),
            gamma.data(), beta.data(), b_right.data(), row_scales.data(), column_scales.data()};
  }
};

// With the operands that files hold. Throws where options and files contradict each other.
Job make_job(const JobOptions& options);

// The others. After a plan has accepted the problem: until then a stride may be nonsense.
void generate_operands(const JobOptions& options, Job& job);

}  // namespace vkgemm::tool
