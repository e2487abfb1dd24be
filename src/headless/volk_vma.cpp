// The one place where volk and VulkanMemoryAllocator, both header-only, are compiled.
#define VOLK_IMPLEMENTATION
#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <volk.h>
// After volk, of which it uses the function pointers.
#include <vk_mem_alloc.h>
