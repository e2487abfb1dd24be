// dispatch_plan.hpp: what is recorded: pipelines, their parameters and grids, in order. Pure data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "kernels/computed_problem.hpp"
#include "kernels/tiling.hpp"
#include "lib/abi.h"
#include "problem/addresses.hpp"

namespace vkgemm {

// A pipeline: a shader module and the value of every specialization constant, by id.
struct PipelineKey {
  std::string_view module;  // the name of an embedded module: static, zero-terminated
  std::array<std::uint32_t, SPEC_COUNT> constants{};
  std::uint32_t required_subgroup_size = 0;  // 0: any

  bool operator==(const PipelineKey&) const = default;
};

struct PipelineKeyHash {
  std::size_t operator()(const PipelineKey& key) const noexcept;
};

// Parts of the workspace begin at multiples of so many bytes, and so does what follows it.
constexpr std::uint64_t workspace_unit = 256;

// A part of the workspace: the address that kernels have of it, and where it begins, in bytes.
struct WorkspacePart {
  std::uint64_t Addresses::*address = nullptr;
  std::uint64_t offset = 0;
};

// The workspace of a computed problem. Makes no memory: it is part of every plan.
class WorkspaceLayout {
 public:
  // Adds a part, which may have no bytes.
  void add(std::uint64_t Addresses::*address, std::uint64_t part_bytes) noexcept {
    const std::uint64_t offset = rounded_up(bytes, workspace_unit);
    parts_[count_++] = {address, offset};
    bytes = offset + rounded_up(part_bytes, workspace_unit);
  }
  const WorkspacePart* begin() const noexcept { return parts_.data(); }
  const WorkspacePart* end() const noexcept { return parts_.data() + count_; }

  std::uint64_t bytes = 0;  // of it all

 private:
  // An address is that of one part at most.
  std::array<WorkspacePart, sizeof(Addresses) / sizeof(std::uint64_t)> parts_{};
  std::size_t count_ = 0;
};

// One pipeline, dispatched once or, if the grid is large, in chunks.
struct Step {
  PipelineKey key;
  gpu::Parameters params;  // all but addresses, first_tile and first_batch
  std::vector<Dispatch> dispatches;

  // The same for a part of the problem that has fewer rows, or matrices, than the others
  // (RowChunks).
  std::vector<Dispatch> last_dispatches = {};
  bool alone = false;          // of `before`: all that follow wait for it
  bool once = false;           // not for each chunk: before the first one, or after the last one
  bool writes_values = false;  // between the passes of a row reduction, instead of D
  bool in_memory = false;      // its parameters: carried to the workspace first

  // A copy (pack.hpp): the operand that it reads. The product finds that in the workspace instead.
  std::uint64_t Addresses::*copied = nullptr;

  // The parameters, known to be such.
  template <class Block>
  Block& block() noexcept {
    return *std::get_if<Block>(&params);
  }
  template <class Block>
  const Block& block() const noexcept {
    return *std::get_if<Block>(&params);
  }

  // The parameters that all steps have which know A and B, or partial results.
  const gpu::GemmParams& gemm() const {
    const auto product = [](const auto& block) -> const gpu::GemmParams* {
      using Head = std::remove_reference_t<decltype(head_of(block))>;
      if constexpr (std::is_same_v<Head, const gpu::GemmParams>) return &head_of(block);
      return nullptr;
    };
    return *std::visit(product, params);
  }
};

// All that computes a problem with a configuration.
struct DispatchPlan {
  std::vector<Step> before;  // beside each other, but for one alone; then a barrier
  Step product;
  std::vector<Step> after;  // each behind a barrier
  bool values_in_d = false;
  bool line_scales = false;         // A and B begin with scales of their lines, for the product
  std::optional<RowChunks> chunks;  // product and after once for each, with barriers between
  WorkspaceLayout workspace;
  std::uint64_t shared_memory_bytes = 0;
};

}  // namespace vkgemm
