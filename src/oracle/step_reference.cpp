#include "oracle/step_reference.hpp"

#include <cfloat>
#include <cmath>
#include <limits>

namespace vkgemm::oracle {
namespace {

constexpr double rounding_error = 0x1p-23;
constexpr double division = 0x1p-21;  // Vulkan: 2.5 ULP
constexpr double flushed = 0x1p-126;  // a device may make zeros of what is smaller

Bounded larger(Bounded v, double x, double sign) {
  if (std::isnan(v.value) || std::isnan(x)) return {std::numeric_limits<double>::quiet_NaN(), 0.0};
  return {sign * v.value > sign * x ? v.value : x, v.bound};
}

}  // namespace

Stepped apply_step(const EpilogueStep& step, Bounded v, double x) {
  const auto number = static_cast<double>(step.number);
  Stepped out;
  Bounded& y = out.v;
  switch (step.op) {
    case StepOp::none:
    case StepOp::store:
    case StepOp::sum_columns:
    case StepOp::amax:
    case StepOp::argument:
      y = v;
      break;
    case StepOp::function:
      // The oracle has no GLSL: any result is right.
      y = v;
      out.unpredictable = true;
      break;
    case StepOp::add:
      y.value = v.value + x;
      y.bound = v.bound + rounding_error * std::fabs(y.value) + flushed;
      break;
    case StepOp::subtract:
      y.value = v.value - x;
      y.bound = v.bound + rounding_error * std::fabs(y.value) + flushed;
      break;
    case StepOp::multiply:
      y.value = v.value * x;
      y.bound = v.bound * std::fabs(x) + rounding_error * std::fabs(y.value) + flushed;
      break;
    case StepOp::divide:
      y.value = v.value / x;
      y.bound = v.bound / std::fabs(x) + division * std::fabs(y.value) + flushed;
      // The sign of a sum near 0 decides; and devices may flush the divisor.
      out.unpredictable = x == 0.0 ? std::fabs(v.value) <= v.bound : std::fabs(x) < flushed;
      break;
    case StepOp::maximum:
      y = larger(v, x, 1.0);
      break;
    case StepOp::minimum:
      y = larger(v, x, -1.0);
      break;
    case StepOp::activate:
      y = activate(step.activation, v, number);
      out.unpredictable =
          is_ambiguous(step.activation, v.value) ||
          (step.activation == Activation::sqrt && std::fabs(v.value) <= v.bound + flushed);
      break;
    case StepOp::derivative: {
      const Bounded slope = derivative(step.activation, x, number);
      y.value = v.value * slope.value;
      y.bound = v.bound * (std::fabs(slope.value) + slope.bound) +
                std::fabs(v.value) * slope.bound + rounding_error * std::fabs(y.value) + flushed;
      out.unpredictable = std::isinf(x);
      break;
    }
  }
  // f32 may overflow where double precision doesn't, and a rounding decides between Inf and NaN.
  if (std::isfinite(y.value) && std::fabs(y.value) + y.bound > static_cast<double>(FLT_MAX)) {
    out.unpredictable = true;
  }
  if (std::isnan(y.bound)) {
    y.bound = 0.0;
    out.unpredictable = out.unpredictable || std::isfinite(y.value);
  }
  return out;
}

}  // namespace vkgemm::oracle
