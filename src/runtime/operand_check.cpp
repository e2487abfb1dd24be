#include "runtime/operand_check.hpp"

#include <string>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace vkgemm {

namespace {

constexpr std::uint32_t workspace_alignment = 256;

OperandRule matrix_rule(std::string_view name, DeviceSpan Operands::*span,
                        std::uint64_t Addresses::*address, const ResolvedMatrix& matrix,
                        std::uint64_t batch, bool written) {
  const std::uint64_t element = size_in_bytes(matrix.type);
  std::uint64_t row_bytes = matrix.contiguous() * element;
  std::uint64_t batch_pitch = batch > 1 ? matrix.batch_stride * element : 0;
  if (batch_pitch != 0 && batch_pitch < matrix.ld * element) {
    // The batch lies side by side within the rows, as attention heads do: one wider piece of row.
    row_bytes += (batch - 1) * batch_pitch;
    batch_pitch = 0;
  }
  return {
      .name = name,
      .span = span,
      .address = address,
      .bytes = matrix.bytes,
      .alignment = matrix.alignment,
      .written = written,
      .row_bytes = row_bytes,
      .pitch = matrix.ld * element,
      .batch_pitch = batch_pitch,
  };
}

std::string hex(std::uint64_t value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[value % 16]);
    value /= 16;
  } while (value != 0);
  return "0x" + digits;
}

// True if two operands whose extents overlap share no byte, because they are columns of one larger
// matrix, side by side: the same pitch, and row pieces that do not meet modulo that pitch.
bool interleaved(const OperandRule& a, std::uint64_t a_address, const OperandRule& b,
                 std::uint64_t b_address) noexcept {
  const std::uint64_t pitch = a.pitch;
  if (pitch == 0 || b.pitch != pitch) return false;
  if (a.batch_pitch % pitch != 0 || b.batch_pitch % pitch != 0) return false;
  const std::uint64_t distance = b_address >= a_address
                                     ? (b_address - a_address) % pitch
                                     : (pitch - (a_address - b_address) % pitch) % pitch;
  return distance >= a.row_bytes && distance + b.row_bytes <= pitch;
}

}  // namespace

OperandRules::OperandRules(const ResolvedProblem& problem, std::uint64_t workspace_bytes) {
  const std::uint64_t batch = problem.batch;
  if (problem.is_empty()) return;
  if (problem.k != 0) {  // with K = 0 neither is read
    const bool swapped = problem.transposed;
    add(matrix_rule(swapped ? "b" : "a", swapped ? &Operands::b : &Operands::a, &Addresses::a,
                    problem.a, problem.a_count(), false));
    add(matrix_rule(swapped ? "a" : "b", swapped ? &Operands::a : &Operands::b, &Addresses::b,
                    problem.b, problem.b_count(), false));
    b_is_two_ = problem.is_gated(GatedB::separate);
    if (b_is_two_) {
      add(matrix_rule("b_right", &Operands::b_right, &Addresses::b_right, problem.b,
                      problem.b_count(), false));
    }
  }
  if (problem.has_c()) {
    add(matrix_rule("c", &Operands::c, &Addresses::c, problem.c, batch, false));
    c_may_be_d_ = problem.c.type == problem.d.type && problem.c.layout == problem.d.layout &&
                  problem.c.ld == problem.d.ld &&
                  (batch == 1 || problem.c.batch_stride == problem.d.batch_stride);
  }
  if (problem.has_d()) {
    add(matrix_rule("d", &Operands::d, &Addresses::d, problem.d, batch, true));
  }
  if (problem.has_bias()) {
    const std::uint32_t element = size_in_bytes(problem.epilogue.bias_type);
    add({.name = "bias",
         .span = &Operands::bias,
         .address = &Addresses::bias,
         .bytes = problem.bias_bytes(),
         .alignment = element});
  }
  if (problem.has_aux()) {
    add(matrix_rule("aux", &Operands::aux, &Addresses::aux, problem.aux, batch, true));
  }
  if (problem.rows) add_row_reduction(problem);
  if (problem.grouping) {
    const std::uint32_t element = size_in_bytes(problem.grouping->offsets);
    add({.name = "offsets",
         .span = &Operands::offsets,
         .address = &Addresses::offsets,
         .bytes = (std::uint64_t{problem.grouping->groups} + 1) * element,
         .alignment = element});
  }
  if (workspace_bytes != 0) {
    add({.name = "workspace",
         .span = &Operands::workspace,
         .address = &Addresses::workspace,
         .bytes = workspace_bytes,
         .alignment = workspace_alignment,
         .written = true});
  }
}

