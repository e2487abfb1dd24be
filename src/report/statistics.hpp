// statistics.hpp: what times come to.
#pragma once

#include <algorithm>
#include <vector>

namespace vkgemm::report {

// 0 of no values.
template <class Value>
Value median(std::vector<Value> values) {
  if (values.empty()) return Value{};
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline double tera_flops(double multiply_adds, double milliseconds) {
  return milliseconds > 0.0 ? 2e-9 * multiply_adds / milliseconds : 0.0;
}

}  // namespace vkgemm::report
