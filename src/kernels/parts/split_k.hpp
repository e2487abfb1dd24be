// split_k.hpp: slices of K, whose partial results stand in the workspace until they are added.
#pragma once

#include <cstdint>

#include "kernels/part.hpp"

namespace vkgemm {

// Leading dimension of the partial results: N, padded to 16 bytes; with a gate twice.
std::uint64_t partial_ld(const ResolvedProblem& problem);

// Workgroups that add the partial results of one matrix of the batch.
std::uint64_t sum_block_count(const ResolvedProblem& problem);

// True if the product's own dispatch runs the epilogue.
constexpr bool adds_in_product(const Config& config) noexcept {
  return config.slices == 1 || config.reduction_mode != ReductionMode::two_dispatches;
}

// The time that adding slices takes, if each partial result takes `write_and_read` microseconds.
double sum_cost(std::uint32_t slices, double write_and_read, const TimingModel& timing);

}  // namespace vkgemm
