#include <cstdint>
#include <cstdio>
#include <vkgemm/vkgemm.hpp>

// Called before vkCreateDevice, which gets needs.extensions(), and needs.features() as its pNext.
// The instance is one of Vulkan 1.3.
vkgemm::Result<vkgemm::Requirements> ask_what_to_enable(VkInstance instance, VkPhysicalDevice gpu) {
  return vkgemm::query_requirements(instance, gpu, vkGetInstanceProcAddr);
}

// Called once for each VkDevice.
vkgemm::Result<vkgemm::Context> make_context(VkInstance instance, VkPhysicalDevice gpu,
                                             VkDevice device, const vkgemm::Requirements& needs) {
  return vkgemm::Context::create({.instance = instance,
                                  .physical_device = gpu,
                                  .device = device,
                                  .get_instance_proc_addr = vkGetInstanceProcAddr,
                                  .enabled_extensions = needs.extensions(),
                                  .enabled_features = needs.features()});
}

// Called once for each shape: D = gelu(1.25 * A·B + 0.5 * C + bias). By default matrices are f16,
// row-major and packed, and the bias is f32.
constexpr std::uint64_t m = 512, n = 4096, k = 1024;
vkgemm::Result<vkgemm::Plan> plan_layer(const vkgemm::Context& context) {
  auto plan = context.plan({.m = m,
                            .n = n,
                            .k = k,
                            .epilogue = {.alpha = 1.25f,
                                         .beta = 0.5f,
                                         .bias = vkgemm::Bias::along_n,
                                         .activation = vkgemm::Activation::gelu_erf}});
  if (!plan) std::puts(plan.error().message.c_str());  // else *plan is the value
  return plan;
}

// Results of vkGetBufferDeviceAddress: multiples of 16, the workspace's of 256.
struct Addresses {
  VkDeviceAddress a, b, c, d, bias, workspace;
};

// Called as often as you like: it never allocates, compiles or submits. The barriers are yours:
// before it from what wrote the operands to compute shaders, after it from these to what reads D.
vkgemm::Result<void> record_layer(const vkgemm::Plan& plan, VkCommandBuffer commands,
                                  const Addresses& at) {
  return plan.record(commands, {.a = {at.a, m * k * 2},  // address, bytes
                                .b = {at.b, k * n * 2},
                                .c = {at.c, m * n * 2},  // because beta is not 0
                                .d = {at.d, m * n * 2},
                                .bias = {at.bias, n * 4},
                                .workspace = {at.workspace, plan.workspace_bytes()}});
}
