#include "problem/tensor_places.hpp"

#include <algorithm>
#include <cstddef>

#include "lib/constants.h"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {

std::optional<std::size_t> tensor_in_place_of_c(const ResolvedProblem& problem) noexcept {
  if (problem.has_c()) return std::nullopt;
  for (std::size_t i = 0; i < most_tensors; ++i) {
    const Epilogue& epilogue = problem.epilogue;
    if (has_elements(epilogue.tensors[i]) && !is_stored(epilogue, i)) return i;
  }
  return std::nullopt;
}

std::array<std::uint32_t, most_tensors> places_of(const ResolvedProblem& problem) noexcept {
  std::array<bool, PLACE_COUNT> taken{};
  taken[PLACE_C] = problem.has_c();
  taken[PLACE_AUX] = problem.has_aux();
  taken[PLACE_BIAS] = problem.has_bias();
  std::array<std::uint32_t, most_tensors> places{};
  const auto ahead = tensor_in_place_of_c(problem), summed = summed_tensor(problem.epilogue);
  if (ahead) taken[PLACE_C] = true;
  if (summed) {
    places[*summed] = PLACE_EXTRA;
    taken[PLACE_EXTRA] = true;
  }
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (!has_tensor(problem.epilogue, i) || i == ahead || i == summed) continue;
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
