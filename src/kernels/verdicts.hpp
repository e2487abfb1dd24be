// verdicts.hpp: what the self-test and the deny-list say against configurations. Pure.
#pragma once

#include <string>
#include <vector>

#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"
#include "vkgemm/problem.hpp"
#include "vkgemm/self_test.hpp"

namespace vkgemm {

bool covers(const KernelKind& kind, const Config& config, DataType input) noexcept;
bool covers(const Denial& denial, const KernelKind& kind) noexcept;

// Why configurations like this one are refused for such inputs, on account of verdicts and denials:
// null if they are not.
const Verdict* failed_verdict(const Config& config, DataType input, const DeviceCaps& caps);
const Denial* denial(const Config& config, DataType input, const DeviceCaps& caps);

// True if the self-test passed for configurations like this one.
bool has_passed(const Config& config, DataType input, const DeviceCaps& caps);

// "failed the self-test on driver …: expected 12, got 13 at (3, 4)"
std::string why_failed(const Verdict& verdict, const DeviceCaps& caps);

// All that is refused of kernels for these inputs, a sentence each.
std::vector<std::string> refusals(DataType input, const DeviceCaps& caps);

}  // namespace vkgemm
