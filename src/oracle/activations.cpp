#include "oracle/activations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace vkgemm::oracle {
namespace {

constexpr double half_root = 0.70710678118654752440;       // sqrt(1/2)
constexpr double normal_density = 0.39894228040143267794;  // 1 / sqrt(2 pi)
constexpr double tanh_scale = 0.79788456080286535588;      // sqrt(2/pi)
constexpr double tanh_cube = 0.044715;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double argument_of_tanh(double x) { return tanh_scale * (x + tanh_cube * x * x * x); }

// Written so that NaN goes through every one of them.
double evaluate(Activation activation, double x, double number) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0.0 ? 0.0 : x;
    case Activation::gelu_erf:
      return 0.5 * x * (1.0 + std::erf(x * half_root));
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(argument_of_tanh(x)));
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::softplus:
      return (x < 0.0 ? 0.0 : x) + std::log1p(std::exp(-std::fabs(x)));
    case Activation::hard_swish:
      return x * (x <= -3.0 ? 0.0 : x >= 3.0 ? 6.0 : x + 3.0) / 6.0;
    case Activation::exp:
      return std::exp(x);
    case Activation::abs:
      return std::fabs(x);
    case Activation::square:
      return x * x;
    case Activation::sqrt:
      return std::sqrt(x);
    case Activation::leaky_relu:
      return x < 0.0 ? number * x : x;
    case Activation::elu:
      return x > 0.0 ? x : number * std::expm1(x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double evaluate_derivative(Activation activation, double x, double number) {
  if (std::isnan(x)) return x;
  switch (activation) {
    case Activation::none:
      return 1.0;
    case Activation::relu:
      return x > 0.0 ? 1.0 : 0.0;
    case Activation::gelu_erf:
      if (std::isinf(x)) return x > 0.0 ? 1.0 : 0.0;
      return 0.5 * (1.0 + std::erf(x * half_root)) + x * normal_density * std::exp(-0.5 * x * x);
    case Activation::gelu_tanh: {
      const double s = sigmoid(2.0 * argument_of_tanh(x));
      const double rest = sigmoid(-2.0 * argument_of_tanh(x));
      const double slope = 2.0 * tanh_scale * (1.0 + 3.0 * tanh_cube * x * x);
      return rest == 0.0 || s == 0.0 ? s : s + x * s * rest * slope;
    }
    case Activation::silu:
      return sigmoid(x) * (1.0 + x * sigmoid(-x));
    case Activation::sigmoid:
      return sigmoid(x) * sigmoid(-x);
    case Activation::tanh:
      return 4.0 * sigmoid(2.0 * x) * sigmoid(-2.0 * x);
    case Activation::softplus:
      return sigmoid(x);
    case Activation::hard_swish:
      return x <= -3.0 ? 0.0 : x >= 3.0 ? 1.0 : x / 3.0 + 0.5;
    case Activation::exp:
      return std::exp(x);
    case Activation::abs:
      return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
    case Activation::square:
      return 2.0 * x;
    case Activation::sqrt:
      return 0.5 / std::sqrt(x);
    case Activation::leaky_relu:
      return x > 0.0 ? 1.0 : number;
    case Activation::elu:
      return x > 0.0 ? 1.0 : number * std::exp(x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// How far a device's own exp, tanh or erf approximation may put f(x) = y off, x being exact. Vulkan
// asks of exp no more than 3 + 2|x| ULP; erf is not in GLSL, and polynomials for it have errors of
// 1e-7.
double activation_error(Activation activation, double x, double y) {
  switch (activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::abs:
      return 0.0;
    case Activation::gelu_erf:
    case Activation::gelu_tanh:
    case Activation::silu:
    case Activation::hard_swish:
      return std::fabs(x) * 0x1p-20;
    case Activation::sigmoid:
    case Activation::tanh:
      return 0x1p-20;
    case Activation::softplus:
    case Activation::exp:
    case Activation::elu:
    case Activation::sqrt:
    case Activation::leaky_relu:
    case Activation::square:
      return std::fabs(y) * (8.0 + 2.0 * std::fabs(x)) * 0x1p-23 + 0x1p-126;
  }
  return 0.0;
}

// The same of the derivative. Terms of gelu's and silu's cancel, each about as large as x.
double derivative_error(Activation activation, double x, double y) {
  switch (activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::abs:
    case Activation::leaky_relu:
      return 0.0;
    case Activation::gelu_erf:
    case Activation::gelu_tanh:
    case Activation::silu:
      return (1.0 + std::fabs(x)) * 0x1p-19;
    case Activation::sigmoid:
    case Activation::tanh:
    case Activation::softplus:
    case Activation::hard_swish:
      return 0x1p-20;
    case Activation::exp:
    case Activation::elu:
    case Activation::sqrt:
    case Activation::square:
      return std::fabs(y) * (8.0 + 2.0 * std::fabs(x)) * 0x1p-23 + 0x1p-126;
  }
  return 0.0;
}

// A gate is a product of two activations.
std::pair<Activation, Activation> factors_of(Gate gate) {
  switch (gate) {
    case Gate::sigmoid_tanh:
      return {Activation::sigmoid, Activation::tanh};
    case Gate::geglu_erf:
      return {Activation::none, Activation::gelu_erf};
    case Gate::geglu_tanh:
      return {Activation::none, Activation::gelu_tanh};
    case Gate::swiglu:
      return {Activation::silu, Activation::none};
    case Gate::reglu:
      return {Activation::none, Activation::relu};
    case Gate::glu:
      return {Activation::none, Activation::sigmoid};
  }
  return {};
}

}  // namespace

Bounded activate(Activation activation, Bounded x, double number) {
  if (activation == Activation::none) return x;
  const auto f = [=](double at) { return evaluate(activation, at, number); };
  Bounded y{f(x.value)};
  const double error = activation_error(activation, x.value, y.value);
  if (std::isinf(x.value)) {  // in any order of the sum: what is finite here is a limit
    y.bound = std::isfinite(y.value) ? error : x.bound;
    return y;
  }
  y.bound = std::max(std::fabs(f(x.value - x.bound) - y.value),
                     std::fabs(f(x.value + x.bound) - y.value));
  y.bound = 1.001 * y.bound + error;
  return y;
}

Bounded derivative(Activation activation, double x, double number) {
  const double y = evaluate_derivative(activation, x, number);
  return {y, std::isfinite(y) ? derivative_error(activation, x, y) : 0.0};
}

Bounded apply_gate(const Gated& gated, Bounded l, Bounded r) {
  if (gated.swapped) std::swap(l, r);
  const bool activates_l = gated.gate == Gate::swiglu;
  const double limit = static_cast<double>(gated.limit);
  const double offset = static_cast<double>(gated.offset);
  const double slope = static_cast<double>(gated.slope);
  Bounded& activated = activates_l ? l : r;
  Bounded& other = activates_l ? r : l;
  if (limit != 0.0) {  // NaN goes through
    if (activated.value > limit) activated.value = limit;
    if (other.value > limit) other.value = limit;
    if (other.value < -limit) other.value = -limit;
  }
  if (offset != 0.0) {
    other.value += offset;
    other.bound += 0x1p-23 * std::fabs(other.value);
  }
  const auto [of_l, of_r] = factors_of(gated.gate);
  // A function with sigmoid(slope · x): of slope · x, and silu's factor x is not scaled.
  const auto apply = [slope](Activation activation, Bounded x) {
    const bool has_sigmoid = activation == Activation::silu || activation == Activation::sigmoid;
    if (!has_sigmoid || slope == 1.0) return activate(activation, x);
    const double rounding = 0x1p-23 * slope * std::fabs(x.value);
    Bounded y = activate(activation, {slope * x.value, slope * x.bound + rounding});
    if (activation == Activation::silu) y = {y.value / slope, y.bound / slope};
    return y;
  };
  const Bounded f = apply(of_l, l), g = apply(of_r, r);
  const double product = f.value * g.value;
  // Two products (silu has one of its own), and what a device may flush to zero.
  return {product, std::fabs(f.value) * g.bound + std::fabs(g.value) * f.bound + f.bound * g.bound +
                       2.0 * 0x1p-23 * std::fabs(product) + 0x1p-126};
}

bool is_ambiguous(Activation activation, double pre) {
  const bool product = activation == Activation::gelu_erf || activation == Activation::gelu_tanh ||
                       activation == Activation::silu || activation == Activation::hard_swish;
  return product && pre == -std::numeric_limits<double>::infinity();
}

bool is_ambiguous(const Gated& gated, double l, double r) {
  if (gated.swapped) std::swap(l, r);
  const auto [of_l, of_r] = factors_of(gated.gate);
  return is_ambiguous(of_l, l) || is_ambiguous(of_r, r);
}

}  // namespace vkgemm::oracle
