#include "kernels/main_loop.hpp"

namespace vkgemm {

double perimeter(const Config& c) {
  const auto inverse = [](double m, double n) { return 1.0 / m + 1.0 / n; };
  const TilePart part = descriptor(c).part(c);
  return inverse(c.tile_m, c.tile_n) + inverse(part.m, part.n);
}

}  // namespace vkgemm
