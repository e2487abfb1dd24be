// operand_check.hpp: are these spans what the problem promised? Pure; prepared once per plan, so
// that record() neither computes nor allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/addresses.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/context.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// One operand that the problem uses.
struct OperandRule {
  std::string_view name;  // the caller's: a transposed problem reads the caller's B as its A
  DeviceSpan Operands::*span = nullptr;
  std::uint64_t Addresses::*address = nullptr;
  std::uint64_t bytes = 0;      // from the first to behind the last element that is touched
  std::uint32_t alignment = 1;  // of the address
  bool written = false;

  // The touched bytes: rows of `row_bytes`, `pitch` bytes apart, in matrices `batch_pitch`
  // apart. pitch 0: one piece.
  std::uint64_t row_bytes = 0;
  std::uint64_t pitch = 0;
  std::uint64_t batch_pitch = 0;
};

class OperandRules {
 public:
  OperandRules() = default;
  OperandRules(const ResolvedProblem& problem, std::uint64_t workspace_bytes);

  std::span<const OperandRule> rules() const noexcept { return {rules_.data(), count_}; }

  // The first thing that is wrong. Allocates only to say so.
  Result<void> check(const Operands& operands) const;

  // Writes the addresses of operands that passed check().
  void bind(const Operands& operands, Addresses& addresses) const noexcept;

 private:
  void add(const OperandRule& rule) noexcept { rules_[count_++] = rule; }
  void add_row_reduction(const ResolvedProblem& problem);
  bool may_share(const OperandRule& a, const OperandRule& b, const Operands& operands) const;

  std::array<OperandRule, 13> rules_{};
  std::size_t count_ = 0;
  bool c_may_be_d_ = false;
  bool b_is_two_ = false;
};

}  // namespace vkgemm
