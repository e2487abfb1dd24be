// verification.hpp: how much of a result `vkgemm run` compares with the reference, and what it
// says.
#pragma once

#include <string>

#include "oracle/reference.hpp"
#include "tool/groups.hpp"

namespace vkgemm::tool {

// `how`: auto, full, sampled or off. `worked`: the dense problem with as much work.
oracle::VerifyOptions choose_verification(const std::string& how, std::uint64_t seed,
                                          const Problem& worked, const Groups& groups);

// Prints the verdict; whether it is a good one.
bool report_verification(const oracle::VerifyOptions& options, const Problem& problem,
                         const oracle::VerifyReport& report, double seconds);

}  // namespace vkgemm::tool
