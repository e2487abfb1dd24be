#include <vkgemm/vkgemm.hpp>

// Once for each weight: records the packing of B to `packed`, which has as many bytes as
// packed_layout(problem, PackedOperand::b) says. 0 bytes: leave B as it is.
vkgemm::Result<vkgemm::Fingerprint> pack_weight(const vkgemm::Context& context,
                                                const vkgemm::Problem& problem,
                                                VkCommandBuffer commands, vkgemm::DeviceSpan weight,
                                                vkgemm::DeviceSpan packed) {
  const auto plan = context.plan_pack(problem, vkgemm::PackedOperand::b);
  if (!plan) return plan.error();
  const auto recorded = plan->record(commands, weight, packed);
  if (!recorded) return recorded.error();
  return plan->layout().fingerprint;  // may be stored beside the packed bytes
}

// From then on, with any M and epilogue. At record: .b = packed, .b_fingerprint = the fingerprint.
vkgemm::Result<vkgemm::Plan> plan_packed(const vkgemm::Context& context, vkgemm::Problem problem) {
  problem.b = {.type = problem.b.type, .packing = vkgemm::Packing::packed};
  return context.plan(problem);
}
