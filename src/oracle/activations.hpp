// activations.hpp: the functions of the epilogue in double precision, and how far a correct f32
// kernel may be off. Internal to the reference.
#pragma once

#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

// A value, and the most by which a correct kernel's differs from it.
struct Bounded {
  double value = 0.0;
  double bound = 0.0;
};

// The arguments' errors go through the function's slope, and it has one of its own. `number`: of
// activations that take one.
Bounded activate(Activation activation, Bounded x, double number = 0.0);

// The derivative of an activation at x, which is exact.
Bounded derivative(Activation activation, double x, double number);
Bounded apply_gate(const Gated& gated, Bounded l, Bounded r);

// gelu, silu and hard_swish of minus infinity are -inf * 0 where the formula is evaluated as
// written, and 0 in the limit: both are right.
bool is_ambiguous(Activation activation, double pre);
bool is_ambiguous(const Gated& gated, double l, double r);

}  // namespace vkgemm::oracle
