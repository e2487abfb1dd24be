#include "specialise/specialise.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "specialise/flow.hpp"
#include "specialise/liveness.hpp"
#include "specialise/module.hpp"
#include "specialise/values.hpp"

namespace vkgemm {

namespace {

using namespace spirv;

using Words = std::vector<std::uint32_t>;

// True if the instruction declares that the module has types of 8 bits. Not every device supports
// them.
bool declares_bytes(const Instruction& instruction) noexcept {
  if (instruction.op != spv::Op::OpCapability) return false;
  switch (static_cast<spv::Capability>(instruction.operand(0))) {
    case spv::Capability::Int8:
    case spv::Capability::StorageBuffer8BitAccess:
    case spv::Capability::UniformAndStorageBuffer8BitAccess:
      return true;
    default:
      return false;
  }
}

class Writer {
 public:
  Writer(const Module& module, std::span<const Function> functions, const Values& values)
      : module_(module),
        functions_(functions),
        values_(values),
        liveness_(module, functions, values) {}

  Words write() {
    out_.assign(module_.header().begin(), module_.header().end());
    for (const Instruction& instruction : module_.instructions().first(module_.first_function())) {
      write_global(instruction);
    }
    for (const std::uint32_t id : liveness_.constants()) {
      write_constant(module_.definition(id)->type, id);
    }
    for (const Function& function : functions_) {
      if (liveness_.is_live(function.head.front().result)) write(function);
    }
    return std::move(out_);
  }

 private:
  void write(const Instruction& instruction) {
    out_.insert(out_.end(), instruction.words.begin(), instruction.words.end());
  }

  void write(spv::Op op, std::span<const std::uint32_t> operands) { append(out_, op, operands); }
  void write(spv::Op op, std::initializer_list<std::uint32_t> operands) {
    append(out_, op, operands);
  }

  void write_global(const Instruction& instruction) {
    if (is_debug(instruction.op)) return;
    if (declares_bytes(instruction) && !liveness_.uses_bytes()) return;
    switch (instruction.op) {
      case spv::Op::OpEntryPoint:
        return write_entry_point(instruction);
      case spv::Op::OpDecorate:
      case spv::Op::OpDecorateId:
      case spv::Op::OpDecorateString:
      case spv::Op::OpMemberDecorate:
      case spv::Op::OpMemberDecorateString:
        return write_decoration(instruction);
      case spv::Op::OpTypeForwardPointer:
        if (liveness_.is_live(instruction.operand(0))) write(instruction);
        return;
      default:
        break;
    }
    if (instruction.result == 0) return write(instruction);
    if (!liveness_.is_live(instruction.result)) return;
    if (values_.scalar(instruction.result)) {
      write_constant(instruction.type, instruction.result);
    } else if (instruction.op == spv::Op::OpSpecConstantComposite &&
               has_constant_parts(instruction)) {
      Words operands{instruction.type, instruction.result};
      operands.insert(operands.end(), instruction.operands.begin(), instruction.operands.end());
      write(spv::Op::OpConstantComposite, operands);
    } else {
      write(instruction);
    }
  }

  bool has_constant_parts(const Instruction& composite) const {
    return std::ranges::all_of(composite.operands, [this](std::uint32_t id) {
      const Instruction* const part = module_.definition(id);
      if (part == nullptr) return false;
      if (part->op == spv::Op::OpSpecConstantComposite) return has_constant_parts(*part);
      return part->op != spv::Op::OpSpecConstantOp || values_.scalar(id).has_value();
    });
  }

  void write_entry_point(const Instruction& instruction) {
    constexpr std::size_t name = 2;
    if (instruction.operands.size() <= name) return write(instruction);
    const std::size_t text = read_text(instruction.operands.subspan(name)).size();
    const std::size_t interface = name + text / sizeof(std::uint32_t) + 1;  // with its null
    Words operands;
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const std::uint32_t word = instruction.operands[i];
      if (i < interface || liveness_.is_live(word)) operands.push_back(word);
    }
    write(spv::Op::OpEntryPoint, operands);
  }

  void write_decoration(const Instruction& instruction) {
    const std::uint32_t target = instruction.operand(0);
    const bool is_spec_id =
        instruction.op == spv::Op::OpDecorate &&
        instruction.operand(1) == static_cast<std::uint32_t>(spv::Decoration::SpecId);
    if (is_spec_id || !liveness_.is_live(target)) return;
    // A decoration of an instruction may be invalid for the constant that replaces it.
    const Instruction* const definition = module_.definition(target);
    const bool was_computed = module_.index(*definition) >= module_.first_function();
    if (!was_computed || !values_.scalar(target)) write(instruction);
  }

