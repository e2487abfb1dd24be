#include "tool/yardstick.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "device/caps.hpp"
#include "report/rows.hpp"
#include "tool/tool.hpp"

namespace vkgemm::tool {
namespace {

constexpr std::uint32_t iterations = 2048;  // about 2 ms where 16 workgroups share a unit
constexpr std::uint32_t repeats = 5;
constexpr std::chrono::milliseconds longest{2000};
// A first call knows no best: so long does it look for one.
constexpr std::chrono::milliseconds first{500};

}  // namespace

ClockGauge::ClockGauge(headless::Runner& runner)
    : runner_(runner), loop_(runner, "ceiling_fma", sizeof(VkDeviceAddress)) {
  if (is_cpu(runner.caps())) return;
  output_ = unwrap(runner.allocate(1 << 20));
  unwrap(loop_.make_layout());
  unwrap(loop_.make_pipeline(std::array{iterations}, 0));
}

double ClockGauge::time_ms() {
  const VkDeviceAddress address = output_.address();
  return unwrap(loop_.fastest(&address, yardstick_workgroups(runner_.caps()), repeats, 0.0));
}

double ClockGauge::raise() {
  if (is_cpu(runner_.caps())) return 1.0;
  const auto begin = std::chrono::steady_clock::now();
  const auto least = best_ms_ == 0.0 ? first : std::chrono::milliseconds(0);
  for (;;) {
    const double ms = time_ms();
    best_ms_ = best_ms_ == 0.0 ? ms : std::min(best_ms_, ms);
    const double share = best_ms_ / ms;
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (passed >= longest || (passed >= least && share >= report::clock_is_up)) return share;
  }
}

}  // namespace vkgemm::tool
