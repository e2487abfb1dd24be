// tensor_places.hpp: where kernels find the tensors of an epilogue's steps. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "problem/addresses.hpp"
#include "problem/resolved_problem.hpp"

namespace vkgemm {

// The tensor that kernels load ahead, as they load C, if there is no C: the first matrix or
// mask that a step reads.
std::optional<std::size_t> tensor_in_place_of_c(const ResolvedProblem& problem) noexcept;

// The parameters of C, aux, bias or of nothing else: where kernels find a tensor (PLACE_*). The
// tensor in place of C has PLACE_C. That of column sums has PLACE_EXTRA, where the product leaves
// the sums of its tiles. Each other one has the first that neither the problem nor an earlier
// tensor uses.
std::array<std::uint32_t, most_tensors> places_of(const ResolvedProblem& problem) noexcept;
std::uint64_t Addresses::*address_of_place(std::uint32_t place) noexcept;

}  // namespace vkgemm
