// A layer of experts (mixture of experts), of f16 tokens, from the router's product to the sum:
//   p = softmax(x·router)                          each token chooses its largest p
//   h = silu(x·gate_e) * (x·up_e)                  for each choice (token, e)
//   y = the sum of p·(h·down_e) over the choices
// The choices, in device memory, are the application's: how many tokens chose each expert, and the
// choices sorted by expert. Choice c of token t has the number t · chosen + c. Tokens are neither
// copied nor sorted: the second product gathers them, and the third one adds its rows up.
#include <vkgemm/vkgemm.hpp>

#include <cstdint>

struct MoeLayer {
  vkgemm::Plan router;
  vkgemm::Plan up;
  vkgemm::Plan down;
};

// x and y: tokens × width; router: width × experts. Each expert has a matrix gate and up, side by
// side, of width × 2 · hidden, and a matrix down of hidden × width.
vkgemm::Result<MoeLayer> plan_moe_layer(const vkgemm::Context& context, std::uint64_t tokens,
                                        std::uint64_t width, std::uint64_t hidden,
                                        std::uint32_t experts, std::uint32_t chosen) {
  using namespace vkgemm;
  auto router = context.plan({.m = tokens,
                              .n = experts,
                              .k = width,
                              .d = {.type = DataType::f32},
                              .row_reduction = RowReduction{.op = RowOp::softmax}});
  if (!router) return router.error();
  const Grouping by_expert{
      .groups = experts, .b = GroupedB::per_group, .bounds = GroupBounds::sizes};
  Problem up{.m = tokens * chosen, .n = hidden, .k = width, .gated = Gated{.gate = Gate::swiglu}};
  up.grouping = by_expert;
  up.grouping->a_rows = tokens;
  up.grouping->a_terms = chosen;
  auto up_plan = context.plan(up);
  if (!up_plan) return up_plan.error();
  Problem down{.m = tokens * chosen, .n = width, .k = hidden};
  down.grouping = by_expert;
  down.grouping->d_rows = tokens;
  down.grouping->d_terms = chosen;
  down.grouping->row_weights = true;
  auto down_plan = context.plan(down);
  if (!down_plan) return down_plan.error();
  return MoeLayer{*router, *up_plan, *down_plan};
}

struct MoeLayerOperands {
  vkgemm::DeviceSpan x, router, gate_and_up, down;
  vkgemm::DeviceSpan choices;  // u32, tokens · chosen: their numbers, sorted by expert
  vkgemm::DeviceSpan sizes;    // int32: choices of each expert
  vkgemm::DeviceSpan weights;  // f32, tokens × chosen: p of each choice
  vkgemm::DeviceSpan p, h, y;  // results: tokens × experts in f32; choices × hidden; y
  vkgemm::DeviceSpan workspaces[3];
};

// The application reads p behind a barrier, and writes choices, sizes and weights.
vkgemm::Result<void> record_router(const MoeLayer& layer, VkCommandBuffer commands,
                                   const MoeLayerOperands& in) {
  return layer.router.record(commands,
                             {.a = in.x, .b = in.router, .d = in.p, .workspace = in.workspaces[0]});
}

vkgemm::Result<void> record_experts(const MoeLayer& layer, VkCommandBuffer commands,
                                    const MoeLayerOperands& in) {
  auto recorded = layer.up.record(commands, {.a = in.x,
                                             .b = in.gate_and_up,
                                             .d = in.h,
                                             .group_sizes = in.sizes,
                                             .row_index = in.choices,
                                             .workspace = in.workspaces[1]});
  if (!recorded) return recorded;
  const VkMemoryBarrier written{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                .dstAccessMask = VK_ACCESS_SHADER_READ_BIT};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                       VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &written, 0, nullptr, 0,
                       nullptr);
  return layer.down.record(commands, {.a = in.h,
                                      .b = in.down,
                                      .d = in.y,
                                      .group_sizes = in.sizes,
                                      .row_index = in.choices,
                                      .row_weights = in.weights,
                                      .workspace = in.workspaces[2]});
}
