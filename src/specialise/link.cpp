#include "specialise/link.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "specialise/module.hpp"

namespace vkgemm {
namespace {

using namespace spirv;

using Words = std::vector<std::uint32_t>;

constexpr std::size_t bound_word = 3;

template <class Enum>
constexpr std::uint32_t word_of(Enum value) noexcept {
  return static_cast<std::uint32_t>(value);
}

// The operands of an instruction that are ids: those before `literals`, but for the one at
// `literal`.
struct IdOperands {
  std::size_t literals = SIZE_MAX;
  std::size_t literal = SIZE_MAX;
};

// Returns nothing for an instruction that no function of a library may have.
std::optional<IdOperands> id_operands(spv::Op op) noexcept {
  switch (op) {
    case spv::Op::OpTypeVoid:
    case spv::Op::OpTypeBool:
    case spv::Op::OpTypeInt:
    case spv::Op::OpTypeFloat:
    case spv::Op::OpConstant:
    case spv::Op::OpConstantTrue:
    case spv::Op::OpConstantFalse:
    case spv::Op::OpConstantNull:
    case spv::Op::OpUndef:
      return IdOperands{.literals = 0};
    case spv::Op::OpTypeVector:
    case spv::Op::OpTypeMatrix:
    case spv::Op::OpLoad:
    case spv::Op::OpCompositeExtract:
    case spv::Op::OpSelectionMerge:
    case spv::Op::OpDecorate:
      return IdOperands{.literals = 1};
    case spv::Op::OpStore:
    case spv::Op::OpCompositeInsert:
    case spv::Op::OpVectorShuffle:
    case spv::Op::OpLoopMerge:
      return IdOperands{.literals = 2};
    case spv::Op::OpBranchConditional:
      return IdOperands{.literals = 3};
    case spv::Op::OpTypePointer:
    case spv::Op::OpVariable:
    case spv::Op::OpFunction:
      return IdOperands{.literal = 0};
    case spv::Op::OpExtInst:
      return IdOperands{.literal = 1};
    case spv::Op::OpTypeArray:
    case spv::Op::OpTypeRuntimeArray:  // of a buffer, which is refused
    case spv::Op::OpTypeStruct:
    case spv::Op::OpTypeFunction:
    case spv::Op::OpConstantComposite:
    case spv::Op::OpFunctionParameter:
    case spv::Op::OpFunctionEnd:
    case spv::Op::OpFunctionCall:
    case spv::Op::OpAccessChain:
    case spv::Op::OpInBoundsAccessChain:
    case spv::Op::OpVectorExtractDynamic:
    case spv::Op::OpVectorInsertDynamic:
    case spv::Op::OpCompositeConstruct:
    case spv::Op::OpCopyObject:
    case spv::Op::OpCopyLogical:
    case spv::Op::OpTranspose:
    case spv::Op::OpPhi:
    case spv::Op::OpLabel:
    case spv::Op::OpBranch:
    case spv::Op::OpSwitch:  // its literals: map_operands()
    case spv::Op::OpReturn:
    case spv::Op::OpReturnValue:
    case spv::Op::OpUnreachable:
      return IdOperands{};
    default:
      break;
  }
  // Conversions; arithmetic, comparisons and operations on bits.
  const bool computes = (op >= spv::Op::OpConvertFToU && op <= spv::Op::OpQuantizeToF16) ||
                        op == spv::Op::OpBitcast ||
                        (op >= spv::Op::OpSNegate && op <= spv::Op::OpBitCount);
  return computes ? std::optional(IdOperands{}) : std::nullopt;
}

bool is_debug_or_entry(spv::Op op) noexcept {
  return is_debug(op) || op == spv::Op::OpMemoryModel || op == spv::Op::OpEntryPoint ||
         op == spv::Op::OpExecutionMode;
}

bool is_annotation(spv::Op op) noexcept {
  return op == spv::Op::OpDecorate || op == spv::Op::OpMemberDecorate ||
         op == spv::Op::OpDecorateId || op == spv::Op::OpDecorateString ||
         op == spv::Op::OpMemberDecorateString;
}

// Capabilities that every kernel has.
bool is_implied(std::uint32_t capability) noexcept {
  return capability == word_of(spv::Capability::Shader) ||
         capability == word_of(spv::Capability::Matrix);
}

// Types and constants that a module may declare only once, or that need no second declaration.
bool is_shared(spv::Op op) noexcept {
  return op >= spv::Op::OpTypeVoid && op <= spv::Op::OpTypeFunction &&
         op != spv::Op::OpTypeStruct && op != spv::Op::OpTypeArray;
}

Error refused(const auto&... why) { return unsupported(concat(why...)); }

// The id of the function that gives way; 0: there is none.
std::uint32_t find_marked(const Module& module, std::uint32_t mark) {
  std::uint32_t constant = 0, function = 0;
  for (const Instruction& instruction : module.instructions()) {
    if (instruction.op == spv::Op::OpDecorate &&
        instruction.operand(1) == word_of(spv::Decoration::SpecId) &&
        instruction.operand(2) == mark) {
      constant = instruction.operand(0);
    }
    if (instruction.op == spv::Op::OpFunction) function = instruction.result;
    if (instruction.op == spv::Op::OpBitcast && constant != 0 &&
        instruction.operand(0) == constant) {
      return function;
    }
  }
  return 0;
}

// The id of the function of this name in GLSL; 0: there is none.
std::uint32_t find_named(const Module& library, std::string_view name) {
  const std::string prefix = concat(name, '(');
  for (const Instruction& instruction : library.instructions()) {
    if (instruction.op != spv::Op::OpName || instruction.operands.size() < 2) continue;
    const Instruction* const named = library.definition(instruction.operand(0));
    if (named != nullptr && named->op == spv::Op::OpFunction &&
        read_text(instruction.operands.subspan(1)).starts_with(prefix)) {
      return named->result;
    }
  }
  return 0;
}

class Linker {
 public:
  Linker(const Module& module, const Module& library, std::string_view name)
      : module_(module), library_(library), name_(name), bound_(module.bound()) {
    const auto instructions = module.instructions();
    for (std::size_t i = 0; i < module.first_function(); ++i) {
      const Instruction& instruction = instructions[i];
      if (is_shared(instruction.op)) known_.emplace(key_of(instruction), instruction.result);
    }
  }

