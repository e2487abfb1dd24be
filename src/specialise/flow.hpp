// flow.hpp: the blocks of a function, and which of them known branches leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "specialise/module.hpp"
#include "specialise/values.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm::spirv {

using BlockIndex = std::uint32_t;
constexpr BlockIndex no_block = ~BlockIndex{0};

struct Edge {
  BlockIndex to = no_block;
  bool is_taken = false;
};

// What a block ends with.
enum class End : std::uint8_t {
  as_it_was,
  branch,          // to the only edge that is taken
  switch_default,  // the same, of a construct that blocks inside leave by branches to its merge
                   // block
};

struct Block {
  std::uint32_t label = 0;
  std::span<const Instruction> body;   // between the label and merge instruction or terminator
  const Instruction* merge = nullptr;  // OpSelectionMerge or OpLoopMerge
  const Instruction* terminator = nullptr;
  std::vector<Edge> successors;  // distinct
  std::vector<BlockIndex> predecessors;
  BlockIndex merge_block = no_block;     // of the construct that this block heads
  BlockIndex continue_block = no_block;  // of the loop that this block heads

  bool takes(BlockIndex to) const noexcept;  // the edge there

  bool is_reached = false;
  End end = End::as_it_was;
  bool keeps_merge = true;
  // A merge instruction that stays names this block, which is not reached.
  bool is_placeholder = false;
  BlockIndex branches_back_to =
      no_block;  // of a placeholder of a continue target: the loop's header
};

struct Function {
  std::span<const Instruction> head;  // OpFunction and its parameters
  std::vector<Block> blocks;
};

// The function whose OpFunction is `begin`. Errors: invalid_argument.
Result<Function> read_function(const Module& module, std::size_t begin);

// Finds the values of a function's instructions, and the blocks and edges that they leave.
void propagate(Function& function, Values& values);

// Decides how reached blocks end, so that constructs stay structured. Errors: unsupported.
Result<void> restructure(Function& function);

// Is the edge from the block with label `from` to block `to` taken?
bool is_taken(const Function& function, std::uint32_t from_label, BlockIndex to) noexcept;

}  // namespace vkgemm::spirv
