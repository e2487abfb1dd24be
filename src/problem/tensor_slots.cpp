#include "problem/tensor_slots.hpp"

#include <algorithm>
#include <cstddef>

#include "lib/constants.h"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {

std::array<std::uint32_t, most_tensors> slots_of(const ResolvedProblem& problem) noexcept {
  std::array<bool, SLOT_COUNT> taken{};
  taken[SLOT_C] = problem.has_c();
  taken[SLOT_AUX] = problem.has_aux();
  taken[SLOT_BIAS] = problem.has_bias();
  std::array<std::uint32_t, most_tensors> slots{};
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (!has_tensor(problem.epilogue, i)) continue;
    const auto free = std::ranges::find(taken, false) - taken.begin();
    slots[i] = static_cast<std::uint32_t>(free);
    if (slots[i] < SLOT_COUNT) taken[slots[i]] = true;
  }
  return slots;
}

std::uint64_t Addresses::*address_of_slot(std::uint32_t slot) noexcept {
  switch (slot) {
    case SLOT_C:
      return &Addresses::c;
    case SLOT_AUX:
      return &Addresses::aux;
    case SLOT_BIAS:
      return &Addresses::bias;
    default:
      return &Addresses::extra;
  }
}

}  // namespace vkgemm
