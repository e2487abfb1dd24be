#include "runtime/operand_check.hpp"

#include <string>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace vkgemm {

namespace {

constexpr std::uint32_t workspace_alignment = 256;

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
bool interleaved(const Operand& a, std::uint64_t a_address, const Operand& b,
                 std::uint64_t b_address) noexcept {
  const std::uint64_t pitch = a.pitch;
  if (pitch == 0 || b.pitch != pitch) return false;
  if (a.matrix_pitch % pitch != 0 || b.matrix_pitch % pitch != 0) return false;
  const std::uint64_t distance = b_address >= a_address
                                     ? (b_address - a_address) % pitch
                                     : (pitch - (a_address - b_address) % pitch) % pitch;
  return distance >= a.line_bytes && distance + b.line_bytes <= pitch;
}

}  // namespace

OperandRules::OperandRules(const ResolvedProblem& problem, std::uint64_t workspace_bytes)
    : all_(operands_of(problem)),
      of_problem_(true),
      c_may_be_d_(problem.has_c() && !places_rows(problem.grouping) &&
                  problem.c.type == problem.d.type && problem.c.layout == problem.d.layout &&
                  problem.c.ld == problem.d.ld &&
                  (problem.batch == 1 || problem.c.batch_stride == problem.d.batch_stride) &&
                  problem.repeat_steps[OperandId::c] == problem.repeat_steps[OperandId::d]),
      b_is_two_(problem.k != 0 && problem.is_gated(GatedB::separate)) {
  if (workspace_bytes != 0 && !problem.is_empty()) {
    add({.name = "workspace",
         .span = &Operands::workspace,
         .address = &Addresses::workspace,
         .bytes = workspace_bytes,
         .alignment = workspace_alignment,
         .written = true});
  }
}

bool OperandRules::may_share(const Operand& a, const Operand& b, const Operands& operands) const {
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
  for (const Operand& rule : all_) {
    const DeviceSpan& span = operands.*rule.span;
    if (rule.bytes == 0) continue;
    const bool workspace = rule.span == &Operands::workspace;
    const bool promised = of_problem_ && !workspace;
    if (span.bytes < rule.bytes) {
      return Error{workspace ? Status::workspace_too_small : Status::span_too_small,
                   concat(rule.name, ".bytes is ", span.bytes, ", ",
                          promised ? "the problem touches " : "the plan wants ", rule.bytes)};
    }
    if (span.address == 0) return invalid_argument(concat(rule.name, ".address is 0"));
    if (span.address > UINT64_MAX - rule.bytes) {
      return invalid_argument(concat(rule.name, " span of ", rule.bytes, " bytes at ",
                                     hex(span.address), " ends beyond 2^64"));
    }
    if (span.address % rule.alignment != 0) {
      return Error{Status::misaligned,
                   concat(rule.name, ".address is ", hex(span.address), ": a multiple of ",
                          rule.alignment, " bytes is needed")};
    }
  }
  for (const Operand& one : all_) {
    for (const Operand* next = &one + 1; next != all_.end(); ++next) {
      if (one.bytes == 0 || next->bytes == 0 || may_share(one, *next, operands)) continue;
      const Operand& written = one.written ? one : *next;
      const Operand& other = one.written ? *next : one;
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
  for (const Operand& rule : all_) {
    addresses.*rule.address = (operands.*rule.span).address;
    if (rule.also != nullptr) addresses.*rule.also = addresses.*rule.address;
  }
  if (b_is_two_) addresses.b_right -= addresses.b;
}

void OperandRules::advance(Addresses& addresses) const noexcept {
  for (const Operand& rule : all_) {
    if (rule.address == &Addresses::b_right) continue;  // a distance from b
    addresses.*rule.address += rule.repeat_step;
    if (rule.also != nullptr) addresses.*rule.also += rule.repeat_step;
  }
}

}  // namespace vkgemm
