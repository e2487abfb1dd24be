// app.h: a Vulkan application with its own instance, device, memory and command buffers, for
// programs that call vkgemm.h from C and from other languages. What goes wrong ends the process
// with a message.
#ifndef VKGEMM_TESTS_C_APP_H
#define VKGEMM_TESTS_C_APP_H

#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan_core.h>

typedef struct App {
  VkInstance instance;
  VkPhysicalDevice physical_device;
  VkDevice device;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr;
  VkQueue queue;
  uint32_t queue_family;
  VkCommandPool pool;
  VkDebugUtilsMessengerEXT messenger;
  uint32_t messages;  // of the validation layers
} App;

// Memory that host and device see.
typedef struct Buffer {
  VkBuffer handle;
  VkDeviceMemory memory;
  void* data;
  VkDeviceAddress address;
  VkDeviceSize bytes;
} Buffer;

// The first device there is. With VKGEMM_VALIDATION=1 in the environment under the validation
// layers, any message of which makes app_close() fail.
App* app_open(void);

// Makes the device, with what vkgemm_requirements_*() say.
void app_create_device(App* app, uint32_t extension_count, const char* const* extensions,
                       const VkPhysicalDeviceFeatures2* features);

Buffer app_create_buffer(App* app, VkDeviceSize bytes);
void app_destroy_buffer(App* app, Buffer* buffer);

// A command buffer in the recording state.
VkCommandBuffer app_begin(App* app);

// A barrier from compute shaders to compute shaders.
void app_barrier(App* app, VkCommandBuffer commands);

// Ends the command buffer, runs it, waits for it and frees it. Afterwards the host sees the
// results.
void app_run(App* app, VkCommandBuffer commands);

void app_close(App* app);

// Ends the process.
_Noreturn void fail(const char* format, ...);

#endif  // VKGEMM_TESTS_C_APP_H
