// amax.cpp: the largest magnitude of D (StepOp::amax): workgroups raise one word in memory to
// theirs. A dispatch before the product sets the word to 0.
#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "kernels/computation.hpp"
#include "kernels/part.hpp"
#include "kernels/steps.hpp"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {
namespace {

bool check(const Case&) { return true; }

// The dispatch that prepares shared words sets amax, too, if there is one.
void lower(Lowering& l) {
  if (!amax_tensor(l.problem->epilogue)) return;
  const auto resets = [](const Step& step) {
    return std::holds_alternative<gpu::ResetParams>(step.params);
  };
  if (std::ranges::any_of(l.plan.before, resets)) return;
  l.plan.before.push_back(reset_step(0, 0, l.target.caps.limits));
  l.plan.before.back().once = true;
}

std::string describe(const Config&, const ResolvedProblem& p, const DispatchPlan&) {
  const auto tensor = amax_tensor(p.epilogue);
  if (!tensor) return {};
  return concat("amax: ", tensor_names[*tensor], ", set to 0 by a dispatch before the product");
}

// Microseconds of one more dispatch, behind a barrier.
double cost(const Config&, const Computation& computation, const TimingModel& timing,
            const ProductCost&) {
  return amax_tensor(computation.asked().epilogue) ? timing.sum : 0.0;
}

}  // namespace

extern constexpr Part amax_part{.check = check, .lower = lower, .describe = describe, .cost = cost};

}  // namespace vkgemm
