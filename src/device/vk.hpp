// vk.hpp: the Vulkan functions that the library calls, as tables of its own.
//
// Not volk: its function pointers are global symbols, and an application that links a static
// vkgemm next to its own volk would have them twice, or share them and see one device's functions
// called on another. A table per context has neither problem.
#pragma once

#include <vulkan/vulkan_core.h>

#include <string>
#include <string_view>

#include "vkgemm/result.hpp"

namespace vkgemm {

// Core functions of Vulkan 1.3 (required), and of extensions (null if the loader has none of it).
#define VKGEMM_INSTANCE_FUNCTIONS(required, optional)                                              \
  required(vkEnumerateDeviceExtensionProperties) required(vkGetDeviceProcAddr)                     \
      required(vkGetPhysicalDeviceFeatures2) required(vkGetPhysicalDeviceProperties2)              \
          required(vkGetPhysicalDeviceMemoryProperties)                                            \
              required(vkGetPhysicalDeviceQueueFamilyProperties)                                   \
                  optional(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)                      \
                      optional(vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV) \
                          optional(vkSetDebugUtilsObjectNameEXT)

#define VKGEMM_DEVICE_FUNCTIONS(required)                                                   \
  required(vkCmdBindPipeline) required(vkCmdDispatch) required(vkCmdPipelineBarrier)        \
      required(vkCmdPushConstants) required(vkCreateComputePipelines)                       \
          required(vkCreatePipelineCache) required(vkCreatePipelineLayout)                  \
              required(vkCreateShaderModule) required(vkDestroyPipeline)                    \
                  required(vkDestroyPipelineCache) required(vkDestroyPipelineLayout)        \
                      required(vkDestroyShaderModule) required(vkGetPipelineCacheData)      \
                          required(vkAllocateMemory) required(vkBindBufferMemory)           \
                              required(vkCreateBuffer) required(vkDestroyBuffer)            \
                                  required(vkFreeMemory) required(vkGetBufferDeviceAddress) \
                                      required(vkGetBufferMemoryRequirements)               \
                                          required(vkMapMemory) VKGEMM_QUEUE_FUNCTIONS(required)

// The functions that the self-test and tune(), which alone submit, need besides.
#define VKGEMM_QUEUE_FUNCTIONS(required)                                                          \
  required(vkAllocateCommandBuffers) required(vkBeginCommandBuffer) required(vkCreateCommandPool) \
      required(vkCreateFence) required(vkDestroyCommandPool) required(vkDestroyFence)             \
          required(vkEndCommandBuffer) required(vkQueueSubmit) required(vkWaitForFences)          \
              VKGEMM_TIMING_FUNCTIONS(required)

// The functions that only tune() needs.
#define VKGEMM_TIMING_FUNCTIONS(required)                                                    \
  required(vkCmdCopyBuffer) required(vkCmdFillBuffer) required(vkCmdResetQueryPool)          \
      required(vkCmdWriteTimestamp) required(vkCreateQueryPool) required(vkDestroyQueryPool) \
          required(vkGetQueryPoolResults)

#define VKGEMM_DECLARE(function) PFN_##function function = nullptr;

struct InstanceFunctions {
  VKGEMM_INSTANCE_FUNCTIONS(VKGEMM_DECLARE, VKGEMM_DECLARE)
};

struct DeviceFunctions {
  VKGEMM_DEVICE_FUNCTIONS(VKGEMM_DECLARE)
};

#undef VKGEMM_DECLARE

// missing_feature, naming the function, if the instance is older than Vulkan 1.3.
Result<InstanceFunctions> load_instance_functions(PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                                  VkInstance instance);
Result<DeviceFunctions> load_device_functions(const InstanceFunctions& instance_functions,
                                              VkDevice device);

// "VK_ERROR_DEVICE_LOST", or the number of one that this library does not expect.
std::string to_string(VkResult result);

// Repeats a call that reads a list of a length that was asked for before, as long as that has grown
// meanwhile, though not for ever: VK_INCOMPLETE then.
template <class Call>
VkResult until_complete(Call&& call) {
  constexpr int most_tries = 16;
  VkResult result = VK_INCOMPLETE;
  for (int i = 0; i < most_tries && result == VK_INCOMPLETE; ++i) result = call();
  return result;
}

// The Error for a driver call that failed: its Status, and a message that names call and result.
Error driver_error(std::string_view call, VkResult result);

}  // namespace vkgemm
