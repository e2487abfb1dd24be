// part.hpp: what composes with every main loop: slices of K, groups, gates, row reductions, packed
// operands. Each is described in a file of its own in parts/: what it asks for, what it adds to the
// dispatches, and what it costs. README.md in this folder says how to add one. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/constants.hpp"
#include "kernels/dispatch_plan.hpp"
#include "kernels/target.hpp"
#include "kernels/timing.hpp"

namespace vkgemm {

class Computation;
struct Case;

// A dispatch plan under construction. The product is there, without what parts add to it.
struct Lowering {
  const Computation& computation;
  const Config& config;     // its
  ComputedProblem problem;  // its product, of the first chunk or of the last one
  const Target& target;
  DispatchPlan& plan;
  Constants& constants;  // of the product
};

// How a product runs, as far as the cost of a part depends on it.
struct ProductCost {
  double microseconds = 0.0;
  double rounds = 0.0;    // of as many tiles as are resident at a time
  double resident = 0.0;  // workgroups of a compute unit
};

struct Part {
  // True if the configuration has it as the problem asks for it, and the device can do it.
  bool (*check)(const Case&) = nullptr;

  // Adds it; nothing if problem and configuration don't have it.
  void (*lower)(Lowering&) = nullptr;

  // A line of Plan::explain(), or nothing.
  std::string (*describe)(const Config&, const ResolvedProblem&, const DispatchPlan&) = nullptr;

  // These three are required, those that follow may be null.

  // Microseconds beside the product. The configuration may have more slices than the computation's.
  double (*cost)(const Config&, const Computation&, const TimingModel&,
                 const ProductCost&) = nullptr;

  // Its name in that of a tuned shape's family, or nothing if the problem doesn't have it; and
  // whether a name is one of its names. Both or neither.
  std::string_view (*family)(const ResolvedProblem&) = nullptr;
  bool (*is_family)(std::string_view name) = nullptr;

  // Adds its parts of the workspace.
  void (*add_workspace)(WorkspaceLayout&, const Config&, const ComputedProblem&) = nullptr;
};

// In the order in which they are checked and lowered.
std::span<const Part* const> parts() noexcept;

}  // namespace vkgemm
