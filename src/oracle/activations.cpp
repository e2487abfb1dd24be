#include "oracle/activations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace vkgemm::oracle {
namespace {

// Written so that NaN goes through every one of them.
double evaluate(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0.0 ? 0.0 : x;
    case Activation::gelu_erf:
      return 0.5 * x * (1.0 + std::erf(x * 0.70710678118654752440));
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// How far a device's own exp, tanh or erf approximation may put f(x) off, x being exact. Vulkan
// asks of exp no more than 3 + 2|x| ULP; erf is not in GLSL, and polynomials for it have errors of
// 1e-7.
double activation_error(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
    case Activation::relu:
      return 0.0;
    case Activation::gelu_erf:
    case Activation::gelu_tanh:
    case Activation::silu:
      return std::fabs(x) * 0x1p-20;
    case Activation::sigmoid:
    case Activation::tanh:
      return 0x1p-20;
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

Bounded activate(Activation activation, Bounded x) {
  if (activation == Activation::none) return x;
  Bounded y{evaluate(activation, x.value)};
  if (std::isinf(x.value)) {  // in any order of the sum: what is finite here is a limit
    y.bound = std::isfinite(y.value) ? activation_error(activation, x.value) : x.bound;
    return y;
  }
  y.bound = std::max(std::fabs(evaluate(activation, x.value - x.bound) - y.value),
                     std::fabs(evaluate(activation, x.value + x.bound) - y.value));
  y.bound = 1.001 * y.bound + activation_error(activation, x.value);
  return y;
}

Bounded apply_gate(Gate gate, Bounded l, Bounded r) {
  const auto [of_l, of_r] = factors_of(gate);
  const Bounded f = activate(of_l, l), g = activate(of_r, r);
  const double product = f.value * g.value;
  // Two products (silu has one of its own), and what a device may flush to zero.
  return {product, std::fabs(f.value) * g.bound + std::fabs(g.value) * f.bound + f.bound * g.bound +
                       2.0 * 0x1p-23 * std::fabs(product) + 0x1p-126};
}

bool is_ambiguous(Activation activation, double pre) {
  const bool product = activation == Activation::gelu_erf || activation == Activation::gelu_tanh ||
                       activation == Activation::silu;
  return product && pre == -std::numeric_limits<double>::infinity();
}

bool is_ambiguous(Gate gate, double l, double r) {
  const auto [of_l, of_r] = factors_of(gate);
  return is_ambiguous(of_l, l) || is_ambiguous(of_r, r);
}

}  // namespace vkgemm::oracle
