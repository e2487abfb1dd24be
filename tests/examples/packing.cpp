#include <vkgemm/vkgemm.hpp>

// Once. The plan is context.plan_pack(problem, PackedOperand::b); `packed` has layout().bytes,
// aligned to layout().alignment. Put a barrier before the first product.
vkgemm::Result<void> pack_weight(const vkgemm::Plan& plan, VkCommandBuffer commands,
                                 vkgemm::DeviceSpan weight, vkgemm::DeviceSpan packed) {
  return plan.record(commands, {.source = weight, .packed = packed});
}

// Then with any M and epilogue; recorded with .b = packed, .b_fingerprint = layout().fingerprint.
vkgemm::Result<vkgemm::Plan> plan_packed(const vkgemm::Context& context, vkgemm::Problem problem) {
  problem.b = {.type = problem.b.type, .packing = vkgemm::Packing::packed};
  return context.plan(problem);
}
