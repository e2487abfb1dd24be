// yardstick.hpp: a pipeline of one of the modules that only measure, and its times.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "headless/runner.hpp"

namespace vkgemm::tool {

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

}  // namespace vkgemm::tool
