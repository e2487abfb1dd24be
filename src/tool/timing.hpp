// timing.hpp: one case of `vkgemm bench` on a device: its operands, and what a configuration takes.
#pragma once

#include <cstddef>
#include <vector>

#include "support/reference.hpp"
#include "support/runner.hpp"
#include "tool/cases.hpp"

namespace vkgemm::tool {

struct TimingOptions {
  std::uint64_t repeat = 50;
  double warm_up_ms = 300.0;
};

// Keeps a reference to the case.
class TimedCase {
 public:
  TimedCase(support::Runner& runner, const BenchCase& one);

  // Milliseconds of each execution. `flush`, if there is one, is overwritten before each.
  std::vector<double> time(const Plan& plan, const TimingOptions& options,
                           const support::Buffer* flush);

  // What the last execution left, sampled rows of it.
  support::VerifyReport verify();

  // Of all operands and results, each once.
  double bytes() const;

 private:
  std::vector<std::byte> fill(DataType type, std::uint64_t bytes, std::uint64_t seed,
                              support::Buffer& device);

  support::Runner& runner_;
  const BenchCase& case_;
  std::vector<std::byte> offsets_;
  std::vector<std::byte> a_, b_, b_right_, c_, bias_, d_, aux_, gamma_, beta_, row_values_;
  support::Buffer device_gamma_, device_beta_, device_row_values_, device_offsets_, device_a_,
      device_b_, device_b_right_, device_c_, device_bias_, device_d_, device_aux_, workspace_;
};

}  // namespace vkgemm::tool
