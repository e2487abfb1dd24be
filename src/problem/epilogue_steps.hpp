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
// True if each element of D has its own in a tensor of this shape.
inline bool has_elements(TensorShape shape) noexcept {
  return shape == TensorShape::matrix || shape == TensorShape::mask;
}

// True if a step of this operation has the tensor.
bool has_step(const Epilogue& epilogue, StepOp op, std::size_t tensor) noexcept;
inline bool is_stored(const Epilogue& epilogue, std::size_t tensor) noexcept {
  return has_step(epilogue, StepOp::store, tensor);
}
inline bool is_summed(const Epilogue& epilogue, std::size_t tensor) noexcept {
  return has_step(epilogue, StepOp::sum_columns, tensor);
}

// The operation of the step that writes to the tensor; none: steps read it. No other step names a
// tensor that a step writes to.
StepOp writer_of(const Epilogue& epilogue, std::size_t tensor) noexcept;
inline bool is_written(const Epilogue& epilogue, std::size_t tensor) noexcept {
  return writer_of(epilogue, tensor) != StepOp::none;
}
// "sums columns to "
std::string_view writes(StepOp op) noexcept;

// The tensor of the step that sums columns, and of the step that finds the largest magnitude, if
// there is one.
std::optional<std::size_t> summed_tensor(const Epilogue& epilogue) noexcept;
std::optional<std::size_t> amax_tensor(const Epilogue& epilogue) noexcept;
inline bool sums_columns(const Epilogue& epilogue) noexcept {
  return summed_tensor(epilogue).has_value();
}

// True if a step calls Epilogue::function.
bool calls_function(const Epilogue& epilogue) noexcept;

// The first tensor that is a mask.
std::optional<std::size_t> mask_tensor(const Epilogue& epilogue) noexcept;

// The first step or tensor that contradicts itself or another one.
MaybeError check_steps(const Problem& problem);

// The type of a tensor if the caller sets none: u8 for a mask, f32 for sums and amax, otherwise
// `otherwise`.
DataType usual_type(const Epilogue& epilogue, std::size_t tensor, DataType otherwise) noexcept;

// The matrices of a tensor. The whole batch shares a vector or scalar that steps read unless the
// caller sets a batch_stride. Groups of rows share a vector along M, whose rows are theirs.
OperandShape tensor_shape(const Problem& problem, std::size_t tensor) noexcept;

}  // namespace vkgemm
