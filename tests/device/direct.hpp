// direct.hpp: the configurations of khr_direct that tests of it go through.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "harness.hpp"

namespace vkgemm::test {

class Direct : public testing::Test {
 protected:
  void SetUp() override {
    for (const DataType input : {DataType::f16, DataType::bf16}) {
      for (const Config& config : small_configs(Path::khr, input)) {
        if (config.main_loop() == MainLoop::khr_direct) configs_.push_back({config, input});
      }
    }
    if (configs_.empty()) GTEST_SKIP() << "khr_direct computes nothing on " << caps().name;
  }

  struct Case {
    Config config;
    DataType input;
  };
  std::vector<Case> configs_;
};

}  // namespace vkgemm::test
