// kernel_accesses.hpp: what a dispatch of each kernel reads and writes, by what the kernel itself
// is told: its specialization constants and its parameters. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hazards.hpp"
#include "lib/abi.h"

namespace vkgemm::test {

// The words of a parameter block, as they stand among the push constants, or in memory.
using ParameterWords = std::array<std::uint32_t, gpu::most_parameter_bytes / sizeof(std::uint32_t)>;

// A dispatch of x tiles of y batches.
struct Launch {
  std::string_view module;
  std::span<const std::uint32_t, SPEC_COUNT> constants;
  const ParameterWords& parameters;
  std::uint32_t x = 1;
  std::uint32_t y = 1;
};

// Matrices as lines, so that columns of one larger matrix, side by side, share nothing. What a
// kernel may do and what it does are one: groups, and tiles that stand in for others, are all
// there. Nothing for a module that is not known here, as are the yardsticks of the benchmarks.
std::optional<std::vector<Access>> kernel_accesses(const Launch& launch);

}  // namespace vkgemm::test
