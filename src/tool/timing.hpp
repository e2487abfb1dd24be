// timing.hpp: one problem with random operands on a device: what `bench` and `tune` time and
// verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/reference.hpp"
#include "support/runner.hpp"
#include "tool/groups.hpp"

namespace vkgemm::tool {

// Of a buffer that is written to flush caches: more than any L2 cache has.
std::uint64_t flush_bytes(const DeviceCaps& caps);

// The operands of one problem, on the host and on the device.
class TimedCase {
 public:
  // All of them must outlive it.
  TimedCase(support::Runner& runner, const Problem& problem, const Groups& groups);

  // Milliseconds of so many executions after a warm-up; `flush` is written before each, if there is
  // one. D holds what the plan computed, and NaN where it wrote nothing.
  std::vector<double> time(const Plan& plan, std::uint32_t repeats, double warm_up_ms,
                           const support::Buffer* flush);

  // What D holds, in as many rows as the reference computes with about so many multiply-adds. Other
  // seeds choose others.
  support::VerifyReport verify(std::uint64_t seed = 1, double work = 0x1p31);

  // Of all operands and results, each once.
  double bytes() const;

 private:
  std::vector<std::byte> fill(DataType type, std::uint64_t bytes, std::uint64_t seed,
                              support::Buffer& device);

  support::Runner& runner_;
  const Problem& problem_;
  const Groups& groups_;
  std::vector<std::byte> offsets_;
  std::vector<std::byte> a_, b_, b_right_, c_, bias_, d_, aux_, gamma_, beta_, row_values_;
  support::Buffer device_gamma_, device_beta_, device_row_values_, device_offsets_, device_a_,
      device_b_, device_b_right_, device_c_, device_bias_, device_d_, device_aux_, workspace_;
};

}  // namespace vkgemm::tool
