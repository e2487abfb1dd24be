// largest.hpp: the largest magnitude of some values, and its error bound. Internal to the
// reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace vkgemm::oracle {

struct Largest {
  double magnitude = 0.0;
  double least = 0.0;  // no correct kernel's result is below it …
  double most = 0.0;   // … or above this
  bool has_nan = false;

  // `bound`: the error of a correct kernel's x. An unpredictable x may be anything.
  void add(double x, double bound, bool unpredictable = false) {
    const double infinity = std::numeric_limits<double>::infinity();
    has_nan = has_nan || std::isnan(x);
    magnitude = std::max(magnitude, std::fabs(x));
    if (!unpredictable) least = std::max(least, std::fabs(x) - bound);
    most = std::max(most, unpredictable ? infinity : std::fabs(x) + bound);
  }
  void add(const Largest& other) {
    has_nan = has_nan || other.has_nan;
    magnitude = std::max(magnitude, other.magnitude);
    least = std::max(least, other.least);
    most = std::max(most, other.most);
  }

  // NaN in any value is the result.
  double value() const { return has_nan ? std::numeric_limits<double>::quiet_NaN() : magnitude; }
  double bound() const {
    return std::isinf(magnitude) ? 0.0 : std::max(most - magnitude, magnitude - least);
  }
};

}  // namespace vkgemm::oracle
