#include "tool/yardstick.hpp"

#include <algorithm>
#include <vector>

#include "device/caps.hpp"
#include "device/vk.hpp"
#include "kernels/kernel_words.hpp"

namespace vkgemm::tool {

Yardstick::~Yardstick() {
  destroy_pipeline();
  vkDestroyPipelineLayout(runner_.device(), layout_, nullptr);
}

Result<void> Yardstick::make_layout() {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_constant_bytes_};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  const VkResult result = vkCreatePipelineLayout(runner_.device(), &layout, nullptr, &layout_);
  if (result != VK_SUCCESS) return driver_error("vkCreatePipelineLayout", result);
  return {};
}

Result<void> Yardstick::make_pipeline(std::span<const std::uint32_t> constants,
                                      std::uint32_t subgroup_size) {
  destroy_pipeline();
  const auto words = kernel_words(name_, constants);
  if (!words) return words.error();
  VkShaderModuleCreateInfo module{};
  module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module.codeSize = words->size() * sizeof(std::uint32_t);
  module.pCode = words->data();
  VkResult result = vkCreateShaderModule(runner_.device(), &module, nullptr, &module_);
  if (result != VK_SUCCESS) return driver_error("vkCreateShaderModule", result);
  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < constants.size(); ++i) entries.push_back({i, i * 4, 4});
  const VkSpecializationInfo specialization{static_cast<std::uint32_t>(entries.size()),
                                            entries.data(), constants.size_bytes(),
                                            constants.data()};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{};
  size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  size.requiredSubgroupSize = subgroup_size;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  if (subgroup_size != 0 && runner_.caps().limits.subgroup_size_control) {
    info.stage.pNext = &size;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module_;
  info.stage.pName = name_.data();
  info.stage.pSpecializationInfo = &specialization;
  info.layout = layout_;
  result =
      vkCreateComputePipelines(runner_.device(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
  if (result != VK_SUCCESS || pipeline_ == VK_NULL_HANDLE) {
    return driver_error("vkCreateComputePipelines", result);
  }
  return {};
}

Result<double> Yardstick::fastest(const void* push_constants, std::uint32_t workgroups,
                                  std::uint32_t repeats, double warm_up_ms) {
  const auto times = runner_.time(
      [&](VkCommandBuffer commands) -> Result<void> {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
        vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_constant_bytes_,
                           push_constants);
        vkCmdDispatch(commands, workgroups, 1, 1);
        return {};
      },
      repeats, warm_up_ms);
  if (!times) return times.error();
  return std::max(*std::min_element(times->begin(), times->end()), 1e-6);
}

void Yardstick::destroy_pipeline() {
  vkDestroyPipeline(runner_.device(), pipeline_, nullptr);
  pipeline_ = VK_NULL_HANDLE;
  vkDestroyShaderModule(runner_.device(), module_, nullptr);
  module_ = VK_NULL_HANDLE;
}

std::uint32_t yardstick_workgroups(const DeviceCaps& caps) {
  const std::uint32_t units = caps.limits.compute_units;
  if (is_cpu(caps)) return 16;
  return units != 0 ? units * 16 : 2048;
}

}  // namespace vkgemm::tool
