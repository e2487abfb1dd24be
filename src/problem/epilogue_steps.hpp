// epilogue_steps.hpp: the steps of an epilogue: which there are, their tensors, and where kernels find
// these. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/errors.hpp"
#include "problem/addresses.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm {

struct ResolvedProblem;

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

// The parameters of C, aux, bias or of nothing else: where kernels find a tensor (SLOT_*). Each
// tensor has the first that neither the problem nor an earlier tensor uses.
std::array<std::uint32_t, most_tensors> slots_of(const ResolvedProblem& problem) noexcept;
std::uint64_t Addresses::*address_of_slot(std::uint32_t slot) noexcept;

}  // namespace vkgemm
