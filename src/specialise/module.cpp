#include "specialise/module.hpp"

#include "base/errors.hpp"
#include "base/text.hpp"

namespace vkgemm::spirv {

namespace {

constexpr std::size_t header_words = 5;
constexpr std::size_t bound_word = 3;
constexpr std::uint32_t most_ids = 1U << 20;  // limits the tables by id

Error malformed(std::size_t word, std::string_view why) {
  return invalid_argument(concat("SPIR-V, word ", word, ": ", why));
}

}  // namespace

std::uint64_t read_literal(std::span<const std::uint32_t> words, std::uint32_t width) noexcept {
  const std::uint64_t low = words.empty() ? 0 : words[0];
  const std::uint64_t high = width > 32 && words.size() > 1 ? words[1] : 0;
  return (high << 32 | low) & mask_of(width);
}

std::string_view read_text(std::span<const std::uint32_t> words) noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(words.data()), words.size_bytes());
  return bytes.substr(0, bytes.find('\0'));
}

void append(std::vector<std::uint32_t>& words, spv::Op op,
            std::span<const std::uint32_t> operands) {
  words.push_back(static_cast<std::uint32_t>((operands.size() + 1) << spv::WordCountShift) |
                  static_cast<std::uint32_t>(op));
  words.insert(words.end(), operands.begin(), operands.end());
}
void append(std::vector<std::uint32_t>& words, spv::Op op,
            std::initializer_list<std::uint32_t> operands) {
  append(words, op, std::span(operands.begin(), operands.size()));
}

bool is_debug(spv::Op op) noexcept {
  switch (op) {
    case spv::Op::OpNop:
    case spv::Op::OpSource:
    case spv::Op::OpSourceContinued:
    case spv::Op::OpSourceExtension:
    case spv::Op::OpName:
    case spv::Op::OpMemberName:
    case spv::Op::OpString:
    case spv::Op::OpModuleProcessed:
    case spv::Op::OpLine:
    case spv::Op::OpNoLine:
      return true;
    default:
      return false;
  }
}

Result<Module> Module::parse(std::span<const std::uint32_t> words) {
  if (words.size() < header_words || words[0] != spv::MagicNumber) {
    return malformed(0, "there is no header");
  }
  Module module;
  module.header_ = words.first(header_words);
  if (words[bound_word] > most_ids) return malformed(bound_word, "the bound is too large");
  module.definitions_.resize(words[bound_word]);

  bool in_functions = false;
  for (std::size_t at = header_words; at < words.size();) {
    const std::size_t count = words[at] >> spv::WordCountShift;
    if (count == 0 || count > words.size() - at) return malformed(at, "the word count is wrong");
    Instruction instruction;
    instruction.op = static_cast<spv::Op>(words[at] & spv::OpCodeMask);
    instruction.words = words.subspan(at, count);
    bool has_result = false;
    bool has_type = false;
    spv::HasResultAndType(instruction.op, &has_result, &has_type);
    const std::size_t leading = 1U + (has_type ? 1U : 0U) + (has_result ? 1U : 0U);
    if (count < leading) return malformed(at, "the instruction is too short");
    if (has_type) instruction.type = words[at + 1];
    instruction.operands = instruction.words.subspan(leading);
    if (has_result) {
      instruction.result = instruction.words[leading - 1];
      if (instruction.result == 0 || instruction.result >= module.definitions_.size() ||
          module.definitions_[instruction.result] != 0) {
        return malformed(at, "the result id is out of range or defined twice");
      }
      module.definitions_[instruction.result] =
          static_cast<std::uint32_t>(module.instructions_.size() + 1);
    }
    if (instruction.op == spv::Op::OpFunction && !in_functions) {
      in_functions = true;
      module.first_function_ = module.instructions_.size();
    }
    if (instruction.op == spv::Op::OpExtInstImport &&
        read_text(instruction.operands) == "GLSL.std.450") {
      module.glsl_set_ = instruction.result;
    }
    module.instructions_.push_back(instruction);
    at += count;
  }
  if (!in_functions) module.first_function_ = module.instructions_.size();
  return module;
}

const Instruction* Module::definition(std::uint32_t id) const noexcept {
  if (id >= definitions_.size() || definitions_[id] == 0) return nullptr;
  return &instructions_[definitions_[id] - 1];
}

ScalarType Module::scalar_type(std::uint32_t type) const noexcept {
  const Instruction* const found = definition(type);
  if (found == nullptr) return {};
  const std::uint32_t width = found->operand(0);
  const bool has_known_width = width == 8 || width == 16 || width == 32 || width == 64;
  switch (found->op) {
    case spv::Op::OpTypeBool:
      return {.width = 1};
    case spv::Op::OpTypeInt:
      return has_known_width ? ScalarType{.width = width, .is_signed = found->operand(1) != 0}
                             : ScalarType{};
    case spv::Op::OpTypeFloat:
      return has_known_width ? ScalarType{.width = width, .is_float = true} : ScalarType{};
    default:
      return {};
  }
}

ScalarType Module::scalar_type_of(std::uint32_t id) const noexcept {
  const Instruction* const found = definition(id);
  return found != nullptr ? scalar_type(found->type) : ScalarType{};
}

}  // namespace vkgemm::spirv
