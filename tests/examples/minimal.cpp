#include <vkgemm/vkgemm.hpp>

// Once for each VkDevice, which was created with needs.extensions() and needs.features().
vkgemm::Result<vkgemm::Context> make_context(VkInstance instance, VkPhysicalDevice gpu,
                                             VkDevice device, const vkgemm::Requirements& needs) {
  return vkgemm::Context::create({.instance = instance,
                                  .physical_device = gpu,
                                  .device = device,
                                  .get_instance_proc_addr = vkGetInstanceProcAddr,
                                  .enabled_extensions = needs.extensions(),
                                  .enabled_features = needs.features()});
}

// Once for each shape: D = gelu(1.25 * A·B + 0.5 * C + bias). Matrices are f16, the bias is f32.
vkgemm::Result<vkgemm::Plan> plan_layer(const vkgemm::Context& context) {
  return context.plan({.m = 8192,
                       .n = 8192,
                       .k = 8192,
                       .epilogue = {.alpha = 1.25f,
                                    .beta = 0.5f,
                                    .bias = vkgemm::Bias::along_n,
                                    .activation = vkgemm::Activation::gelu_erf}});
}

// As often as you like: record() never allocates, compiles or submits. operands.workspace has
// plan.workspace_bytes(); all operands are device addresses with a size.
vkgemm::Result<void> record_layer(const vkgemm::Plan& plan, VkCommandBuffer commands,
                                  const vkgemm::Operands& operands) {
  return plan.record(commands, operands);
}
