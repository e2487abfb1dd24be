// legality_case.hpp: what the checks of legality share.
#pragma once

#include <cstdint>
#include <string>

#include "resolved_problem.hpp"
#include "text.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// A grid that needs more dispatches than this would take minutes to record and to run.
constexpr std::uint64_t most_dispatches = 65536;

// What is asked about, and where the reason goes if anybody wants to know it.
struct Case {
  const Config& config;
  const ResolvedProblem& problem;
  const DeviceCaps& caps;
  std::string* reason = nullptr;

  template <class... Parts>
  bool refuse(const Parts&... parts) const {
    if (reason != nullptr) *reason = concat(parts...);
    return false;
  }
};

// Of everything that a workspace is for: slices of K, and copies, which the problem has in place of
// the operands.
bool check_split(const Case& s);
bool check_pack(const Case& s);

// What computes two products in one.
bool check_gated(const Case& s);

// Strategies of row reductions.
bool check_rows(const Case& s);

// What is known of the driver beyond what it says itself.
bool check_verdicts(const Case& s);

// Schedules, and what groups don't go with.
bool check_grouping(const Case& s);

}  // namespace vkgemm
