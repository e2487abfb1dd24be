// A linear layer and its gradients in three products, in f32:
//   z  = x·w + bias            y = relu(z)
//   dz = (g·vᵀ) * relu'(z)     dbias = the sums of dz's columns
//   dw = xᵀ·dz
// v is the weight of the next layer, g the gradient of its result. The second product multiplies by
// the derivative, and sums the columns, before it writes dz.
#include <vkgemm/vkgemm.hpp>

#include <cstdint>

struct LinearLayer {
  vkgemm::Plan forward;
  vkgemm::Plan gradient;
  vkgemm::Plan weight_gradient;
};

// x: rows × inputs; w: inputs × outputs; v: outputs × next; g: rows × next.
vkgemm::Result<LinearLayer> plan_layer_and_gradients(const vkgemm::Context& context,
                                                     std::uint64_t rows, std::uint64_t inputs,
                                                     std::uint64_t outputs, std::uint64_t next) {
  using namespace vkgemm;
  const Matrix in_rows{.type = DataType::f32};
  const Matrix in_columns{.type = DataType::f32, .layout = Layout::col_major};  // a transpose
  auto forward = context.plan(
      {.m = rows,
       .n = outputs,
       .k = inputs,
       .a = in_rows,
       .b = in_rows,
       .d = in_rows,
       .aux = in_rows,  // z
       .epilogue = {.bias = Bias::along_n, .activation = Activation::relu, .aux = true}});
  if (!forward) return forward.error();
  Problem backward{.m = rows, .n = outputs, .k = next, .a = in_rows, .b = in_columns, .d = in_rows};
  backward.t0 = backward.t1 = in_rows;
  backward.epilogue.tensors = {TensorShape::matrix, TensorShape::along_n};
  backward.epilogue.steps[0] = {
      .op = StepOp::derivative, .activation = Activation::relu, .operand = StepOperand::t0};
  backward.epilogue.steps[1] = {.op = StepOp::sum_columns, .operand = StepOperand::t1};
  auto gradient = context.plan(backward);
  if (!gradient) return gradient.error();
  auto weight_gradient = context.plan(
      {.m = inputs, .n = outputs, .k = rows, .a = in_columns, .b = in_rows, .d = in_rows});
  if (!weight_gradient) return weight_gradient.error();
  return LinearLayer{*forward, *gradient, *weight_gradient};
}

// Each plan has a workspace of its own here: two of them may then run at the same time.
struct LinearLayerOperands {
  vkgemm::DeviceSpan x, w, bias, v, g;
  vkgemm::DeviceSpan y, z, dz, dbias, dw;
  vkgemm::DeviceSpan workspaces[3];
};

vkgemm::Result<void> record_layer_and_gradients(const LinearLayer& layer, VkCommandBuffer commands,
                                                const LinearLayerOperands& in) {
  // Each product reads results of the one before.
  const auto wait = [commands] {
    const VkMemoryBarrier written{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_SHADER_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &written, 0, nullptr, 0,
                         nullptr);
  };
  auto recorded = layer.forward.record(commands, {.a = in.x,
                                                  .b = in.w,
                                                  .d = in.y,
                                                  .bias = in.bias,
                                                  .aux = in.z,
                                                  .workspace = in.workspaces[0]});
  if (!recorded) return recorded;
  wait();
  recorded = layer.gradient.record(commands, {.a = in.g,
                                              .b = in.v,
                                              .d = in.dz,
                                              .t0 = in.z,
                                              .t1 = in.dbias,
                                              .workspace = in.workspaces[1]});
  if (!recorded) return recorded;
  wait();
  return layer.weight_gradient.record(
      commands, {.a = in.x, .b = in.dz, .d = in.dw, .workspace = in.workspaces[2]});
}
