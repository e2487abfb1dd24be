#include <vkgemm/vkgemm.hpp>

// A in f16 becomes codes of s8, with a scale for each 64 elements of a row.
vkgemm::Result<vkgemm::Plan> plan_activations(const vkgemm::Context& context, std::uint64_t m,
                                              std::uint64_t k) {
  return context.plan_quantise_rows({.rows = m, .columns = k, .group_k = 64});
}

// D = A·B of these codes and of int4 codes. With plan_pack() of the same problem B was packed, from
// a plain b.packing.
vkgemm::Result<vkgemm::Plan> plan_product(const vkgemm::Context& context, std::uint64_t m,
                                          std::uint64_t n, std::uint64_t k) {
  return context.plan(
      {.m = m,
       .n = n,
       .k = k,
       .a = {.type = vkgemm::DataType::s8},
       .b = {.type = vkgemm::DataType::s8, .packing = vkgemm::Packing::packed},
       .epilogue = {.row_scales = vkgemm::Scales::shared},
       .quantised_b = vkgemm::Quantisation{.type = vkgemm::CodeType::int4, .group_k = 128},
       .a_group_k = 64});
}
