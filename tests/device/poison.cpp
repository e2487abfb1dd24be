#include "poison.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>

#include "specialise/module.hpp"

namespace vkgemm::test {
namespace {

using spirv::append;
using spirv::Instruction;
using spirv::Module;
using Words = std::vector<std::uint32_t>;

class Poison {
 public:
  explicit Poison(const Module& module) : module_(module), next_(module.bound()) {}

  Words write() {
    Words out(module_.header().begin(), module_.header().end());
    const auto all = module_.instructions();
    const auto globals = all.first(module_.first_function());
    // Constants follow all types and precede all variables.
    Words variables;
    for (const Instruction& instruction : globals) {
      Words& to = instruction.op == spv::Op::OpVariable ? variables : out;
      write(instruction, to);
    }
    Words functions;
    for (const Instruction& instruction : all.subspan(module_.first_function())) {
      write(instruction, functions);
    }
    out.insert(out.end(), constants_.begin(), constants_.end());
    out.insert(out.end(), variables.begin(), variables.end());
    out.insert(out.end(), functions.begin(), functions.end());
    out[3] = next_;
    return out;
  }

 private:
  void write(const Instruction& instruction, Words& out) {
    std::uint32_t value = 0;
    if (instruction.op == spv::Op::OpVariable && instruction.operands.size() == 1) {
      const auto storage = static_cast<spv::StorageClass>(instruction.operand(0));
      if (storage == spv::StorageClass::Function || storage == spv::StorageClass::Private) {
        value = constant(module_.definition(instruction.type)->operand(1));
      }
      if (value != 0) {
        return append(out, spv::Op::OpVariable,
                      {instruction.type, instruction.result, instruction.operand(0), value});
      }
    }
    const bool in_function = module_.index(instruction) >= module_.first_function();
    if (instruction.op == spv::Op::OpUndef && in_function) value = constant(instruction.type);
    if (value != 0) {
      return append(out, spv::Op::OpCopyObject, {instruction.type, instruction.result, value});
    }
    out.insert(out.end(), instruction.words.begin(), instruction.words.end());
  }

  // Returns the id of a constant of this type, or 0 for types without constants.
  std::uint32_t constant(std::uint32_t type) {
    if (const auto found = known_.find(type); found != known_.end()) return found->second;
    return known_[type] = make(*module_.definition(type));
  }

  std::uint32_t make(const Instruction& type) {
    switch (type.op) {
      case spv::Op::OpTypeBool:
        return add(spv::Op::OpConstantTrue, type.result, {});
      case spv::Op::OpTypeInt:
        return scalar(type, 0x7eadbeefU);
      case spv::Op::OpTypeFloat:
        return add(spv::Op::OpConstant, type.result,
                   {type.operand(0) == 32 ? 0x7fc12345U : 0x7fe1U});
      case spv::Op::OpTypeVector:
        return composite(type, type.operand(1));
      case spv::Op::OpTypeArray:
        return composite(type, module_.definition(type.operand(1))->operand(0));
      case spv::Op::OpTypeCooperativeMatrixKHR:
        return composite(type, 1);
      case spv::Op::OpTypeStruct: {
        Words parts;
        for (const std::uint32_t member : type.operands) parts.push_back(constant(member));
        return composite(type, parts);
      }
      default:
        return 0;
    }
  }

  std::uint32_t scalar(const Instruction& type, std::uint32_t bits) {
    const std::uint32_t width = type.operand(0);
    if (width == 64) return add(spv::Op::OpConstant, type.result, {bits, bits});
    // The sign bit is 0, so that signed and unsigned integers have the same words.
    return add(spv::Op::OpConstant, type.result,
               {width == 32 ? bits : bits & ((1U << (width - 1)) - 1)});
  }

  std::uint32_t composite(const Instruction& type, std::uint32_t count) {
    return composite(type, Words(count, constant(type.operand(0))));
  }
  std::uint32_t composite(const Instruction& type, const Words& parts) {
    for (const std::uint32_t part : parts) {
      if (part == 0) return 0;
    }
    return add(spv::Op::OpConstantComposite, type.result, parts);
  }

  std::uint32_t add(spv::Op op, std::uint32_t type, const Words& operands) {
    Words all{type, next_};
    all.insert(all.end(), operands.begin(), operands.end());
    append(constants_, op, all);
    return next_++;
  }

  const Module& module_;
  std::uint32_t next_;
  std::map<std::uint32_t, std::uint32_t> known_;  // by type
  Words constants_;
};

}  // namespace

std::vector<std::uint32_t> poison(std::span<const std::uint32_t> words) {
  const Result<Module> module = Module::parse(words);
  if (!module) {
    ADD_FAILURE() << module.error().message;
    return {};
  }
  return Poison(*module).write();
}

}  // namespace vkgemm::test
