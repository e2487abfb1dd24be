#include <vkgemm/vkgemm.hpp>

// Split-K: 16 workgroups share a tile, each multiplies 4096 of K, and a second dispatch adds their
// results in order. The workspace is 16 * 128 * 128 * 4 bytes.
vkgemm::Result<vkgemm::Plan> plan_deep(const vkgemm::Context& context) {
  return context.plan({.m = 128,
                       .n = 128,
                       .k = 65536,
                       .d = {.type = vkgemm::DataType::f32},
                       .split_k = {.slices = 16}});
}

// Tokens are sorted by expert, and only the device knows how many each expert has. Expert e
// multiplies rows [offsets[e], offsets[e + 1]) of A by matrix e of B, which is K×N.
// Operands::offsets holds 65 int32 numbers. m is the largest number of tokens.
vkgemm::Result<vkgemm::Plan> plan_experts(const vkgemm::Context& context) {
  return context.plan(
      {.m = 16384,
       .n = 4096,
       .k = 4096,
       .grouping = vkgemm::Grouping{.groups = 64, .b = vkgemm::GroupedB::per_group}});
}

// The first layer of experts that are feed-forward networks: D = silu(A·gate) * (A·up). Each matrix
// of B is K×8192: the 4096 columns of gate, then those of up. D is 16384×4096.
vkgemm::Result<vkgemm::Plan> plan_gated_experts(const vkgemm::Context& context) {
  return context.plan(
      {.m = 16384,
       .n = 4096,
       .k = 4096,
       .gated = vkgemm::Gated{.gate = vkgemm::Gate::swiglu},
       .grouping = vkgemm::Grouping{.groups = 64, .b = vkgemm::GroupedB::per_group}});
}

// Rows of D, normalised after the residual is added. aux keeps the sum: the values before an
// activation, a clamp and the row reduction.
vkgemm::Result<vkgemm::Plan> plan_normalised(const vkgemm::Context& context) {
  return context.plan(
      {.m = 512,
       .n = 4096,
       .k = 14336,
       .epilogue = {.beta = 1.0f, .aux = true},
       .row_reduction = vkgemm::RowReduction{.op = vkgemm::RowOp::rms_norm, .gamma = true}});
}
