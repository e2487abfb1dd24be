// verification.hpp: what the oracle reads, how much it looks at, and what it reports.
#pragma once

#include <cstdint>
#include <string>

#include "problem/operands.hpp"

namespace vkgemm::oracle {

// Host copies of the operands, laid out exactly as the problem says (same ld, strides, types).
using HostOperands = PerOperand<const void*>;

enum class Verify : std::uint8_t { off, sampled, full };

struct VerifyOptions {
  Verify mode = Verify::full;
  std::uint64_t seed = 1;
  std::uint64_t sampled_rows = 64;  // per batch or group, over all of M, first and last included
  std::uint64_t sampled_groups = UINT64_MAX;  // of those that aren't empty; as rows are
  std::uint32_t threads = 0;                  // 0: all cores
};

struct VerifyReport {
  std::uint64_t checked = 0;   // elements of D and aux compared
  std::uint64_t failures = 0;  // outside the bound, or NaN where the reference has none
  double max_abs_error = 0.0;
  double max_rel_to_bound = 0.0;  // worst |error| / bound; above 1 is a failure
  double relative_error = 0.0;    // ||out - ref|| / ||ref|| over what was checked
  std::string first_failure;      // "d[batch 0, 12, 7] is 3.5, expected 3.25 ± 0.002"
  bool passed() const noexcept { return failures == 0; }
};

}  // namespace vkgemm::oracle
