#include "specialise/flow.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/errors.hpp"
#include "base/text.hpp"

namespace vkgemm::spirv {

namespace {

bool is_terminator(spv::Op op) noexcept {
  switch (op) {
    case spv::Op::OpBranch:
    case spv::Op::OpBranchConditional:
    case spv::Op::OpSwitch:
    case spv::Op::OpReturn:
    case spv::Op::OpReturnValue:
    case spv::Op::OpKill:
    case spv::Op::OpTerminateInvocation:
    case spv::Op::OpUnreachable:
      return true;
    default:
      return false;
  }
}

bool is_merge(spv::Op op) noexcept {
  return op == spv::Op::OpSelectionMerge || op == spv::Op::OpLoopMerge;
}

// The width of an OpSwitch's selector and literals, in bits.
std::uint32_t selector_width(const Module& module, const Instruction& terminator) noexcept {
  return module.scalar_type_of(terminator.operand(0)).width;
}
std::size_t literal_words(std::uint32_t width) noexcept { return width > 32 ? 2 : 1; }

// The labels that a terminator names; some may repeat.
std::vector<std::uint32_t> targets(const Module& module, const Instruction& terminator) {
  std::vector<std::uint32_t> labels;
  switch (terminator.op) {
    case spv::Op::OpBranch:
      labels = {terminator.operand(0)};
      break;
    case spv::Op::OpBranchConditional:
      labels = {terminator.operand(1), terminator.operand(2)};
      break;
    case spv::Op::OpSwitch: {
      labels = {terminator.operand(1)};
      const std::size_t words = literal_words(selector_width(module, terminator));
      for (std::size_t at = 2; at < terminator.operands.size(); at += words + 1) {
        labels.push_back(terminator.operand(at + words));
      }
      break;
    }
    default:
      break;
  }
  return labels;
}

using Labels = std::unordered_map<std::uint32_t, BlockIndex>;

Error malformed(const Block& block, std::string_view why) {
  return invalid_argument(concat("SPIR-V, block ", block.label, ": ", why));
}

// Finds the edges of a block, its merge block and its continue target.
Result<void> connect(const Module& module, Function& function, const Labels& labels,
                     BlockIndex index) {
  Block& block = function.blocks[index];
  const auto find = [&labels](std::uint32_t label) {
    const auto found = labels.find(label);
    return found != labels.end() ? found->second : no_block;
  };
  for (const std::uint32_t label : targets(module, *block.terminator)) {
    const BlockIndex to = find(label);
    if (to == no_block) return malformed(block, "it branches to no block of its function");
    const bool is_known =
        std::ranges::any_of(block.successors, [to](const Edge& edge) { return edge.to == to; });
    if (is_known) continue;
    block.successors.push_back({.to = to});
    function.blocks[to].predecessors.push_back(index);
  }
  if (block.merge == nullptr) return {};
  block.merge_block = find(block.merge->operand(0));
  if (block.merge->op == spv::Op::OpLoopMerge) {
    block.continue_block = find(block.merge->operand(1));
    if (block.continue_block == no_block)
      return malformed(block, "its continue target is no block");
  }
  if (block.merge_block == no_block) return malformed(block, "its merge block is no block");
  return {};
}

// Returns the label that a branch on a known value takes, or 0 if the value is not known.
std::uint32_t known_target(const Values& values, const Instruction& terminator) {
  if (terminator.op != spv::Op::OpBranchConditional && terminator.op != spv::Op::OpSwitch) return 0;
  const auto value = values.scalar(terminator.operand(0));
  if (!value) return 0;
  if (terminator.op == spv::Op::OpBranchConditional) return terminator.operand(*value != 0 ? 1 : 2);
  const std::uint32_t width = selector_width(values.module(), terminator);
  const std::size_t words = literal_words(width);
  for (std::size_t at = 2; at + words < terminator.operands.size(); at += words + 1) {
    if (read_literal(terminator.operands.subspan(at), width) == *value) {
      return terminator.operands[at + words];
    }
  }
  return terminator.operand(1);
}

class Propagation {
 public:
  Propagation(Function& function, Values& values) : function_(function), values_(values) {}

