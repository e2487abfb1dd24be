// statistics.hpp: what several measurements come to.
#pragma once

#include <algorithm>
#include <vector>

namespace vkgemm {

// 0 of no values.
template <class Value>
Value median(std::vector<Value> values) {
  if (values.empty()) return Value{};
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace vkgemm
