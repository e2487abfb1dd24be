#include <vkgemm/vkgemm.hpp>

// Before vkCreateDevice, which gets needs.extensions(), and needs.features() as its pNext.
vkgemm::Result<vkgemm::Requirements> ask(VkInstance instance, VkPhysicalDevice gpu) {
  return vkgemm::query_requirements(instance, gpu, vkGetInstanceProcAddr);
}

// Once for each VkDevice. plan() may test kernels on this queue. Meanwhile, other threads must not
// use it.
vkgemm::Result<vkgemm::Context> make_context(VkInstance instance, VkPhysicalDevice gpu,
                                             VkDevice device, VkQueue queue, std::uint32_t family,
                                             const vkgemm::Requirements& needs) {
  return vkgemm::Context::create({.instance = instance,
                                  .physical_device = gpu,
                                  .device = device,
                                  .get_instance_proc_addr = vkGetInstanceProcAddr,
                                  .enabled_extensions = needs.extensions(),
                                  .enabled_features = needs.features(),
                                  .self_test = {.queue = queue, .queue_family = family}});
}

// Once for each shape: D = gelu(A·B + bias). By default matrices are f16 and row-major, bias f32.
vkgemm::Result<vkgemm::Plan> plan_layer(const vkgemm::Context& context, std::uint64_t m,
                                        std::uint64_t n, std::uint64_t k) {
  const vkgemm::Epilogue epilogue{.bias = vkgemm::Bias::along_n,
                                  .activation = vkgemm::Activation::gelu_erf};
  return context.plan({.m = m, .n = n, .k = k, .epilogue = epilogue});
}

// As often as you like: it never allocates, compiles or submits. A span is an address from
// vkGetBufferDeviceAddress and a size; plan.operands() has the sizes.
vkgemm::Result<void> record_layer(const vkgemm::Plan& plan, VkCommandBuffer commands,
                                  vkgemm::DeviceSpan a, vkgemm::DeviceSpan b,
                                  vkgemm::DeviceSpan bias, vkgemm::DeviceSpan d,
                                  vkgemm::DeviceSpan workspace) {
  return plan.record(commands, {.a = a, .b = b, .d = d, .bias = bias, .workspace = workspace});
}
