#include <vkgemm/vkgemm.hpp>

// D = A·B of f32 matrices, by nine products of bf16 parts. To pack B once, use
// context.plan_pack(in_parts(1, n, k), PackedOperand::b).
vkgemm::Problem in_parts(std::uint64_t m, std::uint64_t n, std::uint64_t k) {
  const vkgemm::Matrix f32{.type = vkgemm::DataType::f32};
  return {.m = m,
          .n = n,
          .k = k,
          .a = f32,
          .b = f32,
          .d = f32,
          .f32_arithmetic = vkgemm::F32Arithmetic::bf16x9};
}

// Serves any number of rows. Record it with .b = packed and .b_fingerprint = layout().fingerprint.
// If layout().bytes is 0, leave B plain.
vkgemm::Result<vkgemm::Plan> plan_in_parts(const vkgemm::Context& context, std::uint64_t m,
                                           std::uint64_t n, std::uint64_t k) {
  vkgemm::Problem problem = in_parts(m, n, k);
  problem.b.packing = vkgemm::Packing::packed;
  return context.plan(problem);
}
