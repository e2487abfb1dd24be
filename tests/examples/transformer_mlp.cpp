// The MLP of a transformer block in two dispatches, in f16. The first reads x once for both of its
// products; the second leaves the residual stream, and the rows of it that the next block begins
// with, normalised:
//   h      = silu(x·Wgate) * (x·Wup)
//   stream = residual + h·Wdown
//   y      = rms_norm(stream) * gamma
#include <vkgemm/vkgemm.hpp>

#include <cstdint>

struct Mlp {
  vkgemm::Plan up;
  vkgemm::Plan down;
};

vkgemm::Result<Mlp> plan_mlp(const vkgemm::Context& context, std::uint64_t tokens,
                             std::uint64_t width, std::uint64_t hidden) {
  auto up = context.plan({.m = tokens,
                          .n = hidden,  // of h: B is [Wgate Wup], width × 2·hidden
                          .k = width,
                          .gated = vkgemm::Gated{.gate = vkgemm::Gate::swiglu}});
  if (!up) return up.error();
  // aux is the value before rows are normalised. A block that normalises last needs no aux.
  auto down = context.plan(
      {.m = tokens,
       .n = width,
       .k = hidden,
       .epilogue = {.beta = 1.0f, .aux = true},
       .row_reduction = vkgemm::RowReduction{.op = vkgemm::RowOp::rms_norm, .gamma = true}});
  if (!down) return down.error();
  return Mlp{*up, *down};
}

// The operands that the application has in its buffers. The workspace is as large as the larger one
// of up.workspace_bytes() and down.workspace_bytes(): one after the other, both plans may use it.
struct MlpOperands {
  vkgemm::DeviceSpan x, w_gate_up, w_down, residual, gamma;
  vkgemm::DeviceSpan h, stream, y, workspace;
  VkBuffer h_buffer = VK_NULL_HANDLE;
};

vkgemm::Result<void> record_mlp(const Mlp& mlp, VkCommandBuffer commands, const MlpOperands& in) {
  auto recorded =
      mlp.up.record(commands, {.a = in.x, .b = in.w_gate_up, .d = in.h, .workspace = in.workspace});
  if (!recorded) return recorded;

  // One plan doesn't wait for the other: what the first has written, the second is to read.
  const VkBufferMemoryBarrier h_is_written{.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
                                           .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                           .dstAccessMask = VK_ACCESS_SHADER_READ_BIT,
                                           .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                           .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                           .buffer = in.h_buffer,
                                           .size = VK_WHOLE_SIZE};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                       VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0, nullptr, 1, &h_is_written, 0,
                       nullptr);

  return mlp.down.record(commands, {.a = in.h,
                                    .b = in.w_down,
                                    .c = in.residual,
                                    .d = in.y,
                                    .aux = in.stream,
                                    .gamma = in.gamma,
                                    .workspace = in.workspace});
}
