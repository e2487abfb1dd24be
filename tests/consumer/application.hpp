// application.hpp: a Vulkan application with its own instance, device, memory and command buffer.
#pragma once

#include <dlfcn.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <vkgemm/vkgemm.hpp>

namespace consumer {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "consumer: %s\n", what.c_str());
  std::exit(1);
}

inline void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) fail(std::string(what) + " gave " + std::to_string(result));
}

template <class T>
T unwrap(vkgemm::Result<T> result) {
  if (!result) fail(result.error().message);
  return *std::move(result);
}

inline PFN_vkGetInstanceProcAddr get_instance_proc_addr;
inline VkInstance instance;

// Looks up a Vulkan function for the application. vkgemm looks up its own.
#define CALL(function) reinterpret_cast<PFN_##function>(get_instance_proc_addr(instance, #function))

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  float* data = nullptr;
  vkgemm::DeviceSpan span;
};

class Application {
 public:
  Application() {
    void* loader = dlopen("libvulkan.so.1", RTLD_NOW);
    if (loader == nullptr) fail("no Vulkan loader");
    get_instance_proc_addr =
        reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    check(CALL(vkCreateInstance)(&info, nullptr, &instance), "vkCreateInstance");
    std::uint32_t count = 1;
    const VkResult result = CALL(vkEnumeratePhysicalDevices)(instance, &count, &physical_device);
    if (result < 0 || count == 0) fail("no Vulkan device");
  }

  // Asks what vkgemm needs, creates the device and a context on it.
  vkgemm::Context create_context() {
    const vkgemm::Requirements requirements =
        unwrap(vkgemm::query_requirements(instance, physical_device, get_instance_proc_addr));
    create_device(requirements);
    return unwrap(vkgemm::Context::create({.instance = instance,
                                           .physical_device = physical_device,
                                           .device = device,
                                           .get_instance_proc_addr = get_instance_proc_addr,
                                           .enabled_extensions = requirements.extensions(),
                                           .enabled_features = requirements.features()}));
  }

  Buffer create_buffer(std::size_t elements) {
    Buffer buffer;
    buffer.span.bytes = elements * sizeof(float);
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = std::max<VkDeviceSize>(buffer.span.bytes, 16);
    info.usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    check(CALL(vkCreateBuffer)(device, &info, nullptr, &buffer.handle), "vkCreateBuffer");
    VkMemoryRequirements needs;
    CALL(vkGetBufferMemoryRequirements)(device, buffer.handle, &needs);
    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocation{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags, needs.size,
                                    host_visible_type(needs.memoryTypeBits)};
    check(CALL(vkAllocateMemory)(device, &allocation, nullptr, &buffer.memory), "vkAllocateMemory");
    check(CALL(vkBindBufferMemory)(device, buffer.handle, buffer.memory, 0), "vkBindBufferMemory");
    void* data = nullptr;
    check(CALL(vkMapMemory)(device, buffer.memory, 0, VK_WHOLE_SIZE, 0, &data), "vkMapMemory");
    buffer.data = static_cast<float*>(data);
    VkBufferDeviceAddressInfo address{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr,
                                      buffer.handle};
    buffer.span.address = CALL(vkGetBufferDeviceAddress)(device, &address);
    buffers.push_back(buffer);
    return buffer;
  }

  void run(const vkgemm::Plan& plan, const vkgemm::Operands& operands) {
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool,
                                     VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    check(CALL(vkAllocateCommandBuffers)(device, &info, &commands), "vkAllocateCommandBuffers");
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check(CALL(vkBeginCommandBuffer)(commands, &begin), "vkBeginCommandBuffer");
    const vkgemm::Result<void> recorded = plan.record(commands, operands);
    if (!recorded) fail(recorded.error().message);
    // The application records the barrier after D: here the host reads it.
    VkMemoryBarrier to_host{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                            VK_ACCESS_HOST_READ_BIT};
    CALL(vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
     nullptr, 0, nullptr);
    check(CALL(vkEndCommandBuffer)(commands), "vkEndCommandBuffer");
    VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    check(CALL(vkQueueSubmit)(queue, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
    check(CALL(vkQueueWaitIdle)(queue), "vkQueueWaitIdle");
  }

  ~Application() {
    for (const Buffer& buffer : buffers) {
      CALL(vkDestroyBuffer)(device, buffer.handle, nullptr);
      CALL(vkFreeMemory)(device, buffer.memory, nullptr);
    }
    CALL(vkDestroyCommandPool)(device, pool, nullptr);
    CALL(vkDestroyDevice)(device, nullptr);
    CALL(vkDestroyInstance)(instance, nullptr);
  }

  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;

 private:
  void create_device(const vkgemm::Requirements& requirements) {
    const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue_info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    info.pNext = requirements.features();
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue_info;
    info.enabledExtensionCount = static_cast<std::uint32_t>(requirements.extensions().size());
    info.ppEnabledExtensionNames = requirements.extensions().data();
    check(CALL(vkCreateDevice)(physical_device, &info, nullptr, &device), "vkCreateDevice");
    CALL(vkGetDeviceQueue)(device, 0, 0, &queue);
    VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    check(CALL(vkCreateCommandPool)(device, &pool_info, nullptr, &pool), "vkCreateCommandPool");
  }

  std::uint32_t host_visible_type(std::uint32_t allowed) const {
    constexpr VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties properties;
    CALL(vkGetPhysicalDeviceMemoryProperties)(physical_device, &properties);
    for (std::uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags flags = properties.memoryTypes[i].propertyFlags;
      if ((allowed >> i & 1) != 0 && (flags & wanted) == wanted) return i;
    }
    fail("no host-visible memory");
  }

  VkQueue queue = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  std::vector<Buffer> buffers;
};

}  // namespace consumer
