// expectations.hpp: expectations that several tests have of problems and configurations on an H200.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/dispatch_plan.hpp"
#include "kernels/legality.hpp"
#include "kernels/lowering.hpp"
#include "problem/resolve.hpp"
#include "test_devices.hpp"

namespace vkgemm::test {

// A change to a good problem, and the error that resolve() must then give.
struct ErrorCase {
  std::function<void(Problem&)> change;
  Status status;
  std::string_view expected;  // in the message
};

inline void expect_errors(const Problem& good, std::span<const ErrorCase> cases) {
  for (const ErrorCase& c : cases) {
    Problem p = good;
    c.change(p);
    const auto result = resolve(p);
    ASSERT_FALSE(result) << c.expected;
    EXPECT_EQ(result.error().status, c.status) << c.expected;
    EXPECT_TRUE(contains(result.error().message, c.expected)) << result.error().message;
  }
}

// Why the configuration is not legal; empty if it is.
inline std::string reason(std::string_view text, const Problem& problem) {
  const Config c = config(text);
  const auto why = why_illegal(c, resolved(problem), h200());
  EXPECT_EQ(is_legal(c, resolved(problem), h200()), !why);
  return why.value_or("");
}

inline DispatchPlan lowered(const Problem& problem, const Config& config = khr_config) {
  return lower(config, resolved(problem), h200());
}

}  // namespace vkgemm::test
