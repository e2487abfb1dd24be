// clock_gauge.hpp: whether the device's clock is up, told by the time of a loop that never changes.
#pragma once

#include <cstdint>

#include "headless/runner.hpp"
#include "tool/yardstick.hpp"

namespace vkgemm::tool {

// A clock falls while the host prepares operands or compiles, and a short warm-up does not raise
// it. One of multiply-adds in registers shows it: its time depends on the clock alone.
class ClockGauge {
 public:
  // `runner` must outlive it. Failure if the loop cannot be built.
  explicit ClockGauge(headless::Runner& runner);

  // Runs the loop until it is as fast as it has ever been here, but for a few percent, at most two
  // seconds. Returns the share of its best rate that it reached. On a CPU it runs nothing: 1.
  double raise();

 private:
  double time_ms();

  headless::Runner& runner_;
  Yardstick loop_;
  headless::Buffer output_;
  double best_ms_ = 0.0;  // 0: none yet
};

}  // namespace vkgemm::tool
