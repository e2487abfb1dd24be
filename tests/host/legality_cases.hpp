// legality_cases.hpp: changes of a configuration, a problem or a device, and why they are not
// legal.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string_view>

#include "kernels/legality.hpp"
#include "problem/resolve.hpp"
#include "self_test/self_test.hpp"
#include "test_devices.hpp"

namespace vkgemm::test {

struct Setting {
  Config config;
  Problem problem = gemm(512, 512, 512);
  DeviceCaps caps = test::h200();
};

struct Case {
  std::string_view name;
  std::function<void(Setting&)> change;
  std::string_view expected;  // in the reason; empty: legal
};

// As after a self-test that passed.
inline void trust(Setting& s) { s.caps = trusting(s.caps); }

inline void expect_cases(const Config& config, std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    Setting s{.config = config};
    c.change(s);
    const auto r = resolve(s.problem);
    ASSERT_TRUE(r) << c.name << ": " << r.error().message;
    const auto reason = why_illegal(s.config, *r, s.caps);
    EXPECT_EQ(is_legal(s.config, *r, s.caps), !reason);
    if (c.expected.empty()) {
      EXPECT_EQ(reason, std::nullopt) << c.name;
    } else {
      ASSERT_NE(reason, std::nullopt) << c.name;
      EXPECT_TRUE(contains(*reason, c.expected)) << c.name << ": " << *reason;
    }
  }
}

}  // namespace vkgemm::test
