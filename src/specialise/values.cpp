#include "specialise/values.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace vkgemm::spirv {

namespace {

constexpr Value unseen{.state = Value::State::unseen};
constexpr Value varying{.state = Value::State::varying};

Value number(std::uint64_t bits) noexcept { return {Value::State::scalar, bits}; }

}  // namespace

Values::Values(const Module& module, std::span<const std::uint32_t> constants)
    : module_(module), values_(module.bound(), varying) {
  const auto instructions = module.instructions();
  const auto globals = instructions.first(module.first_function());
  for (const Instruction& instruction : globals) {
    const bool has_spec_id =
        instruction.op == spv::Op::OpDecorate &&
        instruction.operand(1) == static_cast<std::uint32_t>(spv::Decoration::SpecId);
    if (has_spec_id && instruction.operand(2) < constants.size()) {
      given_[instruction.operand(0)] = constants[instruction.operand(2)];
    }
  }
  for (const Instruction& instruction : globals) {
    if (instruction.result == 0) continue;
    values_[instruction.result] = unseen;
    meet(instruction.result, evaluate(instruction));
  }
  for (const Instruction& instruction : instructions.subspan(module.first_function())) {
    const bool is_known_to_vary =
        instruction.op == spv::Op::OpFunction || instruction.op == spv::Op::OpFunctionParameter;
    if (instruction.result != 0 && !is_known_to_vary) values_[instruction.result] = unseen;
  }
}

const Value& Values::of(std::uint32_t id) const noexcept {
  return id < values_.size() ? values_[id] : varying;
}

std::optional<std::uint64_t> Values::scalar(std::uint32_t id) const noexcept {
  const Value& value = of(id);
  if (value.state != Value::State::scalar) return {};
  return value.bits;
}

Value Values::met(const Value& a, const Value& b) noexcept {
  if (a.state == Value::State::unseen) return b;
  if (b.state == Value::State::unseen) return a;
  return a == b ? a : varying;
}

bool Values::meet(std::uint32_t id, Value value) noexcept {
  const bool fits = value.state != Value::State::scalar || module_.scalar_type_of(id).width != 0;
  const Value result = met(values_[id], fits ? value : varying);
  return std::exchange(values_[id], result) != result;
}

Value Values::evaluate(const Instruction& instruction) {
  if (instruction.op != spv::Op::OpSpecConstantOp) {
    return evaluate(instruction, instruction.op, instruction.operands);
  }
  if (instruction.operands.empty()) return varying;
  return evaluate(instruction, static_cast<spv::Op>(instruction.operands[0]),
                  instruction.operands.subspan(1));
}

Value Values::evaluate(const Instruction& instruction, spv::Op op,
                       std::span<const std::uint32_t> operands) {
  switch (op) {
    case spv::Op::OpConstantTrue:
    case spv::Op::OpConstantFalse:
    case spv::Op::OpConstant:
    case spv::Op::OpConstantNull:
    case spv::Op::OpSpecConstantTrue:
    case spv::Op::OpSpecConstantFalse:
    case spv::Op::OpSpecConstant:
      return evaluate_constant(instruction);
    case spv::Op::OpConstantComposite:
    case spv::Op::OpSpecConstantComposite:
    case spv::Op::OpCompositeConstruct:
      return construct(operands);
    case spv::Op::OpCompositeExtract:
      return extract(operands);
    case spv::Op::OpCopyObject:
      return operands.size() == 1 ? of(operands[0]) : varying;
    case spv::Op::OpSelect:
      return select(operands);
    default:
      return compute(instruction, op, operands);
  }
}

Value Values::evaluate_constant(const Instruction& instruction) const noexcept {
  const std::uint32_t width = module_.scalar_type(instruction.type).width;
  if (width == 0) return varying;
  if (const auto given = given_.find(instruction.result); given != given_.end()) {
    if (width == 1) return number(given->second != 0 ? 1 : 0);
    return width <= 32 ? number(given->second & mask_of(width)) : varying;
  }
  switch (instruction.op) {
    case spv::Op::OpConstantTrue:
    case spv::Op::OpSpecConstantTrue:
      return number(1);
    case spv::Op::OpConstantFalse:
    case spv::Op::OpSpecConstantFalse:
    case spv::Op::OpConstantNull:
      return number(0);
    default:
      return number(read_literal(instruction.operands, width));
  }
}

// Composites have scalar members only. A vector among the members makes the result varying.
Value Values::construct(std::span<const std::uint32_t> parts) {
  std::vector<std::uint64_t> bits;
  for (const std::uint32_t part : parts) {
    const Value& value = of(part);
    if (value.state == Value::State::unseen) return unseen;
    if (value.state != Value::State::scalar) return varying;
    bits.push_back(value.bits);
  }
  const auto [entry, is_new] = indices_.try_emplace(bits, composites_.size());
  if (is_new) composites_.push_back(std::move(bits));
  return {Value::State::composite, entry->second};
}

Value Values::extract(std::span<const std::uint32_t> operands) const {
  if (operands.size() != 2) return varying;
  const Value& whole = of(operands[0]);
  if (whole.state != Value::State::composite) {
    return whole.state == Value::State::unseen ? unseen : varying;
  }
  const std::vector<std::uint64_t>& parts = composites_[whole.bits];
  return operands[1] < parts.size() ? number(parts[operands[1]]) : varying;
}

Value Values::select(std::span<const std::uint32_t> operands) const {
  if (operands.size() != 3) return varying;
  const Value& condition = of(operands[0]);
  if (condition.state == Value::State::unseen) return unseen;
  if (condition.state == Value::State::scalar) {
    return of(condition.bits != 0 ? operands[1] : operands[2]);
  }
  return met(of(operands[1]), of(operands[2]));
}

Value Values::compute(const Instruction& instruction, spv::Op op,
                      std::span<const std::uint32_t> operands) const {
  const ScalarType type = module_.scalar_type(instruction.type);
  if (type.width == 0 || type.is_float) return varying;
  const bool is_glsl = op == spv::Op::OpExtInst;
  std::uint32_t glsl_instruction = 0;
  if (is_glsl) {
    if (operands.size() < 2 || operands[0] != module_.glsl_set()) return varying;
    glsl_instruction = operands[1];
    operands = operands.subspan(2);
  }

  std::array<Scalar, 2> known;
  if (operands.empty() || operands.size() > known.size()) return varying;
  bool all_known = true;
  bool any_unseen = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Value& value = of(operands[i]);
    const ScalarType operand = module_.scalar_type_of(operands[i]);
    if (value.state != Value::State::scalar || operand.is_float) {
      all_known = false;
      any_unseen = any_unseen || value.state == Value::State::unseen;
      continue;
    }
    known[i] = {value.bits, operand.width};
    if (is_glsl || operands.size() != 2) continue;
    if (const auto bits = absorb(op, i == 0, known[i])) return number(*bits);
  }
  if (!all_known) return any_unseen ? unseen : varying;
  const auto scalars = std::span<const Scalar>(known).first(operands.size());
  const auto bits =
      is_glsl ? fold_glsl(glsl_instruction, type.width, scalars) : fold(op, type.width, scalars);
  return bits ? number(*bits) : varying;
}

}  // namespace vkgemm::spirv
