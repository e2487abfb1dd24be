// operand_check.hpp: checks that spans are as the plan wants them. Pure; prepared once per plan, so
// that record() neither computes nor allocates.
#pragma once

#include <cstdint>

#include "problem/operands.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/context.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

class OperandRules {
 public:
  OperandRules() = default;
  OperandRules(const ResolvedProblem& problem, std::uint64_t workspace_bytes);

  void add(const Operand& operand) noexcept { all_.add(operand); }

  const OperandList& operands() const noexcept { return all_; }

  // The first thing that is wrong. Allocates only to say so.
  Result<void> check(const Operands& operands) const;

  // Writes the addresses of operands that passed check().
  void bind(const Operands& operands, Addresses& addresses) const noexcept;

  // From the addresses of one repetition of the problem to the next one's.
  void advance(Addresses& addresses) const noexcept;

 private:
  bool may_share(const Operand& a, const Operand& b, const Operands& operands) const;

  OperandList all_;
  bool of_problem_ = false;
  bool c_may_be_d_ = false;
  bool b_is_two_ = false;
};

}  // namespace vkgemm
