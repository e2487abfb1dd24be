// addresses.hpp: the addresses of one recording, and which parameter block takes which. Pure.
#pragma once

#include <cstdint>
#include <variant>

#include "lib/abi.h"

namespace vkgemm {

// Device addresses of operands and of parts of the workspace; in RowChunks, distances of the same.
struct Addresses {
  std::uint64_t a = 0;  // of the problem as it is solved, which may be the caller's transposed
  std::uint64_t b = 0;
  std::uint64_t b_right = 0;  // from b to the right half of B, if that is an operand of its own
  std::uint64_t c = 0;
  std::uint64_t d = 0;
  std::uint64_t bias = 0;
  std::uint64_t aux = 0;
  std::uint64_t offsets = 0;
  std::uint64_t gamma = 0;
  std::uint64_t shift = 0;
  std::uint64_t row_values = 0;
  std::uint64_t workspace = 0;  // the operand
  std::uint64_t partial = 0;    // its parts: WorkspaceLayout
  std::uint64_t control = 0;
  std::uint64_t row_states = 0;
  std::uint64_t values = 0;
  std::uint64_t source = 0;  // of a copy: what it reads and what it writes
  std::uint64_t copy = 0;
  std::uint64_t aborts = 0;  // the context's
};

// The parameters of any kernel.
using Parameters = std::variant<gpu::GemmParams, gpu::PackParams, gpu::ResetParams,
                                gpu::ReduceRowsParams, gpu::MergeParams>;

inline void bind(gpu::GemmParams& params, const Addresses& at) noexcept {
  params.a = at.a;
  params.b = at.b;
  params.b_right += at.b_right;  // 0 if both halves are of one operand, else the block's is
  params.c = at.c;
  params.d = at.d;
  params.bias = at.bias;
  params.aux = at.aux;
  params.workspace = at.partial;
  params.control = at.control;
  params.aborts = at.aborts;
  params.offsets = at.offsets;
  params.gamma = at.gamma;
  params.shift = at.shift;
  params.row_values = at.row_values;
  params.row_states = at.row_states;
}

inline void bind(gpu::PackParams& params, const Addresses& at) noexcept {
  params.source = at.source;
  params.copy = at.copy;
}

inline void bind(gpu::ResetParams& params, const Addresses& at) noexcept {
  params.control = at.control;
  params.row_states = at.row_states;
  params.aborts = at.aborts;
}

inline void bind(gpu::ReduceRowsParams& params, const Addresses& at) noexcept {
  params.values = at.values;
  params.d = at.d;
  params.gamma = at.gamma;
  params.shift = at.shift;
  params.row_values = at.row_values;
}

inline void bind(gpu::MergeParams& params, const Addresses& at) noexcept {
  params.row_values = at.row_values;
  params.row_states = at.row_states;
}

}  // namespace vkgemm
