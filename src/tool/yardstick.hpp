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

  // In place of the pipeline before. Constants by id; subgroup_size: required, 0 for any.
  Result<void> make_pipeline(std::span<const std::uint32_t> constants, std::uint32_t subgroup_size);

  // Milliseconds, the least of so many executions. push_constants: as many bytes as were announced.
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

// As many workgroups as keep the device's units busy for a few waves, on the devices that we know.
std::uint32_t yardstick_workgroups(const DeviceCaps& caps);

}  // namespace vkgemm::tool
