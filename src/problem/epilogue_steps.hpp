// epilogue_steps.hpp: the steps of an epilogue and their tensors. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/errors.hpp"
#include "problem/operand_shape.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

inline constexpr std::array<Matrix Problem::*, most_tensors> tensor_matrices{
    &Problem::t0, &Problem::t1, &Problem::t2, &Problem::t3};
inline constexpr std::array<std::string_view, most_tensors> tensor_names{"t0", "t1", "t2", "t3"};

// The steps before the first that is none.
std::span<const EpilogueStep> steps_of(const Epilogue& epilogue) noexcept;

// The number of the tensor that is a step's operand; nothing: it is a number, or has none.
std::optional<std::size_t> tensor_of(const EpilogueStep& step) noexcept;

inline bool has_tensor(const Epilogue& epilogue, std::size_t tensor) noexcept {
  return epilogue.tensors[tensor] != TensorShape::none;
}
// True if a step stores to the tensor, or writes sums of columns to it. No other step names it
// then.
bool is_stored(const Epilogue& epilogue, std::size_t tensor) noexcept;
bool is_summed(const Epilogue& epilogue, std::size_t tensor) noexcept;
inline bool is_written(const Epilogue& epilogue, std::size_t tensor) noexcept {
  return is_stored(epilogue, tensor) || is_summed(epilogue, tensor);
}
// The tensor of the step that sums columns, if there is one.
std::optional<std::size_t> summed_tensor(const Epilogue& epilogue) noexcept;
inline bool sums_columns(const Epilogue& epilogue) noexcept {
  return summed_tensor(epilogue).has_value();
}

// The first step or tensor that contradicts itself or another one.
MaybeError check_steps(const Problem& problem);

// The matrices of a tensor. The whole batch shares a vector or scalar that steps read unless the
// caller sets a batch_stride. Groups of rows share a vector along M, whose rows are theirs.
OperandShape tensor_shape(const Problem& problem, std::size_t tensor) noexcept;

}  // namespace vkgemm
