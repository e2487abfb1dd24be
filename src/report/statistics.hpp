// statistics.hpp: the rate of a product.
#pragma once

namespace vkgemm::report {

inline double tera_flops(double multiply_adds, double milliseconds) {
  return milliseconds > 0.0 ? 2e-9 * multiply_adds / milliseconds : 0.0;
}

}  // namespace vkgemm::report
