// largest.hpp: the largest magnitude of some values, and how far a correct kernel may be off.
// Internal to the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace vkgemm::oracle {

struct Largest {
  double magnitude = 0.0;
  double bound = 0.0;  // the largest of the values' errors
  bool has_nan = false;
  bool unpredictable = false;

  void add(double x, double its_bound, bool is_unpredictable = false) {
    has_nan = has_nan || std::isnan(x);
    magnitude = std::max(magnitude, std::fabs(x));
    bound = std::max(bound, its_bound);
    unpredictable = unpredictable || is_unpredictable;
  }
  void add(const Largest& other) {
    add(other.magnitude, other.bound, other.unpredictable);
    has_nan = has_nan || other.has_nan;
  }
  // NaN in any value is the result.
  double value() const { return has_nan ? std::numeric_limits<double>::quiet_NaN() : magnitude; }
};

}  // namespace vkgemm::oracle
