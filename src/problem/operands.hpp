// operands.hpp: the operands of a problem, a row each: its name, its span, its shape, its type, who
// writes it, when it is there, and where kernels find it. Legality of spans, recorder, oracle, tool
// and tests walk these rows. ../RECIPES.md says how to add one. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "problem/addresses.hpp"
#include "problem/operand_id.hpp"
#include "problem/operand_shape.hpp"
#include "problem/resolved_problem.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// An operand as a dispatch reads or writes it.
struct Operand {
  OperandId id = OperandId::a;
  std::string_view name;  // the caller's: a transposed problem reads the caller's B as its A
  DeviceSpan Operands::*span = nullptr;
  std::uint64_t Addresses::*address = nullptr;
  std::uint64_t Addresses::*also = nullptr;  // a second parameter with the same address; null: none
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
  // Bytes from one repetition of the problem to the next (ResolvedProblem::repeats).
  std::uint64_t repeat_step = 0;
};

struct OperandRow {
  OperandId id = OperandId::a;
  std::string_view name;  // of the members of Operands, VkgemmOperands, and in messages
  DeviceSpan Operands::*span = nullptr;
  std::uint64_t Addresses::*address = nullptr;  // null: it depends on the problem
  OperandId twin = OperandId::a;  // the operand that a transposed problem reads as this one
  bool is_integer =
      false;             // numbers that say which elements are meant; the tool has no file of them
  bool written = false;  // by every product
  bool (*written_by)(const Problem&) = nullptr;  // by some; null: by none but those above
  // The matrix of the problem that describes it; null: a vector. A tensor may be either.
  Matrix Problem::*matrix = nullptr;
  Fingerprint Operands::*fingerprint = nullptr;  // of those that may be packed
  bool (*exists)(const Problem&) = nullptr;
  // The shape at one outer batch index, without Problem::sum_batch. Defined even if the problem
  // doesn't have the operand.
  OperandShape (*shape_of)(const Problem&) = nullptr;
  // The same for the problem that a kernel computes. is_touched: the kernel reads or writes it.
  // operand: the bytes; only if it is touched.
  bool (*is_touched)(const ResolvedProblem&) = nullptr;
  Operand (*operand)(const ResolvedProblem&) = nullptr;
  // Vectors of row operations: the constant that says to kernels that it is there.
  std::optional<std::size_t> row_constant = std::nullopt;

  // On the command line: the option that names its file, and the options that add the operand.
  const char* option = nullptr;
  const char* help = "";
  const char* needs = "";

  // True for A and B. A sum over the batch has `batch` matrices of each.
  bool is_multiplied() const noexcept { return matrix == &Problem::a || matrix == &Problem::b; }

  // The shape at one outer batch index.
  OperandShape inner_shape(const Problem& problem) const;
  // The shape in all of the batch.
  OperandShape shape(const Problem& problem) const;
  // Elements from one outer batch index to the next; of a packed operand matrices.
  std::uint64_t outer_stride(const Problem& problem) const;

  bool is_written(const Problem& problem) const noexcept {
    return written || (written_by != nullptr && written_by(problem));
  }

  // Adds the operand to a problem, for a file of this type. several: the file has a vector for each
  // matrix. Null: only options add it.
  void (*ask)(Problem&, DataType, bool several) = nullptr;
};

// In the order of the enumerators. No problem has an operand that prepares others.
std::span<const OperandRow, operand_count> operand_rows() noexcept;
inline const OperandRow& row_of(OperandId id) noexcept {
  return operand_rows()[static_cast<std::size_t>(id)];
}
// That of t0, …
inline const OperandRow& tensor_row(std::size_t tensor) noexcept {
  return operand_rows()[static_cast<std::size_t>(OperandId::t0) + tensor];
}

// Matrices of D, and of all operands but A and B, at one outer batch index.
inline std::uint64_t result_count(const Problem& problem) noexcept {
  return problem.sum_batch ? 1 : problem.batch;
}

// The problem of these operands: a batch of one in place of a sum.
Problem one_sum(const Problem& problem);

// An operand that prepares others, as a plan reads or writes it.
Operand prepared_operand(OperandId id, std::uint64_t bytes, std::uint64_t alignment, bool written);

// The forms in which the caller gives an operand.
inline bool is_packed(const Problem& problem, const OperandRow& row) noexcept {
  return row.fingerprint != nullptr && (problem.*row.matrix).packing != Packing::plain;
}
inline bool is_quantised(const Problem& problem, const OperandRow& row) noexcept {
  return row.matrix == &Problem::b && problem.quantised_b.has_value();
}
inline PackedOperand packed_as(const OperandRow& row) noexcept {
  return row.matrix == &Problem::a ? PackedOperand::a : PackedOperand::b;
}

// True if a problem computes nothing.
bool is_empty(const Problem& problem) noexcept;

// Columns of what is multiplied: 2N with a gate. columns_of_b: those of B, where a half of it may
// be another operand.
std::uint64_t product_columns(const Problem& problem) noexcept;
std::uint64_t columns_of_b(const Problem& problem) noexcept;

// The bytes of each operand; 0: the problem doesn't have it.
PerOperand<std::uint64_t> operand_bytes(const Problem& problem) noexcept;

// Makes no memory: it is part of every plan.
class OperandList {
 public:
  void add(const Operand& operand) noexcept { operands_[count_++] = operand; }
  const Operand* begin() const noexcept { return operands_.data(); }
  const Operand* end() const noexcept { return operands_.data() + count_; }

 private:
  std::array<Operand, operand_count + 1> operands_{};  // and the workspace
  std::size_t count_ = 0;
};

// All but the workspace; none of an empty problem.
OperandList operands_of(const ResolvedProblem& problem) noexcept;

}  // namespace vkgemm
