// epilogue_steps.hpp: the steps of an epilogue and their tensors. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/errors.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

inline constexpr std::array<Matrix Problem::*, most_tensors> tensor_matrices{
    &Problem::t0, &Problem::t1, &Problem::t2, &Problem::t3};

// Those before the first that is none.
std::span<const EpilogueStep> steps_of(const Epilogue& epilogue) noexcept;

// The number of the tensor that is a step's operand; nothing: it is a number, or has none.
std::optional<std::size_t> tensor_of(const EpilogueStep& step) noexcept;

inline bool has_tensor(const Epilogue& epilogue, std::size_t tensor) noexcept {
  return epilogue.tensors[tensor] != TensorShape::none;
}
// True if a step writes the tensor, which no step then reads.
bool is_stored(const Epilogue& epilogue, std::size_t tensor) noexcept;

// The first step or tensor that contradicts itself or another one.
MaybeError check_steps(const Problem& problem);

// A tensor that exists, as matrices: a vector has one row or one column, and the whole batch shares
// it unless the caller says otherwise. Groups of rows share a vector along M, whose rows are
// theirs.
struct TensorMatrices {
  Matrix matrix;
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t count = 0;
};
TensorMatrices tensor_matrices_of(const Problem& problem, std::size_t tensor) noexcept;

}  // namespace vkgemm
