// Tests of where messages go.
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <string>

#include "../set_environment.hpp"

namespace vkgemm {
namespace {

// A file that can't be written is not a silent one.
TEST(Log, TellsOfAFileThatCannotBeWritten) {
  test::set_environment("VKGEMM_LOG", "/no/such/folder/plans.log");
  testing::internal::CaptureStderr();
  const Log log({});
  const Log another({});  // does not repeat it
  log.write(LogLevel::info, "a plan");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "vkgemm warning: VKGEMM_LOG: cannot append to /no/such/folder/plans.log\n");
  EXPECT_FALSE(log.enabled());

  // Whoever has a callback is told there.
  std::string told;
  testing::internal::CaptureStderr();
  const Log other([&](LogLevel, std::string_view message) { told = message; });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(told, "VKGEMM_LOG: cannot append to /no/such/folder/plans.log");
  test::set_environment("VKGEMM_LOG");
}

}  // namespace
}  // namespace vkgemm
