#include <algorithm>
#include <utility>

#include "base/errors.hpp"
#include "base/text.hpp"
#include "specialise/flow.hpp"

namespace vkgemm::spirv {

namespace {

// Finds the innermost construct of each block, and decides which constructs stay. A construct is
// known by its header.
class Structure {
 public:
  explicit Structure(Function& function)
      : blocks_(function.blocks),
        order_(blocks_.size(), no_block),
        dominator_(blocks_.size(), no_block),
        construct_(blocks_.size(), no_block),
        merged_by_(blocks_.size(), no_block),
        continued_by_(blocks_.size(), no_block) {}

  Result<void> run() {
    if (const Result<void> ended = end_known_branches(); !ended) return ended.error();
    sort();
    find_dominators();
    find_constructs();
    // Inner constructs are decided first, because branches inside a construct that is dropped count
    // as branches of the outer one.
    for (std::size_t i = sorted_.size(); i-- != 0;) {
      const BlockIndex block = sorted_[i];
      if (blocks_[block].merge == nullptr) continue;
      const Result<void> decided = decide(block);
      if (!decided) return decided.error();
    }
    return {};
  }

 private:
  bool has_choice(const Block& block) const {
    return std::ranges::count_if(block.successors, &Edge::is_taken) > 1;
  }

  Result<void> end_known_branches() {
    for (Block& block : blocks_) {
      const bool is_choice = block.terminator->op == spv::Op::OpBranchConditional ||
                             block.terminator->op == spv::Op::OpSwitch;
      if (!block.is_reached || !is_choice || has_choice(block)) continue;
      if (std::ranges::none_of(block.successors, &Edge::is_taken)) {
        return invalid_argument(concat("SPIR-V, block ", block.label,
                                       ": it branches on a value that no block before computes"));
      }
      block.end = End::branch;
    }
    return {};
  }

  // Sorts reached blocks in reverse postorder.
  void sort() {
    struct Visit {
      BlockIndex block;
      std::size_t next;
    };
    std::vector<bool> seen(blocks_.size());
    std::vector<Visit> path{{0, 0}};
    seen[0] = true;
    while (!path.empty()) {
      const BlockIndex block = path.back().block;
      const std::vector<Edge>& successors = blocks_[block].successors;
      if (path.back().next == successors.size()) {
        sorted_.push_back(block);
        path.pop_back();
        continue;
      }
      const Edge edge = successors[path.back().next++];
      if (!edge.is_taken || seen[edge.to]) continue;
      seen[edge.to] = true;
      path.push_back({edge.to, 0});
    }
    std::ranges::reverse(sorted_);
    for (BlockIndex i = 0; i < sorted_.size(); ++i) order_[sorted_[i]] = i;
  }

  template <class Visitor>
  void for_each_taken_predecessor(BlockIndex block, Visitor&& visit) const {
    for (const BlockIndex from : blocks_[block].predecessors) {
      if (blocks_[from].is_reached && blocks_[from].takes(block)) visit(from);
    }
  }

  // K. Cooper, T. Harvey, K. Kennedy, A Simple, Fast Dominance Algorithm, 2001.
  void find_dominators() {
    dominator_[0] = 0;
    for (bool changed = true; std::exchange(changed, false);) {
      for (const BlockIndex block : sorted_) {
        if (block == 0) continue;
        BlockIndex found = no_block;
        for_each_taken_predecessor(block, [&](BlockIndex from) {
          if (dominator_[from] == no_block) return;
          found = found == no_block ? from : common_dominator(found, from);
        });
        changed = changed || dominator_[block] != found;
        dominator_[block] = found;
      }
    }
  }

  BlockIndex common_dominator(BlockIndex a, BlockIndex b) const {
    while (a != b) {
      while (order_[a] > order_[b]) a = dominator_[a];
      while (order_[b] > order_[a]) b = dominator_[b];
    }
    return a;
  }

  bool dominates(BlockIndex a, BlockIndex b) const {
    while (order_[b] > order_[a]) b = dominator_[b];
    return a == b;
  }

