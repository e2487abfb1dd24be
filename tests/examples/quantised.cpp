#include <vkgemm/vkgemm.hpp>

// A linear layer with n outputs, k inputs and 4-bit weights. 128 inputs of an output share a scale.
vkgemm::Problem linear(std::uint64_t rows, std::uint64_t n, std::uint64_t k) {
  vkgemm::Problem problem{.m = rows, .n = n, .k = k};
  problem.b.layout = vkgemm::Layout::col_major;  // as torch.nn.Linear: inputs are contiguous
  problem.quantised_b = {.type = vkgemm::CodeType::int4, .group_k = 128};
  return problem;
}

// Call it once. The plan is context.plan_pack(linear(1, n, k), PackedOperand::b). plan.operands()
// has the sizes of `codes`, `scales` and `packed`.
vkgemm::Result<void> pack_codes(const vkgemm::Plan& plan, VkCommandBuffer commands,
                                vkgemm::DeviceSpan codes, vkgemm::DeviceSpan scales,
                                vkgemm::DeviceSpan packed) {
  return plan.record(commands, {.codes = codes, .scales = scales, .packed = packed});
}

// Serves any number of rows. Record it with .b = packed and .b_fingerprint = layout().fingerprint.
vkgemm::Result<vkgemm::Plan> plan_linear(const vkgemm::Context& context, std::uint64_t rows,
                                         std::uint64_t n, std::uint64_t k) {
  vkgemm::Problem problem = linear(rows, n, k);
  problem.b = {.packing = vkgemm::Packing::packed};
  return context.plan(problem);
}
