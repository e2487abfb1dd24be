#include "app.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

_Noreturn void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

static void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) fail("%s gave %d", what, (int)result);
}

// The application's way to its Vulkan functions; vkgemm has its own.
#define CALL(function) ((PFN_##function)app->get_instance_proc_addr(app->instance, #function))

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                 void* user_data) {
  (void)severity;
  (void)types;
  ++((App*)user_data)->messages;
  fprintf(stderr, "%s\n", data->pMessage);
  return VK_FALSE;
}

static PFN_vkGetInstanceProcAddr vulkan_loader(void) {
#ifdef _WIN32
  const HMODULE loader = LoadLibraryA("vulkan-1.dll");
  const FARPROC function = loader != NULL ? GetProcAddress(loader, "vkGetInstanceProcAddr") : NULL;
#else
  void* const loader = dlopen("libvulkan.so.1", RTLD_NOW);
  void* const function = loader != NULL ? dlsym(loader, "vkGetInstanceProcAddr") : NULL;
#endif
  if (function == NULL) fail("no Vulkan loader");
  PFN_vkGetInstanceProcAddr found;
  memcpy(&found, &function, sizeof found);  // ISO C has no cast from objects to functions
  return found;
}

App* app_open(void) {
  App* app = calloc(1, sizeof *app);
  if (app == NULL) fail("no memory");
  app->get_instance_proc_addr = vulkan_loader();

  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .apiVersion = VK_API_VERSION_1_3};
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                               .pApplicationInfo = &application};
  const VkDebugUtilsMessengerCreateInfoEXT messenger = {
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
      .pfnUserCallback = on_message,
      .pUserData = app};
  const char* const layer = "VK_LAYER_KHRONOS_validation";
  const char* const extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  const char* const wanted = getenv("VKGEMM_VALIDATION");
  const int validated = wanted != NULL && strcmp(wanted, "1") == 0;
  if (validated) {
    info.pNext = &messenger;  // of instances that are made and destroyed, too
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
  }
  check(CALL(vkCreateInstance)(&info, NULL, &app->instance), "vkCreateInstance");
  if (validated) {
    check(CALL(vkCreateDebugUtilsMessengerEXT)(app->instance, &messenger, NULL, &app->messenger),
          "vkCreateDebugUtilsMessengerEXT");
  }
  uint32_t count = 1;
  const VkResult found =
      CALL(vkEnumeratePhysicalDevices)(app->instance, &count, &app->physical_device);
  if (found < 0 || count == 0) fail("no Vulkan device");
  return app;
}

void app_create_device(App* app, uint32_t extension_count, const char* const* extensions,
                       const VkPhysicalDeviceFeatures2* features) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  CALL(vkGetPhysicalDeviceQueueFamilyProperties)(app->physical_device, &count, families);
  while (app->queue_family < count &&
         (families[app->queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    ++app->queue_family;
  }
  if (app->queue_family == count) fail("no queue that computes");
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = app->queue_family,
                                         .queueCount = 1,
                                         .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   .pNext = features,
                                   .queueCreateInfoCount = 1,
                                   .pQueueCreateInfos = &queue,
                                   .enabledExtensionCount = extension_count,
                                   .ppEnabledExtensionNames = extensions};
  check(CALL(vkCreateDevice)(app->physical_device, &info, NULL, &app->device), "vkCreateDevice");
  CALL(vkGetDeviceQueue)(app->device, app->queue_family, 0, &app->queue);
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = app->queue_family};
  check(CALL(vkCreateCommandPool)(app->device, &pool, NULL, &app->pool), "vkCreateCommandPool");
}

static uint32_t host_visible_type(App* app, uint32_t allowed) {
  const VkMemoryPropertyFlags wanted =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkPhysicalDeviceMemoryProperties memory;
  CALL(vkGetPhysicalDeviceMemoryProperties)(app->physical_device, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    if ((allowed >> i & 1) != 0 && (flags & wanted) == wanted) return i;
  }
  fail("no host-visible memory");
}

Buffer app_create_buffer(App* app, VkDeviceSize bytes) {
  Buffer buffer = {.bytes = bytes};
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = bytes != 0 ? bytes : 4,
      .usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
  check(CALL(vkCreateBuffer)(app->device, &info, NULL, &buffer.handle), "vkCreateBuffer");
  VkMemoryRequirements needs;
  CALL(vkGetBufferMemoryRequirements)(app->device, buffer.handle, &needs);
  const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                           .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo allocation = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .pNext = &flags,
      .allocationSize = needs.size,
      .memoryTypeIndex = host_visible_type(app, needs.memoryTypeBits)};
  check(CALL(vkAllocateMemory)(app->device, &allocation, NULL, &buffer.memory), "vkAllocateMemory");
  check(CALL(vkBindBufferMemory)(app->device, buffer.handle, buffer.memory, 0),
        "vkBindBufferMemory");
  check(CALL(vkMapMemory)(app->device, buffer.memory, 0, VK_WHOLE_SIZE, 0, &buffer.data),
        "vkMapMemory");
  const VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = buffer.handle};
  buffer.address = CALL(vkGetBufferDeviceAddress)(app->device, &address);
  return buffer;
}

void app_destroy_buffer(App* app, Buffer* buffer) {
  CALL(vkDestroyBuffer)(app->device, buffer->handle, NULL);
  CALL(vkFreeMemory)(app->device, buffer->memory, NULL);
  *buffer = (Buffer){0};
}

VkCommandBuffer app_begin(App* app) {
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = app->pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(CALL(vkAllocateCommandBuffers)(app->device, &info, &commands), "vkAllocateCommandBuffers");
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  check(CALL(vkBeginCommandBuffer)(commands, &begin), "vkBeginCommandBuffer");
  return commands;
}

static void barrier(App* app, VkCommandBuffer commands, VkPipelineStageFlags stage,
                    VkAccessFlags access) {
  const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                  .dstAccessMask = access};
  CALL(vkCmdPipelineBarrier)
  (commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, stage, 0, 1, &memory, 0, NULL, 0, NULL);
}

void app_barrier(App* app, VkCommandBuffer commands) {
  barrier(app, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
}

void app_run(App* app, VkCommandBuffer commands) {
  barrier(app, commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  check(CALL(vkEndCommandBuffer)(commands), "vkEndCommandBuffer");
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
  check(CALL(vkQueueSubmit)(app->queue, 1, &submit, VK_NULL_HANDLE), "vkQueueSubmit");
  check(CALL(vkQueueWaitIdle)(app->queue), "vkQueueWaitIdle");
  CALL(vkFreeCommandBuffers)(app->device, app->pool, 1, &commands);
}

void app_close(App* app) {
  if (app->device != VK_NULL_HANDLE) {
    CALL(vkDestroyCommandPool)(app->device, app->pool, NULL);
    CALL(vkDestroyDevice)(app->device, NULL);
  }
  if (app->messenger != VK_NULL_HANDLE) {
    CALL(vkDestroyDebugUtilsMessengerEXT)(app->instance, app->messenger, NULL);
  }
  CALL(vkDestroyInstance)(app->instance, NULL);
  if (app->messages != 0) fail("%u messages of the validation layers", app->messages);
  free(app);
}
