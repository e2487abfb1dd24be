// flow.hpp: the control flow of a function, and the part of it that known branches reach.
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

// The terminator that a block gets.
enum class End : std::uint8_t {
  unchanged,
  branch,  // OpBranch along the only edge that is taken
  // OpSwitch with a default alone: the construct stays, because blocks inside branch to its merge
  // block.
  switch_default,
};

struct Block {
  std::uint32_t label = 0;
  std::span<const Instruction> body;   // without label, merge instruction and terminator
  const Instruction* merge = nullptr;  // OpSelectionMerge or OpLoopMerge
  const Instruction* terminator = nullptr;
  std::vector<Edge> successors;  // distinct
  std::vector<BlockIndex> predecessors;
  BlockIndex merge_block = no_block;     // of the construct that this block heads
  BlockIndex continue_block = no_block;  // of the loop that this block heads

  // True if the edge to block `to` is taken.
  bool takes(BlockIndex to) const noexcept;

  bool is_reached = false;
  End end = End::unchanged;
  bool keeps_merge = true;
  // The block is not reached, but a merge instruction names it. Its body becomes OpUnreachable, or,
  // for a continue target, a branch to the loop's header.
  bool is_placeholder = false;
  BlockIndex branches_back_to = no_block;
};

struct Function {
  std::span<const Instruction> head;  // OpFunction and its parameters
  std::vector<Block> blocks;
};

// Reads the function whose OpFunction has index `begin`. Errors: invalid_argument.
Result<Function> read_function(const Module& module, std::size_t begin);

// Propagates known values, and marks the blocks and edges that execution may reach.
void propagate(Function& function, Values& values);

// Chooses the terminators of reached blocks so that control flow stays structured. Errors:
// invalid_argument, unsupported.
Result<void> restructure(Function& function);

// True if the edge from the block with label `from_label` to block `to` is taken.
bool is_taken(const Function& function, std::uint32_t from_label, BlockIndex to) noexcept;

}  // namespace vkgemm::spirv
