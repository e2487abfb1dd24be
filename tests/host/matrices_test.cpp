// Tests of the values that the tool makes.
#include "tool/matrices.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vkgemm::tool {
namespace {

// Long ones say how far they are, and have the same values.
TEST(Generate, SaysHowFarItIs) {
  constexpr std::uint64_t bytes = 2 * 1234;
  testing::internal::CaptureStderr();
  const auto quiet = generate(DataType::f16, bytes, Fill::random, 7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  const auto told = generate(DataType::f16, bytes, Fill::random, 7, 1000);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("generating 0.0 GiB: 0 %\n"), std::string::npos) << text;
  EXPECT_NE(text.find(": 90 %\n"), std::string::npos) << text;
  EXPECT_EQ(told, quiet);
}

}  // namespace
}  // namespace vkgemm::tool
