#include <vkgemm/vkgemm.hpp>

#include <cstdio>

// D = gelu(1.25 * A·B + 0.5 * C + bias) in f16, recorded into the application's command buffer.
// The context is made once per VkDevice:
//   auto needs = vkgemm::query_requirements(instance, gpu, vkGetInstanceProcAddr);
//   … vkCreateDevice with needs->extensions() and needs->features() …
//   auto context = vkgemm::Context::create({.instance = instance,
//                                           .physical_device = gpu,
//                                           .device = device,
//                                           .get_instance_proc_addr = vkGetInstanceProcAddr,
//                                           .enabled_extensions = needs->extensions(),
//                                           .enabled_features = needs->features()});
bool record_layer(const vkgemm::Context& context, VkCommandBuffer commands,
                  const vkgemm::Operands& operands) {
  const vkgemm::Problem problem{.m = 8192,
                                .n = 8192,
                                .k = 8192,
                                .epilogue = {.alpha = 1.25f,
                                             .beta = 0.5f,
                                             .bias = vkgemm::Bias::along_n,
                                             .activation = vkgemm::Activation::gelu_erf},
                                .max_workspace_bytes = operands.workspace.bytes};
  const auto plan = context.plan(problem);  // slow once; the context keeps the pipeline
  if (!plan) return std::puts(plan.error().message.c_str()), false;
  const auto recorded = plan->record(commands, operands);  // never allocates or submits
  if (!recorded) return std::puts(recorded.error().message.c_str()), false;
  return true;
}

// Tokens sorted by expert, as many of each as only the device knows: expert e multiplies rows
// [offsets[e], offsets[e + 1]) of A by matrix e of B. operands.offsets holds these 65 numbers;
// nothing is padded, nothing read back.
bool record_experts(const vkgemm::Context& context, VkCommandBuffer commands,
                    const vkgemm::Operands& operands) {
  const vkgemm::Problem problem{
      .m = 16384,  // tokens that there is room for
      .n = 4096,
      .k = 4096,
      .grouping = vkgemm::Grouping{.groups = 64, .b = vkgemm::GroupedB::per_group},
      .max_workspace_bytes = operands.workspace.bytes};
  const auto plan = context.plan(problem);
  return plan && plan->record(commands, operands);
}

// Half of a feed-forward network of such experts in one dispatch: silu(A·gate) * (A·up). A matrix
// of B holds the 4096 columns of gate, then those of up; both products read A once, and D is
// 16384×4096.
bool record_gated_experts(const vkgemm::Context& context, VkCommandBuffer commands,
                          const vkgemm::Operands& operands) {
  const vkgemm::Problem problem{
      .m = 16384,
      .n = 4096,
      .k = 4096,
      .gated = vkgemm::Gated{.gate = vkgemm::Gate::swiglu},
      .grouping = vkgemm::Grouping{.groups = 64, .b = vkgemm::GroupedB::per_group},
      .max_workspace_bytes = operands.workspace.bytes};
  const auto plan = context.plan(problem);
  return plan && plan->record(commands, operands);
}
