// tensor_places.hpp: where kernels find the tensors of an epilogue's steps. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "problem/addresses.hpp"
#include "problem/resolved_problem.hpp"

namespace vkgemm {

// The parameters of C, aux, bias or of nothing else: where kernels find a tensor (PLACE_*). Each
// tensor has the first that neither the problem nor an earlier tensor uses.
std::array<std::uint32_t, most_tensors> places_of(const ResolvedProblem& problem) noexcept;
std::uint64_t Addresses::*address_of_place(std::uint32_t place) noexcept;

}  // namespace vkgemm
