// verdicts.hpp: refusals by the self-test and by the list of known drivers. Pure.
#pragma once

#include <string>
#include <vector>

#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/problem.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

// The inputs that configurations multiply. Codes of B take verdicts of their own.
struct Inputs {
  DataType type = {};
  bool codes = false;
};
inline Inputs inputs_of(const ResolvedProblem& problem) noexcept {
  return {problem.input_type(), problem.b.quantisation.has_value()};
}

bool covers(const KernelKind& kind, const Config& config, const Inputs& inputs) noexcept;
bool covers(const Denial& denial, const KernelKind& kind) noexcept;

// Why configurations like this one are refused for such inputs, on account of verdicts and denials:
// null if they are not.
const Verdict* failed_verdict(const Config& config, const Inputs& inputs, const DeviceCaps& caps);
const Denial* denial(const Config& config, const Inputs& inputs, const DeviceCaps& caps);

// True if the self-test passed for configurations like this one.
bool has_passed(const Config& config, const Inputs& inputs, const DeviceCaps& caps);

// "failed the self-test on driver …: expected 12, got 13 at (3, 4)"
std::string why_failed(const Verdict& verdict, const DeviceCaps& caps);

// All that is refused of kernels for these inputs, a sentence each.
std::vector<std::string> refusals(DataType input, const DeviceCaps& caps);

}  // namespace vkgemm