  Result<Words> link(std::uint32_t from, std::uint32_t to) {
    if (auto error = take_globals()) return *error;
    if (auto error = take_functions()) return *error;
    if (auto error = check_type(from, to)) return *error;
    if (auto error = check_ids()) return *error;
    return write(from, ids_.at(to));
  }

 private:
  // An instruction without its result.
  static Words key_of(const Instruction& instruction) {
    Words key{word_of(instruction.op)};
    key.insert(key.end(), instruction.operands.begin(), instruction.operands.end());
    return key;
  }

  // An id may be used before the instruction that defines it.
  std::uint32_t id_of(std::uint32_t id) {
    const auto [at, is_new] = ids_.try_emplace(id, bound_);
    if (is_new) ++bound_;
    return at->second;
  }

  // The instruction's words with ids of the module, or nothing if it is not allowed.
  std::optional<Words> mapped(const Instruction& instruction) {
    const auto ids = id_operands(instruction.op);
    if (!ids) return std::nullopt;
    Words out{instruction.words[0]};
    const std::size_t leading = instruction.words.size() - instruction.operands.size();
    for (std::size_t i = 1; i < leading; ++i) out.push_back(id_of(instruction.words[i]));
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      // A switch has a literal before each label but the default one.
      const bool is_case = instruction.op == spv::Op::OpSwitch && i >= 2 && i % 2 == 0;
      const bool is_id = i < ids->literals && i != ids->literal && !is_case;
      out.push_back(is_id ? id_of(instruction.operands[i]) : instruction.operands[i]);
    }
    return out;
  }

  MaybeError not_allowed(const Instruction& instruction) const {
    return refused("it uses instruction ", word_of(instruction.op),
                   " of SPIR-V, which does not compute a value from values");
  }

  MaybeError take_globals() {
    for (const Instruction& instruction :
         library_.instructions().first(library_.first_function())) {
      if (is_debug_or_entry(instruction.op)) continue;
      if (auto error = take_global(instruction)) return error;
    }
    return std::nullopt;
  }

  MaybeError take_global(const Instruction& instruction) {
    switch (instruction.op) {
      case spv::Op::OpCapability:
        if (is_implied(instruction.operand(0))) return std::nullopt;
        return refused("it needs capability ", instruction.operand(0),
                       " of SPIR-V, and may need Shader alone");
      case spv::Op::OpExtension:
        return refused("it needs the extension ", read_text(instruction.operands));
      case spv::Op::OpExtInstImport:
        if (instruction.result != library_.glsl_set() || module_.glsl_set() == 0) {
          return refused("it imports ", read_text(instruction.operands));
        }
        ids_.emplace(instruction.result, module_.glsl_set());
        return std::nullopt;
      case spv::Op::OpDecorate:
        decorations_.push_back(&instruction);
        return std::nullopt;
      case spv::Op::OpMemberDecorate:  // a layout in memory, which no function has
        return std::nullopt;
      case spv::Op::OpVariable:
        if (instruction.operand(0) != word_of(spv::StorageClass::Private)) {
          return refused("it has a variable of storage class ", instruction.operand(0),
                         " of SPIR-V: it may have local variables alone");
        }
        // A compiler lets main() set it, which nothing calls here.
        if (instruction.operands.size() < 2) {
          return refused("it has a global variable without a constant value");
        }
        break;
      default:
        break;
    }
    auto words = mapped(instruction);
    if (!words) return not_allowed(instruction);
    if (is_shared(instruction.op)) {
      // The same type, if the module has it: its operands were mapped already.
      Words key{word_of(instruction.op)};
      key.insert(key.end(), words->begin() + 2, words->end());
      const auto [known, is_new] = known_.emplace(std::move(key), (*words)[1]);
      if (!is_new) {
        ids_[instruction.result] = known->second;
        return std::nullopt;
      }
    }
    if (instruction.op == spv::Op::OpVariable) variables_.push_back(id_of(instruction.result));
    globals_.insert(globals_.end(), words->begin(), words->end());
    return std::nullopt;
  }

