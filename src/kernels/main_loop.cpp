#include "kernels/main_loop.hpp"

#include <algorithm>
#include <utility>

namespace vkgemm {

const std::uint32_t* find_number(const KernelKind& kind, std::string_view name) noexcept {
  const auto names = descriptor(kind.loop).kind_numbers;
  const auto found = std::ranges::find(names, name);
  return found != names.end() ? &kind.numbers[static_cast<std::size_t>(found - names.begin())]
                              : nullptr;
}
std::uint32_t* find_number(KernelKind& kind, std::string_view name) noexcept {
  return const_cast<std::uint32_t*>(find_number(std::as_const(kind), name));
}

double perimeter(const Config& c) {
  const auto inverse = [](double m, double n) { return 1.0 / m + 1.0 / n; };
  const TilePart part = descriptor(c).part(c);
  return inverse(c.tile_m, c.tile_n) + inverse(part.m, part.n);
}

}  // namespace vkgemm
