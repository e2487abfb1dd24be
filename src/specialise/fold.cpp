#include "specialise/fold.hpp"

#include <spirv/unified1/GLSL.std.450.h>

#include <algorithm>

namespace vkgemm::spirv {

namespace {

std::int64_t signed_value(const Scalar& scalar) noexcept {
  if (scalar.width >= 64) return static_cast<std::int64_t>(scalar.bits);
  const std::uint64_t sign = std::uint64_t{1} << (scalar.width - 1);
  return static_cast<std::int64_t>((scalar.bits ^ sign) - sign);
}

std::optional<std::uint64_t> fold_unary(spv::Op op, const Scalar& a) {
  switch (op) {
    case spv::Op::OpUConvert:
      return a.bits;
    case spv::Op::OpSConvert:
      return static_cast<std::uint64_t>(signed_value(a));
    case spv::Op::OpSNegate:
      return 0 - a.bits;
    case spv::Op::OpNot:
    case spv::Op::OpLogicalNot:
      return ~a.bits;
    default:
      return {};
  }
}

// `b` is not 0. If `b` is -1, C++ division of the least value would overflow.
std::optional<std::uint64_t> divide_signed(spv::Op op, std::int64_t a, std::int64_t b) {
  if (b == -1) {
    if (op == spv::Op::OpSDiv) return 0 - static_cast<std::uint64_t>(a);
    return 0;
  }
  const std::int64_t remainder = a % b;
  if (op == spv::Op::OpSDiv) return static_cast<std::uint64_t>(a / b);
  if (op == spv::Op::OpSRem) return static_cast<std::uint64_t>(remainder);
  const bool other_sign = remainder != 0 && (remainder < 0) != (b < 0);
  return static_cast<std::uint64_t>(other_sign ? remainder + b : remainder);
}

std::optional<std::uint64_t> fold_binary(spv::Op op, const Scalar& a, const Scalar& b) {
  const bool can_divide = b.bits != 0;
  const bool can_shift = b.bits < a.width;
  const std::int64_t sa = signed_value(a);
  const std::int64_t sb = signed_value(b);
  switch (op) {
    case spv::Op::OpIAdd:
      return a.bits + b.bits;
    case spv::Op::OpISub:
      return a.bits - b.bits;
    case spv::Op::OpIMul:
      return a.bits * b.bits;
    case spv::Op::OpUDiv:
      if (can_divide) return a.bits / b.bits;
      return {};
    case spv::Op::OpUMod:
      if (can_divide) return a.bits % b.bits;
      return {};
    case spv::Op::OpSDiv:
    case spv::Op::OpSRem:
    case spv::Op::OpSMod:
      if (can_divide) return divide_signed(op, sa, sb);
      return {};
    case spv::Op::OpShiftLeftLogical:
      if (can_shift) return a.bits << b.bits;
      return {};
    case spv::Op::OpShiftRightLogical:
      if (can_shift) return a.bits >> b.bits;
      return {};
    case spv::Op::OpShiftRightArithmetic:
      if (can_shift) return static_cast<std::uint64_t>(sa >> b.bits);
      return {};
    case spv::Op::OpBitwiseAnd:
    case spv::Op::OpLogicalAnd:
      return a.bits & b.bits;
    case spv::Op::OpBitwiseOr:
    case spv::Op::OpLogicalOr:
      return a.bits | b.bits;
    case spv::Op::OpBitwiseXor:
      return a.bits ^ b.bits;
    case spv::Op::OpIEqual:
    case spv::Op::OpLogicalEqual:
      return a.bits == b.bits ? 1 : 0;
    case spv::Op::OpINotEqual:
    case spv::Op::OpLogicalNotEqual:
      return a.bits != b.bits ? 1 : 0;
    case spv::Op::OpULessThan:
      return a.bits < b.bits ? 1 : 0;
    case spv::Op::OpULessThanEqual:
      return a.bits <= b.bits ? 1 : 0;
    case spv::Op::OpUGreaterThan:
      return a.bits > b.bits ? 1 : 0;
    case spv::Op::OpUGreaterThanEqual:
      return a.bits >= b.bits ? 1 : 0;
    case spv::Op::OpSLessThan:
      return sa < sb ? 1 : 0;
    case spv::Op::OpSLessThanEqual:
      return sa <= sb ? 1 : 0;
    case spv::Op::OpSGreaterThan:
      return sa > sb ? 1 : 0;
    case spv::Op::OpSGreaterThanEqual:
      return sa >= sb ? 1 : 0;
    default:
      return {};
  }
}

std::optional<std::uint64_t> masked(std::optional<std::uint64_t> bits, std::uint32_t width) {
  if (bits) *bits &= mask_of(width);
  return bits;
}

}  // namespace

std::optional<std::uint64_t> fold(spv::Op op, std::uint32_t width,
                                  std::span<const Scalar> operands) {
  switch (operands.size()) {
    case 1:
      // OpBitcast changes the type alone.
      if (op == spv::Op::OpBitcast && operands[0].width == width) return operands[0].bits;
      return masked(fold_unary(op, operands[0]), width);
    case 2:
      return masked(fold_binary(op, operands[0], operands[1]), width);
    default:
      return {};
  }
}

std::optional<std::uint64_t> fold_glsl(std::uint32_t instruction, std::uint32_t width,
                                       std::span<const Scalar> operands) {
  const auto less = [](const Scalar& a, const Scalar& b) { return a.bits < b.bits; };
  const auto signed_less = [](const Scalar& a, const Scalar& b) {
    return signed_value(a) < signed_value(b);
  };
  if (operands.size() == 2) {
    switch (instruction) {
      case GLSLstd450UMin:
        return std::min(operands[0], operands[1], less).bits;
      case GLSLstd450UMax:
        return std::max(operands[0], operands[1], less).bits;
      case GLSLstd450SMin:
        return std::min(operands[0], operands[1], signed_less).bits;
      case GLSLstd450SMax:
        return std::max(operands[0], operands[1], signed_less).bits;
      default:
        return {};
    }
  }
  if (operands.size() == 1 && instruction == GLSLstd450FindILsb && operands[0].bits != 0) {
    std::uint64_t bit = 0;
    while ((operands[0].bits >> bit & 1) == 0) ++bit;
    return bit & mask_of(width);
  }
  if (operands.size() == 1 && instruction == GLSLstd450FindUMsb && operands[0].bits != 0) {
    std::uint64_t bit = operands[0].width - 1;
    while ((operands[0].bits >> bit & 1) == 0) --bit;
    return bit & mask_of(width);
  }
  return {};
}

std::optional<std::uint64_t> absorb(spv::Op op, bool is_first, const Scalar& operand) {
  const bool is_zero = operand.bits == 0;
  switch (op) {
    case spv::Op::OpIMul:
    case spv::Op::OpBitwiseAnd:
    case spv::Op::OpLogicalAnd:
      if (is_zero) return 0;
      return {};
    case spv::Op::OpBitwiseOr:
    case spv::Op::OpLogicalOr:
      if (operand.bits == mask_of(operand.width)) return operand.bits;
      return {};
    case spv::Op::OpUMod:
      if (!is_first && operand.bits == 1) return 0;
      return {};
    case spv::Op::OpULessThan:
      if (!is_first && is_zero) return 0;
      return {};
    case spv::Op::OpUGreaterThanEqual:
      if (!is_first && is_zero) return 1;
      return {};
    case spv::Op::OpUGreaterThan:
      if (is_first && is_zero) return 0;
      return {};
    case spv::Op::OpULessThanEqual:
      if (is_first && is_zero) return 1;
      return {};
    default:
      return {};
  }
}

}  // namespace vkgemm::spirv
