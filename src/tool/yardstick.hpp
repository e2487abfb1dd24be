// yardstick.hpp: the modules that only measure: what cooperative matrices and multiply-adds reach
// from registers alone, what memory does on this device, and whether its clock is up.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "headless/runner.hpp"

namespace vkgemm::tool {

// A pipeline of such a module, and its times.
class Yardstick {
 public:
  // `runner` must outlive it. `module` is zero-terminated and static.
  Yardstick(headless::Runner& runner, std::string_view module, std::uint32_t push_constant_bytes)
      : runner_(runner), name_(module), push_constant_bytes_(push_constant_bytes) {}
  Yardstick(const Yardstick&) = delete;
  Yardstick& operator=(const Yardstick&) = delete;
  ~Yardstick();

  // First, once.
  Result<void> make_layout();

  // Replaces the pipeline. Constants are ordered by id; subgroup_size is required, 0 allows any.
  Result<void> make_pipeline(std::span<const std::uint32_t> constants, std::uint32_t subgroup_size);

  // Returns the shortest of `repeats` executions, in milliseconds. push_constants points at
  // push_constant_bytes bytes.
  Result<double> fastest(const void* push_constants, std::uint32_t workgroups,
                         std::uint32_t repeats, double warm_up_ms);

 private:
  void destroy_pipeline();

  headless::Runner& runner_;
  std::string_view name_;
  std::uint32_t push_constant_bytes_;
  VkShaderModule module_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

// A number of workgroups that keeps all compute units busy for a few waves.
std::uint32_t yardstick_workgroups(const DeviceCaps& caps);

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

// TFLOP/s of f16 products with f32 accumulation, the best of the shapes that the device lists.
// unsupported if the device has no cooperative matrices.
Result<double> measure_matrix_ceiling(headless::Runner& runner);

// TFLOP/s of f32 multiply-adds without matrices, which path fma makes of all types.
Result<double> measure_fma_ceiling(headless::Runner& runner);

// GB/s of a copy within the device's memory, bytes read and bytes written, far beyond its caches.
Result<double> measure_bandwidth(headless::Runner& runner);

}  // namespace vkgemm::tool
