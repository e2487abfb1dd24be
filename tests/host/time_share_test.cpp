#include "tool/time_share.hpp"

#include <gtest/gtest.h>

namespace vkgemm::tool {
namespace {

TEST(TimeShare, NothingIsBegunThatWouldEndTooLate) {
  const TimeShare share(8.0);
  EXPECT_EQ(share.spent(2.0), 0.25);
  EXPECT_TRUE(share.has_room(4.9, 3.0));
  EXPECT_FALSE(share.has_room(5.1, 3.0));
  EXPECT_FALSE(share.has_room(8.1, 0.0));
  EXPECT_FALSE(TimeShare(-1.0).has_room(0.0, 0.0)) << "there never was any";
  EXPECT_EQ(TimeShare(0.0).spent(0.0), 1.0);
}

}  // namespace
}  // namespace vkgemm::tool