  // Takes all functions but entry points, which no function calls.
  MaybeError take_functions() {
    for (const Instruction& instruction : library_.instructions()) {
      if (instruction.op == spv::Op::OpEntryPoint) entries_.insert(instruction.operand(1));
    }
    bool is_entry = false;
    const auto all = library_.instructions();
    for (const Instruction& instruction : all.subspan(library_.first_function())) {
      if (instruction.op == spv::Op::OpFunction) is_entry = entries_.contains(instruction.result);
      if (is_entry || is_debug_or_entry(instruction.op)) continue;
      const auto words = mapped(instruction);
      if (!words) return not_allowed(instruction);
      functions_.insert(functions_.end(), words->begin(), words->end());
    }
    return std::nullopt;
  }

  // Both functions have one type.
  MaybeError check_type(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t wanted = module_.definition(from)->operand(1);
    const auto own = ids_.find(library_.definition(to)->operand(1));
    if (own != ids_.end() && own->second == wanted) return std::nullopt;
    return invalid_argument(concat(name_, "() has another type than float(float, uvec2, vec4)"));
  }

  // Whatever is used is there.
  MaybeError check_ids() const {
    for (const auto& [id, own] : ids_) {
      if (library_.definition(id) != nullptr && !entries_.contains(id)) continue;
      return invalid_argument(concat("its SPIR-V uses id ", id, ", which it does not define"));
    }
    return std::nullopt;
  }

  void write_entry_point(const Instruction& instruction, Words& out) const {
    Words operands(instruction.operands.begin(), instruction.operands.end());
    operands.insert(operands.end(), variables_.begin(), variables_.end());
    append(out, instruction.op, operands);
  }

  void write_decorations(Words& out) {
    for (const Instruction* const decoration : decorations_) {
      if (!ids_.contains(decoration->operand(0))) continue;
      const auto words = mapped(*decoration);
      out.insert(out.end(), words->begin(), words->end());
    }
  }

  Words write(std::uint32_t from, std::uint32_t to) {
    Words out(module_.header().begin(), module_.header().end());
    const auto instructions = module_.instructions();
    // Annotations end where types begin.
    std::size_t annotations = 0;
    for (std::size_t i = 0; i < module_.first_function(); ++i) {
      if (is_annotation(instructions[i].op)) annotations = i;
    }
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const Instruction& instruction = instructions[i];
      if (i == module_.first_function()) out.insert(out.end(), globals_.begin(), globals_.end());
      if (instruction.op == spv::Op::OpEntryPoint) {
        write_entry_point(instruction, out);
      } else {
        const std::size_t at = out.size();
        out.insert(out.end(), instruction.words.begin(), instruction.words.end());
        const bool is_call =
            instruction.op == spv::Op::OpFunctionCall && instruction.operand(0) == from;
        if (is_call) out[at + 3] = to;
      }
      if (i == annotations) write_decorations(out);
    }
    out.insert(out.end(), functions_.begin(), functions_.end());
    out[bound_word] = bound_;
    return out;
  }

  const Module& module_;
  const Module& library_;
  const std::string_view name_;
  std::uint32_t bound_;
  std::map<Words, std::uint32_t> known_;  // types of the module, without their results
  std::set<std::uint32_t> entries_;
  std::map<std::uint32_t, std::uint32_t> ids_;  // of the library's
  std::vector<const Instruction*> decorations_;
  Words variables_, globals_, functions_;
};

}  // namespace

Result<Words> link_function(std::span<const std::uint32_t> module_words, std::uint32_t mark,
                            std::span<const std::uint32_t> library_words, std::string_view name) {
  const Result<Module> module = Module::parse(module_words);
  if (!module) return module.error();
  const Result<Module> library = Module::parse(library_words);
  if (!library) {
    return invalid_argument(library.error().message);
  }
  const std::uint32_t from = find_marked(*module, mark), to = find_named(*library, name);
  if (from == 0) return invalid_argument("the module has no function that gives way");
  if (to == 0) {
    return invalid_argument(concat("the module has no function ", name, "()"));
  }
  return Linker(*module, *library, name).link(from, to);
}

}  // namespace vkgemm
