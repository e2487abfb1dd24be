// The host tests, and the processes that some of them start.
#include <gtest/gtest.h>

#include "headless/process.hpp"
#include "worker.hpp"

int main(int argc, char** argv) {
  vkgemm::headless::remember_command_line(argc, argv);
  const auto& arguments = vkgemm::headless::own_arguments();
  if (arguments.size() == 2 && arguments[0] == vkgemm::test::Worker::option) {
    vkgemm::test::Worker::work(arguments[1]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
