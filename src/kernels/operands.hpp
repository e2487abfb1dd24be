// operands.hpp: the operands of a product in one list: where a recording finds each of them, what
// is touched of it, and what kernels are told. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/addresses.hpp"
#include "kernels/constants.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// An operand that a problem uses.
struct Operand {
  std::string_view name;  // the caller's: a transposed problem reads the caller's B as its A
  DeviceSpan Operands::*span = nullptr;
  std::uint64_t Addresses::*address = nullptr;
  std::uint64_t bytes = 0;      // from the first to behind the last element that is touched
  std::uint32_t alignment = 1;  // of the address
  bool written = false;

  // The touched bytes: lines of `line_bytes`, `pitch` bytes apart, in matrices `matrix_pitch`
  // apart. pitch 0: one piece.
  std::uint64_t line_bytes = 0;
  std::uint64_t pitch = 0;
  std::uint64_t matrix_pitch = 0;

  // Bytes from what belongs to one row of D to the next row's, and from one matrix of the batch to
  // the next.
  std::uint64_t row_step = 0;
  std::uint64_t batch_step = 0;
};

// Makes no memory: it is part of every plan.
class OperandList {
 public:
  void add(const Operand& operand) noexcept { operands_[count_++] = operand; }
  const Operand* begin() const noexcept { return operands_.data(); }
  const Operand* end() const noexcept { return operands_.data() + count_; }

 private:
  std::array<Operand, sizeof(Operands) / sizeof(DeviceSpan)> operands_{};
  std::size_t count_ = 0;
};

// All but the workspace; none of an empty problem.
OperandList operands_of(const ResolvedProblem& problem);

// Strides and leading dimensions.
void set_strides(gpu::GemmParams& params, const ResolvedProblem& problem);

// The constants of an elementwise epilogue. `x4`: it works on four elements at once, where they
// allow it.
void set_epilogue(Constants& constants, const ResolvedProblem& problem, bool x4);

// True if an epilogue may access C, D or aux in pieces of four neighbours of a row.
inline bool allows_epilogue_vectors(const ResolvedMatrix& matrix) {
  return matrix.layout == Layout::row_major &&
         matrix.allows_vectors(4 * size_in_bytes(matrix.type));
}

}  // namespace vkgemm
