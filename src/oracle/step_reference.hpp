// step_reference.hpp: a step of an epilogue in double precision, and how far a correct f32 kernel
// may be off. Internal to the reference.
#pragma once

#include "oracle/activations.hpp"
#include "vkgemm/problem.hpp"

namespace vkgemm::oracle {

struct Stepped {
  Bounded v;
  bool unpredictable = false;  // any result is right: see Expected
};

// The value of a step that neither stores nor sums; x: its operand, which is exact.
Stepped apply_step(const EpilogueStep& step, Bounded v, double x);

}  // namespace vkgemm::oracle
