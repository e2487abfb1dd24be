// stopwatch.hpp: times commands by GPU timestamps. It decides how many executions a submission has
// and how long the device warms up. Callers use Runner::time().
#pragma once

#include <volk.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "vkgemm/result.hpp"

namespace vkgemm::headless {

// Records a barrier between all commands before and after, on the device and on the host.
void record_full_barrier(VkCommandBuffer commands);

class Stopwatch {
 public:
  using Commands = std::function<Result<void>(VkCommandBuffer)>;
  using Submit = std::function<Result<void>(const Commands&)>;  // and waits

  // `timestamp_bits`: the valid bits of the queue's timestamps, at least 1.
  static Result<std::unique_ptr<Stopwatch>> create(VkDevice device, std::uint32_t timestamp_bits,
                                                   double ns_per_tick);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Runner::time(). `submit` submits to the queue.
  Result<std::vector<double>> time(const Submit& submit, const Commands& commands,
                                   std::uint32_t repeats, double warm_up_ms,
                                   const Commands& before);

 private:
  Stopwatch(VkDevice device, std::uint32_t timestamp_bits, double ns_per_tick);
  Result<void> run_batch(const Submit& submit, const Commands& commands, const Commands& before,
                         std::uint32_t count, std::vector<double>& times);

  VkDevice device_;
  std::uint64_t mask_;  // of the valid bits
  double ns_per_tick_;
  VkQueryPool queries_ = VK_NULL_HANDLE;
};

}  // namespace vkgemm::headless
