#include "specialise/liveness.hpp"

#include <spirv/unified1/GLSL.std.450.h>

#include <algorithm>

namespace vkgemm::spirv {

namespace {

constexpr std::uint32_t function_storage = static_cast<std::uint32_t>(spv::StorageClass::Function);

bool is_volatile(const Instruction& load) noexcept {
  return (load.operand(1) & static_cast<std::uint32_t>(spv::MemoryAccessMask::Volatile)) != 0;
}

// True if an instruction has no effect but its result. Instructions that are not listed stay.
bool only_computes(const Module& module, const Instruction& instruction) noexcept {
  switch (instruction.op) {
    case spv::Op::OpLoad:
      return !is_volatile(instruction);
    case spv::Op::OpExtInst:
      return instruction.operand(0) == module.glsl_set() &&
             instruction.operand(1) != GLSLstd450Modf && instruction.operand(1) != GLSLstd450Frexp;
    case spv::Op::OpUndef:
    case spv::Op::OpVariable:
    case spv::Op::OpPhi:
    case spv::Op::OpAccessChain:
    case spv::Op::OpInBoundsAccessChain:
    case spv::Op::OpPtrAccessChain:
    case spv::Op::OpArrayLength:
    case spv::Op::OpCopyObject:
    case spv::Op::OpCopyLogical:
    case spv::Op::OpVectorExtractDynamic:
    case spv::Op::OpVectorInsertDynamic:
    case spv::Op::OpVectorShuffle:
    case spv::Op::OpCompositeConstruct:
    case spv::Op::OpCompositeExtract:
    case spv::Op::OpCompositeInsert:
    case spv::Op::OpConvertFToU:
    case spv::Op::OpConvertFToS:
    case spv::Op::OpConvertSToF:
    case spv::Op::OpConvertUToF:
    case spv::Op::OpUConvert:
    case spv::Op::OpSConvert:
    case spv::Op::OpFConvert:
    case spv::Op::OpConvertUToPtr:
    case spv::Op::OpConvertPtrToU:
    case spv::Op::OpBitcast:
    case spv::Op::OpSNegate:
    case spv::Op::OpFNegate:
    case spv::Op::OpIAdd:
    case spv::Op::OpFAdd:
    case spv::Op::OpISub:
    case spv::Op::OpFSub:
    case spv::Op::OpIMul:
    case spv::Op::OpFMul:
    case spv::Op::OpUDiv:
    case spv::Op::OpSDiv:
    case spv::Op::OpFDiv:
    case spv::Op::OpUMod:
    case spv::Op::OpSRem:
    case spv::Op::OpSMod:
    case spv::Op::OpVectorTimesScalar:
    case spv::Op::OpDot:
    case spv::Op::OpSDot:
    case spv::Op::OpAny:
    case spv::Op::OpAll:
    case spv::Op::OpIsNan:
    case spv::Op::OpIsInf:
    case spv::Op::OpLogicalEqual:
    case spv::Op::OpLogicalNotEqual:
    case spv::Op::OpLogicalOr:
    case spv::Op::OpLogicalAnd:
    case spv::Op::OpLogicalNot:
    case spv::Op::OpSelect:
    case spv::Op::OpIEqual:
    case spv::Op::OpINotEqual:
    case spv::Op::OpUGreaterThan:
    case spv::Op::OpSGreaterThan:
    case spv::Op::OpUGreaterThanEqual:
    case spv::Op::OpSGreaterThanEqual:
    case spv::Op::OpULessThan:
    case spv::Op::OpSLessThan:
    case spv::Op::OpULessThanEqual:
    case spv::Op::OpSLessThanEqual:
    case spv::Op::OpFOrdEqual:
    case spv::Op::OpFUnordEqual:
    case spv::Op::OpFOrdNotEqual:
    case spv::Op::OpFUnordNotEqual:
    case spv::Op::OpFOrdLessThan:
    case spv::Op::OpFOrdGreaterThan:
    case spv::Op::OpFOrdLessThanEqual:
    case spv::Op::OpFOrdGreaterThanEqual:
    case spv::Op::OpShiftRightLogical:
    case spv::Op::OpShiftRightArithmetic:
    case spv::Op::OpShiftLeftLogical:
    case spv::Op::OpBitwiseOr:
    case spv::Op::OpBitwiseXor:
    case spv::Op::OpBitwiseAnd:
    case spv::Op::OpNot:
    case spv::Op::OpBitFieldInsert:
    case spv::Op::OpBitFieldSExtract:
    case spv::Op::OpBitFieldUExtract:
    case spv::Op::OpBitReverse:
    case spv::Op::OpBitCount:
    case spv::Op::OpCooperativeMatrixMulAddKHR:
    case spv::Op::OpCooperativeMatrixLengthKHR:
      return true;
    default:
      return false;
  }
}

// Returns the operands that may be ids. Literals of the other instructions pass for ids: such a
// literal keeps the instruction with its number, which costs size alone.
std::span<const std::uint32_t> ids_of(const Instruction& instruction) noexcept {
  const auto operands = instruction.operands;
  const auto first = [operands](std::size_t n) {
    return operands.first(std::min(n, operands.size()));
  };
  switch (instruction.op) {
    case spv::Op::OpTypeInt:
    case spv::Op::OpTypeFloat:
    case spv::Op::OpConstant:
    case spv::Op::OpSpecConstant:
      return {};
    case spv::Op::OpTypeVector:
    case spv::Op::OpCompositeExtract:
      return first(1);
    case spv::Op::OpTypePointer:
    case spv::Op::OpVariable:
    case spv::Op::OpFunction:
      return operands.empty() ? operands : operands.subspan(1);
    case spv::Op::OpVectorShuffle:
    case spv::Op::OpCompositeInsert:
      return first(2);
    default:
      return operands;
  }
}

}  // namespace

Liveness::Liveness(const Module& module, std::span<const Function> functions, const Values& values)
    : module_(module),
      functions_(functions),
      values_(values),
      live_(module.instructions().size()),
      reached_(live_.size()),
      needed_(module.bound()),
      place_(module.bound()) {
  for (const Instruction& instruction : module.instructions().first(module.first_function())) {
    reach(instruction);
  }
  for (const Function& function : functions_) {
    function_of_[function.head.front().result] = &function;
  }
  start_globals();
  run();
}

bool Liveness::uses_bytes() const noexcept {
  const auto globals = module_.instructions().first(module_.first_function());
  return std::ranges::any_of(globals, [this](const Instruction& instruction) {
    return instruction.op == spv::Op::OpTypeInt && instruction.operand(0) == 8 &&
           is_live(instruction.result);
  });
}

void Liveness::start_globals() {
  for (const Instruction& instruction : module_.instructions().first(module_.first_function())) {
    switch (instruction.op) {
      // The interface of an entry point names variables that its functions may no longer use.
      case spv::Op::OpEntryPoint:
        need(instruction.operand(1));
        break;
      case spv::Op::OpExecutionModeId:
      case spv::Op::OpDecorateId:
        need_operands(instruction);
        break;
      default:
        break;
    }
  }
}

void Liveness::start_function(const Function& function) {
  for (const Instruction& instruction : function.head) reach(instruction);
  for (const Block& block : function.blocks) {
    if (!block.is_reached) continue;
    for (const Instruction& instruction : block.body) reach(instruction);
  }
  for (const Instruction& instruction : function.head) activate(instruction);
  for (BlockIndex index = 0; index < function.blocks.size(); ++index) {
    const Block& block = function.blocks[index];
    if (!block.is_reached) continue;
    for (const Instruction& instruction : block.body) {
      if (instruction.op == spv::Op::OpPhi) place_[instruction.result] = {&function, index};
      const Instruction* const variable =
          instruction.op == spv::Op::OpStore ? local_variable(instruction.operand(0)) : nullptr;
      if (variable != nullptr && !needed_[variable->result]) {
        stores_[variable->result].push_back(&instruction);
      } else if (!only_computes(module_, instruction)) {
        activate(instruction);
      }
    }
    if (block.end == End::unchanged) need_operands(*block.terminator);
    if (block.end == End::switch_default) need(block.terminator->operand(0));
  }
}

void Liveness::run() {
  while (!work_.empty()) {
    const std::uint32_t id = work_.back();
    work_.pop_back();
    const Instruction& definition = *module_.definition(id);
    if (const auto function = function_of_.find(id); function != function_of_.end()) {
      start_function(*function->second);
    } else if (!reached_[module_.index(definition)]) {
      needed_[id] = false;  // a literal passed for this id
    } else if (values_.scalar(id)) {
      if (module_.index(definition) >= module_.first_function()) constants_.push_back(id);
      need(definition.type);
    } else {
      activate(definition);
    }
    if (const auto stores = stores_.find(id); stores != stores_.end()) {
      for (const Instruction* const store : stores->second) activate(*store);
    }
  }
}

void Liveness::need(std::uint32_t id) {
  if (id >= needed_.size() || needed_[id] || module_.definition(id) == nullptr) return;
  needed_[id] = true;
  work_.push_back(id);
}

void Liveness::need_operands(const Instruction& instruction) {
  need(instruction.type);
  for (const std::uint32_t id : ids_of(instruction)) need(id);
}

void Liveness::activate(const Instruction& instruction) {
  const std::size_t index = module_.index(instruction);
  if (live_[index]) return;
  live_[index] = true;
  if (instruction.result != 0) need(instruction.result);
  if (instruction.op == spv::Op::OpPhi) {
    need_phi_operands(instruction);
  } else {
    need_operands(instruction);
  }
}

void Liveness::need_phi_operands(const Instruction& phi) {
  need(phi.type);
  const Place& place = place_[phi.result];
  if (place.function == nullptr) return;  // the block is not reached
  for (std::size_t i = 0; i + 1 < phi.operands.size(); i += 2) {
    if (is_taken(*place.function, phi.operands[i + 1], place.block)) need(phi.operands[i]);
  }
}

// Returns the variable of storage class Function that a pointer points into, or null.
const Instruction* Liveness::local_variable(std::uint32_t pointer) const noexcept {
  // Damaged modules may have cycles of access chains.
  for (int depth = 0; depth < 16; ++depth) {
    const Instruction* const found = module_.definition(pointer);
    if (found == nullptr) return nullptr;
    if (found->op == spv::Op::OpVariable) {
      return found->operand(0) == function_storage ? found : nullptr;
    }
    if (found->op != spv::Op::OpAccessChain && found->op != spv::Op::OpInBoundsAccessChain) {
      return nullptr;
    }
    pointer = found->operand(0);
  }
  return nullptr;
}

}  // namespace vkgemm::spirv