  void find_constructs() {
    for (BlockIndex i = 0; i < blocks_.size(); ++i) {
      if (!blocks_[i].is_reached || blocks_[i].merge == nullptr) continue;
      merged_by_[blocks_[i].merge_block] = i;
      if (blocks_[i].continue_block != no_block) continued_by_[blocks_[i].continue_block] = i;
    }
    for (const BlockIndex block : sorted_) {
      if (block == 0) continue;
      const BlockIndex merged = merged_by_[block];
      const BlockIndex continued = continued_by_[block];
      const BlockIndex above = dominator_[block];
      if (merged != no_block && order_[merged] < order_[block]) {
        construct_[block] = construct_[merged];
      } else if (continued != no_block && order_[continued] < order_[block]) {
        construct_[block] = continued;
      } else {
        construct_[block] = blocks_[above].merge != nullptr ? above : construct_[above];
      }
    }
  }

  // True if every branch to `target` is in the construct of `header` itself, not in a nested one.
  bool is_reached_directly(BlockIndex target, BlockIndex header) const {
    bool directly = true;
    for_each_taken_predecessor(target, [&](BlockIndex from) {
      if (from == header) return;
      const bool heads = blocks_[from].merge != nullptr && blocks_[from].keeps_merge;
      BlockIndex construct = heads ? from : construct_[from];
      while (construct != no_block && construct != header && !blocks_[construct].keeps_merge) {
        construct = construct_[construct];
      }
      directly = directly && construct == header && !has_choice(blocks_[from]);
    });
    return directly;
  }

  Result<void> decide(BlockIndex header) {
    Block& block = blocks_[header];
    return block.merge->op == spv::Op::OpLoopMerge ? decide_loop(block, header)
                                                   : decide_selection(block, header);
  }

  Result<void> decide_selection(Block& block, BlockIndex header) {
    if (has_choice(block)) {
      keep_merge_block(block);
    } else if (is_reached_directly(block.merge_block, header)) {
      block.keeps_merge = false;
    } else if (block.terminator->op == spv::Op::OpSwitch) {
      block.end = End::switch_default;
      keep_merge_block(block);
    } else {
      return unsupported(
          concat("SPIR-V, block ", block.label,
                 ": nested constructs branch to the merge block of a branch on a constant"));
    }
    return {};
  }

  Result<void> decide_loop(Block& block, BlockIndex header) {
    bool is_repeated = false;
    for_each_taken_predecessor(
        header, [&](BlockIndex from) { is_repeated = is_repeated || dominates(header, from); });
    if (!is_repeated && !has_choice(block) && is_reached_directly(block.merge_block, header) &&
        is_reached_directly(block.continue_block, header)) {
      block.keeps_merge = false;
      return {};
    }
    keep_merge_block(block);
    if (is_repeated) return {};
    Block& target = blocks_[block.continue_block];
    if (!target.is_reached) {
      target.is_placeholder = true;
      target.branches_back_to = header;
      return {};
    }
    return repeat(block, header);
  }

  // Keeps the branch back, on a constant, of a loop that ends in its first iteration: structured
  // control flow requires one.
  Result<void> repeat(Block& block, BlockIndex header) {
    for (const BlockIndex from : block.predecessors) {
      Block& latch = blocks_[from];
      if (!latch.is_reached || !dominates(header, from)) continue;
      latch.end = End::unchanged;
      for (Edge& edge : latch.successors) {
        edge.is_taken = edge.is_taken || edge.to == header;
      }
      if (std::ranges::all_of(latch.successors, &Edge::is_taken)) return {};
    }
    return unsupported(concat("SPIR-V, block ", block.label,
                              ": its loop ends in the first iteration and has no branch back"));
  }

  void keep_merge_block(Block& block) {
    Block& merge = blocks_[block.merge_block];
    if (!merge.is_reached) merge.is_placeholder = true;
  }

  std::vector<Block>& blocks_;
  std::vector<BlockIndex> sorted_;
  std::vector<BlockIndex> order_;         // by block: its index in sorted_
  std::vector<BlockIndex> dominator_;     // by block: the immediate dominator
  std::vector<BlockIndex> construct_;     // by block: the header of the innermost construct
  std::vector<BlockIndex> merged_by_;     // by block: the header whose merge block it is
  std::vector<BlockIndex> continued_by_;  // by block: the header whose continue target it is
};

}  // namespace

Result<void> restructure(Function& function) { return Structure(function).run(); }

}  // namespace vkgemm::spirv
