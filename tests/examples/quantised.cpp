#include <vkgemm/vkgemm.hpp>

// A linear layer of n outputs and k inputs, 4 bits a weight, a scale for each 128 inputs of one.
vkgemm::Problem linear(std::uint64_t rows, std::uint64_t n, std::uint64_t k) {
  vkgemm::Problem problem{.m = rows, .n = n, .k = k};
  problem.b.layout = vkgemm::Layout::col_major;  // as torch.nn.Linear has it: inputs are neighbours
  problem.quantised_b = {.type = vkgemm::CodeType::int4, .group_k = 128};
  return problem;
}

// Once. The plan is context.plan_pack(linear(1, n, k), PackedOperand::b). Its operands() say how
// many bytes `codes`, `scales` and `packed` have.
vkgemm::Result<void> pack_codes(const vkgemm::Plan& plan, VkCommandBuffer commands,
                                vkgemm::DeviceSpan codes, vkgemm::DeviceSpan scales,
                                vkgemm::DeviceSpan packed) {
  return plan.record(commands, {.codes = codes, .scales = scales, .packed = packed});
}

// Then for any number of rows; recorded with .b = packed, .b_fingerprint = layout().fingerprint.
vkgemm::Result<vkgemm::Plan> plan_linear(const vkgemm::Context& context, std::uint64_t rows,
                                         std::uint64_t n, std::uint64_t k) {
  vkgemm::Problem problem = linear(rows, n, k);
  problem.b = {.packing = vkgemm::Packing::packed};
  return context.plan(problem);
}
