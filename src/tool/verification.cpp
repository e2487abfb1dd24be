#include "tool/verification.hpp"

#include <algorithm>
#include <cstdio>

#include "tool/planning.hpp"

namespace vkgemm::tool {
namespace {

using oracle::Verify;

// Multiply-adds that the reference does in a few seconds.
constexpr double kFullVerification = 0x1p33;

}  // namespace

oracle::VerifyOptions choose_verification(const std::string& how, std::uint64_t seed,
                                          const Problem& worked, const Groups& groups) {
  oracle::VerifyOptions verify;
  verify.seed = seed;
  const double work = multiply_adds(worked);
  if (how == "full" || (how == "auto" && work <= kFullVerification)) return verify;
  verify.mode = how == "off" ? Verify::off : Verify::sampled;
  const double per_row =
      std::max(1.0, work / static_cast<double>(std::max<std::uint64_t>(worked.m, 1)));
  const double rows = kFullVerification / per_row / groups.sharing_rows();
  verify.sampled_rows = static_cast<std::uint64_t>(std::clamp(rows, 2.0, 64.0));
  return verify;
}

bool report_verification(const oracle::VerifyOptions& options, const Problem& problem,
                         const oracle::VerifyReport& report, double seconds) {
  if (options.mode == Verify::off) {
    std::printf("verification   off\n");
    return true;
  }
  const std::string how =
      options.mode == Verify::full
          ? "full"
          : "sampled, " + std::to_string(std::min(options.sampled_rows, problem.m)) + " rows" +
                (problem.grouping    ? " of each group"
                 : problem.batch > 1 ? " of each matrix"
                                     : "");
  std::printf("verification   %s: %s elements against double precision (%.1f s)\n", how.c_str(),
              std::to_string(report.checked).c_str(), seconds);
  std::printf("error          max %.3g, %.3g of the bound; relative (norm) %.3g\n",
              report.max_abs_error, report.max_rel_to_bound, report.relative_error);
  if (report.passed()) {
    std::printf("verdict        PASSED\n");
  } else {
    std::printf("verdict        FAILED: %s elements are wrong, first: %s\n",
                std::to_string(report.failures).c_str(), report.first_failure.c_str());
  }
  return report.passed();
}

}  // namespace vkgemm::tool
