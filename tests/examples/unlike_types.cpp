#include <vkgemm/vkgemm.hpp>

// D = A·B of f32 activations and bf16 weights.
vkgemm::Result<vkgemm::Plan> plan_unlike_types(const vkgemm::Context& context, std::uint64_t m,
                                               std::uint64_t n, std::uint64_t k) {
  const vkgemm::Problem problem{.m = m,
                                .n = n,
                                .k = k,
                                .a = {.type = vkgemm::DataType::f32},
                                .b = {.type = vkgemm::DataType::bf16},
                                .d = {.type = vkgemm::DataType::f32},
                                .multiply_as = vkgemm::DataType::bf16};
  return context.plan(problem);
}
