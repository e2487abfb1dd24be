#include "device/vk.hpp"

#include <string>

namespace vkgemm {

Result<InstanceFunctions> load_instance_functions(PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                                  VkInstance instance) {
  InstanceFunctions functions;
#define VKGEMM_LOAD(function) \
  functions.function =        \
      reinterpret_cast<PFN_##function>(get_instance_proc_addr(instance, #function));
#define VKGEMM_LOAD_REQUIRED(function)                                                 \
  VKGEMM_LOAD(function)                                                                \
  if (functions.function == nullptr) {                                                 \
    return Error{Status::missing_feature, "get_instance_proc_addr knows no " #function \
                                          ": vkgemm needs an instance of Vulkan 1.3"}; \
  }
  VKGEMM_INSTANCE_FUNCTIONS(VKGEMM_LOAD_REQUIRED, VKGEMM_LOAD)
#undef VKGEMM_LOAD_REQUIRED
#undef VKGEMM_LOAD
  return functions;
}

Result<DeviceFunctions> load_device_functions(const InstanceFunctions& instance_functions,
                                              VkDevice device) {
  DeviceFunctions functions;
#define VKGEMM_LOAD_REQUIRED(function)                                                             \
  functions.function =                                                                             \
      reinterpret_cast<PFN_##function>(instance_functions.vkGetDeviceProcAddr(device, #function)); \
  if (functions.function == nullptr) {                                                             \
    return Error{Status::missing_feature, "the device has no function " #function};                \
  }
  VKGEMM_DEVICE_FUNCTIONS(VKGEMM_LOAD_REQUIRED)
#undef VKGEMM_LOAD_REQUIRED
  return functions;
}

std::string to_string(VkResult result) {
  switch (result) {
#define VKGEMM_NAME(value) \
  case value:              \
    return #value;
    VKGEMM_NAME(VK_SUCCESS)
    VKGEMM_NAME(VK_INCOMPLETE)
    VKGEMM_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    VKGEMM_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    VKGEMM_NAME(VK_ERROR_INITIALIZATION_FAILED)
    VKGEMM_NAME(VK_ERROR_DEVICE_LOST)
    VKGEMM_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    VKGEMM_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    VKGEMM_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    VKGEMM_NAME(VK_ERROR_UNKNOWN)
    VKGEMM_NAME(VK_ERROR_INVALID_SHADER_NV)
#undef VKGEMM_NAME
    default:
      return "VkResult " + std::to_string(static_cast<int>(result));
  }
}

Error driver_error(std::string_view call, VkResult result) {
  Status status = Status::driver_error;
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY) status = Status::out_of_host_memory;
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY) status = Status::out_of_device_memory;
  if (result == VK_ERROR_DEVICE_LOST) status = Status::device_lost;
  return Error{status, std::string(call) + " returned " + to_string(result), result};
}

}  // namespace vkgemm