void OperandRules::add_row_reduction(const ResolvedProblem& problem) {
  const RowReduction& rows = *problem.rows;
  const std::uint32_t vector = size_in_bytes(rows.vector_type);
  const auto add_vector = [&](std::string_view name, DeviceSpan Operands::*span,
                              std::uint64_t Addresses::*address) {
    add({.name = name,
         .span = span,
         .address = address,
         .bytes = problem.n * vector,
         .alignment = vector});
  };
  if (rows.gamma) add_vector("gamma", &Operands::gamma, &Addresses::gamma);
  if (rows.beta) add_vector("beta", &Operands::beta, &Addresses::shift);
  if (is_scalar(rows.op)) {
    const std::uint32_t value = size_in_bytes(rows.value_type);
    add({.name = "row_values",
         .span = &Operands::row_values,
         .address = &Addresses::row_values,
         .bytes = problem.m * problem.batch * value,
         .alignment = value,
         .written = true});
  }
}

bool OperandRules::may_share(const OperandRule& a, const OperandRule& b,
                             const Operands& operands) const {
  if (!a.written && !b.written) return true;
  const DeviceSpan& x = operands.*a.span;
  const DeviceSpan& y = operands.*b.span;
  if (x.address >= y.address + b.bytes || y.address >= x.address + a.bytes) return true;
  // D may replace C: khr and fma read and write an element in one invocation, nv has a barrier
  // between.
  const bool c_and_d = a.span == &Operands::c && b.span == &Operands::d;
  if (c_and_d && c_may_be_d_ && x.address == y.address) return true;
  return interleaved(a, x.address, b, y.address);
}

Result<void> OperandRules::check(const Operands& operands) const {
  for (const OperandRule& rule : rules()) {
    const DeviceSpan& span = operands.*rule.span;
    if (rule.bytes == 0) continue;
    if (span.bytes < rule.bytes) {
      const bool workspace = rule.span == &Operands::workspace;
      return Error{workspace ? Status::workspace_too_small : Status::span_too_small,
                   concat(rule.name, " span holds ", span.bytes, " bytes, the problem touches ",
                          rule.bytes)};
    }
    if (span.address == 0) return invalid_argument(concat(rule.name, ".address is 0"));
    if (span.address > UINT64_MAX - rule.bytes) {
      return invalid_argument(concat(rule.name, " span of ", rule.bytes, " bytes at ",
                                     hex(span.address), " ends beyond 2^64"));
    }
    if (span.address % rule.alignment != 0) {
      return Error{Status::misaligned,
                   concat(rule.name, ".address is ", hex(span.address),
                          ": the problem promised a multiple of ", rule.alignment, " bytes")};
    }
  }
  const std::span<const OperandRule> all = rules();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      if (all[i].bytes == 0 || all[j].bytes == 0 || may_share(all[i], all[j], operands)) continue;
      const OperandRule& written = all[i].written ? all[i] : all[j];
      const OperandRule& other = all[i].written ? all[j] : all[i];
      const DeviceSpan& x = operands.*written.span;
      const DeviceSpan& y = operands.*other.span;
      std::string message = concat(written.name, " [", hex(x.address), ", ",
                                   hex(x.address + written.bytes), ") overlaps ", other.name, " [",
                                   hex(y.address), ", ", hex(y.address + other.bytes), ")");
      if (other.span == &Operands::c && written.span == &Operands::d) {
        message += c_may_be_d_ ? "; d may only start exactly where c does"
                               : "; they differ in type or strides, so d cannot replace c in place";
      }
      return Error{Status::overlapping_operands, std::move(message)};
    }
  }
  return {};
}

void OperandRules::bind(const Operands& operands, Addresses& addresses) const noexcept {
  for (const OperandRule& rule : rules()) {
    addresses.*rule.address = (operands.*rule.span).address;
  }
  if (b_is_two_) addresses.b_right -= addresses.b;
}

}  // namespace vkgemm