  void write_constant(std::uint32_t type, std::uint32_t id) {
    const ScalarType scalar = module_.scalar_type(type);
    const std::uint64_t bits = *values_.scalar(id);
    if (scalar.width == 1) {
      return write(bits != 0 ? spv::Op::OpConstantTrue : spv::Op::OpConstantFalse, {type, id});
    }
    const auto low = static_cast<std::uint32_t>(bits);
    if (scalar.width == 64) {
      return write(spv::Op::OpConstant, {type, id, low, static_cast<std::uint32_t>(bits >> 32)});
    }
    // Narrow signed integers are sign-extended.
    const bool is_negative = scalar.is_signed && (bits >> (scalar.width - 1) & 1) != 0;
    const auto extension = static_cast<std::uint32_t>(~mask_of(scalar.width));
    write(spv::Op::OpConstant, {type, id, is_negative ? low | extension : low});
  }

  void write(const Function& function) {
    for (const Instruction& instruction : function.head) write(instruction);
    for (BlockIndex index = 0; index < function.blocks.size(); ++index) {
      const Block& block = function.blocks[index];
      if (block.is_reached) {
        write(function, index);
      } else if (block.is_placeholder) {
        write(spv::Op::OpLabel, {block.label});
        if (block.branches_back_to == no_block) {
          write(spv::Op::OpUnreachable, {});
        } else {
          write(spv::Op::OpBranch, {function.blocks[block.branches_back_to].label});
        }
      }
    }
    write(spv::Op::OpFunctionEnd, {});
  }

  void write(const Function& function, BlockIndex index) {
    const Block& block = function.blocks[index];
    write(spv::Op::OpLabel, {block.label});
    Words copies;
    for (const Instruction& instruction : block.body) {
      if (instruction.op == spv::Op::OpPhi) write_phi(function, index, instruction, copies);
    }
    out_.insert(out_.end(), copies.begin(), copies.end());
    for (const Instruction& instruction : block.body) {
      const bool is_constant = instruction.result != 0 && values_.scalar(instruction.result);
      if (instruction.op == spv::Op::OpPhi || is_debug(instruction.op) || is_constant ||
          !liveness_.is_live(instruction)) {
        continue;
      }
      write(instruction);
    }
    if (block.merge != nullptr && block.keeps_merge) write(*block.merge);
    write_end(function, block);
  }

  void write_end(const Function& function, const Block& block) {
    if (block.end == End::unchanged) return write(*block.terminator);
    const auto taken = std::ranges::find_if(block.successors, &Edge::is_taken);
    const std::uint32_t target = function.blocks[taken->to].label;
    if (block.end == End::branch) return write(spv::Op::OpBranch, {target});
    write(spv::Op::OpSwitch, {block.terminator->operand(0), target});
  }

  // Writes a phi, or appends OpCopyObject to `copies` if only one value is left. Copies follow the
  // phis.
  void write_phi(const Function& function, BlockIndex index, const Instruction& phi,
                 Words& copies) {
    if (!liveness_.is_live(phi) || values_.scalar(phi.result)) return;
    Words operands{phi.type, phi.result};
    std::uint32_t only = 0;
    bool has_one_value = true;
    for (std::size_t i = 0; i + 1 < phi.operands.size(); i += 2) {
      const std::uint32_t value = phi.operands[i];
      if (!is_taken(function, phi.operands[i + 1], index)) continue;
      operands.insert(operands.end(), {value, phi.operands[i + 1]});
      if (value == phi.result || value == only) continue;
      has_one_value = only == 0;
      only = only == 0 ? value : only;
    }
    if (has_one_value && only != 0) {
      return append(copies, spv::Op::OpCopyObject, {phi.type, phi.result, only});
    }
    const Block& block = function.blocks[index];
    if (block.continue_block != no_block) {
      const Block& target = function.blocks[block.continue_block];
      // The edge is never executed, so any value serves that dominates the loop.
      if (block.keeps_merge && target.branches_back_to == index) {
        operands.insert(operands.end(), {operands[2], target.label});
      }
    }
    write(spv::Op::OpPhi, operands);
  }

  const Module& module_;
  const std::span<const Function> functions_;
  const Values& values_;
  const Liveness liveness_;
  Words out_;
};

}  // namespace

Result<Words> specialise(std::span<const std::uint32_t> words,
                         std::span<const std::uint32_t> constants) {
  const Result<Module> module = Module::parse(words);
  if (!module) return module.error();
  Values values(*module, constants);
  std::vector<Function> functions;
  const auto instructions = module->instructions();
  for (std::size_t i = module->first_function(); i < instructions.size(); ++i) {
    if (instructions[i].op != spv::Op::OpFunction) continue;
    Result<Function> function = read_function(*module, i);
    if (!function) return function.error();
    propagate(*function, values);
    const Result<void> structured = restructure(*function);
    if (!structured) return structured.error();
    functions.push_back(std::move(*function));
  }
  return Writer(*module, functions, values).write();
}

}  // namespace vkgemm
