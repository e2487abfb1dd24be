#include "problem/tensor_places.hpp"

#include <algorithm>
#include <cstddef>

#include "lib/constants.h"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {

std::array<std::uint32_t, most_tensors> places_of(const ResolvedProblem& problem) noexcept {
  std::array<bool, PLACE_COUNT> taken{};
  taken[PLACE_C] = problem.has_c();
  taken[PLACE_AUX] = problem.has_aux();
  taken[PLACE_BIAS] = problem.has_bias();
  std::array<std::uint32_t, most_tensors> places{};
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (!has_tensor(problem.epilogue, i)) continue;
    const auto free = std::ranges::find(taken, false) - taken.begin();
    places[i] = static_cast<std::uint32_t>(free);
    if (places[i] < PLACE_COUNT) taken[places[i]] = true;
  }
  return places;
}

std::uint64_t Addresses::*address_of_place(std::uint32_t place) noexcept {
  switch (place) {
    case PLACE_C:
      return &Addresses::c;
    case PLACE_AUX:
      return &Addresses::aux;
    case PLACE_BIAS:
      return &Addresses::bias;
    default:
      return &Addresses::extra;
  }
}

}  // namespace vkgemm