  // Terminates because values only descend and blocks only become reached.
  void run() {
    function_.blocks.front().is_reached = true;
    do {
      changed_ = false;
      for (BlockIndex i = 0; i < function_.blocks.size(); ++i) {
        if (function_.blocks[i].is_reached) visit(i);
      }
    } while (changed_);
  }

 private:
  void visit(BlockIndex index) {
    Block& block = function_.blocks[index];
    for (const Instruction& instruction : block.body) {
      if (instruction.result == 0) continue;
      const Value value = instruction.op == spv::Op::OpPhi ? phi(instruction, index)
                                                           : values_.evaluate(instruction);
      if (values_.meet(instruction.result, value)) changed_ = true;
    }
    take_edges(block);
  }

  Value phi(const Instruction& instruction, BlockIndex index) const {
    Value value{.state = Value::State::unseen};
    for (std::size_t i = 0; i + 1 < instruction.operands.size(); i += 2) {
      if (is_taken(function_, instruction.operands[i + 1], index)) {
        value = Values::met(value, values_.of(instruction.operands[i]));
      }
    }
    return value;
  }

  void take_edges(Block& block) {
    const Instruction& terminator = *block.terminator;
    const bool is_choice = block.successors.size() > 1;
    if (is_choice && values_.of(terminator.operand(0)).state == Value::State::unseen) return;
    const std::uint32_t only = is_choice ? known_target(values_, terminator) : 0;
    for (Edge& edge : block.successors) {
      Block& to = function_.blocks[edge.to];
      if (edge.is_taken || (only != 0 && to.label != only)) continue;
      edge.is_taken = to.is_reached = changed_ = true;
    }
  }

  Function& function_;
  Values& values_;
  bool changed_ = false;
};

}  // namespace

Result<Function> read_function(const Module& module, std::size_t begin) {
  const auto all = module.instructions();
  std::size_t end = begin;
  while (end < all.size() && all[end].op != spv::Op::OpFunctionEnd) ++end;
  if (end == all.size()) return invalid_argument("SPIR-V: a function has no end");

  Function function;
  std::size_t at = begin + 1;
  while (at < end && all[at].op == spv::Op::OpFunctionParameter) ++at;
  function.head = all.subspan(begin, at - begin);
  Labels labels;
  while (at < end) {
    if (all[at].op != spv::Op::OpLabel) return invalid_argument("SPIR-V: a block has no label");
    Block block{.label = all[at].result};
    const std::size_t first = ++at;
    while (at < end && !is_terminator(all[at].op) && all[at].op != spv::Op::OpLabel) ++at;
    if (at == end || !is_terminator(all[at].op)) return malformed(block, "it has no terminator");
    block.terminator = &all[at];
    std::size_t last = at;
    if (last > first && is_merge(all[last - 1].op)) block.merge = &all[--last];
    block.body = all.subspan(first, last - first);
    labels[block.label] = static_cast<BlockIndex>(function.blocks.size());
    function.blocks.push_back(std::move(block));
    ++at;
  }
  if (function.blocks.empty()) return invalid_argument("SPIR-V: a function has no blocks");
  for (BlockIndex i = 0; i < function.blocks.size(); ++i) {
    const Result<void> connected = connect(module, function, labels, i);
    if (!connected) return connected.error();
  }
  return function;
}

bool Block::takes(BlockIndex to) const noexcept {
  return std::ranges::any_of(successors,
                             [to](const Edge& edge) { return edge.to == to && edge.is_taken; });
}

void propagate(Function& function, Values& values) { Propagation(function, values).run(); }

bool is_taken(const Function& function, std::uint32_t from_label, BlockIndex to) noexcept {
  const std::vector<Block>& blocks = function.blocks;
  for (const BlockIndex from : blocks[to].predecessors) {
    if (blocks[from].label == from_label) return blocks[from].takes(to);
  }
  return false;
}

}  // namespace vkgemm::spirv
