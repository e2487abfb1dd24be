// tuned_problem.hpp: what of a problem decides which configuration is the fastest. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "problem/resolved_problem.hpp"

namespace vkgemm {

// The work of an epilogue beside A, B and D: matrices that it reads (c) and writes (aux), and sums
// of columns.
enum class EpilogueWork : std::uint8_t { none, c, aux, c_aux, sums, c_sums, aux_sums, c_aux_sums };
std::string_view to_string(EpilogueWork work) noexcept;
std::optional<EpilogueWork> parse_epilogue_work(std::string_view text) noexcept;

// Operands: those that the caller packed, or that are converted.
enum class PackedOperands : std::uint8_t { none, a, b, ab };
std::string_view to_string(PackedOperands operands) noexcept;
std::optional<PackedOperands> parse_packed_operands(std::string_view text) noexcept;

// A problem as far as tuning tables tell one from another.
struct TunedProblem {
  // gemm, grouped_m or grouped_k; with "+gated", and with "+" and the operation on rows, if any.
  std::string family = "gemm";
  DataType input_type = {};  // of f32 in parts that of these
  F32Arithmetic f32_arithmetic = F32Arithmetic::ieee;
  Layout a_layout = Layout::row_major;
  Layout b_layout = Layout::row_major;
  bool aligned = true;  // A and B can be loaded 16 bytes at a time
  PackedOperands packed = PackedOperands::none;
  PackedOperands converted = PackedOperands::none;  // have another type in memory
  bool summed = false;   // K is that of all matrices that are added up, one after the other
  bool indexed = false;  // rows by index
  EpilogueWork epilogue = EpilogueWork::none;
  DataType d_type = {};
  bool d_col_major = false;  // and not computed as its transpose: accessed element by element
  // As TuningRow's ranges take them, and how many products or groups there are.
  std::uint64_t m = 0, n = 0, k = 0, count = 1;

  bool operator==(const TunedProblem&) const = default;
  bool has_epilogue_of(const TunedProblem& other) const noexcept {
    return epilogue == other.epilogue && d_type == other.d_type && d_col_major == other.d_col_major;
  }
};
TunedProblem tuned_problem(const ResolvedProblem& problem);
// The text, if it is a family.
std::optional<std::string> parse_tuned_family(std::string_view text);

}  // namespace vkgemm
