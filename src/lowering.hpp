// lowering.hpp: what the lowering of products and that of row reductions share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel.hpp"

namespace vkgemm {

inline std::uint64_t divided_up(std::uint64_t value, std::uint64_t divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}

inline std::uint32_t narrow(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

std::uint32_t type_constant(DataType type);

// Whether an epilogue may access C, D or aux in pieces of four neighbours of a row.
inline bool allows_epilogue_vectors(const ResolvedMatrix& matrix) {
  return matrix.layout == Layout::row_major &&
         matrix.allows_vectors(4 * size_in_bytes(matrix.type));
}

class Constants {
 public:
  explicit Constants(PipelineKey& key) : values_(key.constants) {}
  void set(std::size_t id, std::uint32_t value) { values_[id] = value; }
  void set(std::size_t id, std::uint64_t value) { values_[id] = narrow(value); }
  void set(std::size_t id, bool value) { values_[id] = value ? 1 : 0; }
  // A size that the path has no use for is 1: shared code may divide by it.
  void set_size(std::size_t id, std::uint32_t value) { values_[id] = std::max(value, 1u); }

 private:
  std::array<std::uint32_t, SPEC_COUNT>& values_;
};

// Sets the words that workgroups share to zero, and states of rows to what says that nobody told.
Step reset_step(std::uint64_t words, std::uint64_t state_bytes, const Limits& limits);

// The kernel of the product alone, as if there were no row reduction.
Kernel lower_product(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps);

Kernel lower_rows(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps);

}  // namespace vkgemm
