#include <vkgemm/vkgemm.hpp>

// D = A·B of f16 matrices, by 8-bit products. B is K×N and column-major. Quantise B once, and A in
// each call. Each row of A and each column of B has a scale.
vkgemm::Result<vkgemm::Plan> plan_codes(const vkgemm::Context& context, std::uint64_t rows,
                                        std::uint64_t k) {
  return context.plan_quantise_rows({.rows = rows, .columns = k});  // columns of B are rows here
}

vkgemm::Result<vkgemm::Plan> plan_codes_product(const vkgemm::Context& context, std::uint64_t m,
                                                std::uint64_t n, std::uint64_t k) {
  return context.plan({.m = m,
                       .n = n,
                       .k = k,
                       .a = {.type = vkgemm::DataType::s8},
                       .b = {.type = vkgemm::DataType::s8, .layout = vkgemm::Layout::col_major},
                       .epilogue = {.row_scales = vkgemm::Scales::shared,
                                    .column_scales = vkgemm::Scales::shared}});
}
