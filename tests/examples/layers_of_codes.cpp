#include <vkgemm/vkgemm.hpp>

// Two linear layers on 8-bit codes, with a relu between them. Weights are column-major, as
// torch.nn.Linear has them, and quantised before: plan_quantise_rows().
vkgemm::Problem layer(std::uint64_t rows, std::uint64_t outputs, std::uint64_t inputs) {
  return {
      .m = rows,
      .n = outputs,
      .k = inputs,
      .a = {.type = vkgemm::DataType::s8},
      .b = {.type = vkgemm::DataType::s8, .layout = vkgemm::Layout::col_major},
      .epilogue = {.row_scales = vkgemm::Scales::shared, .column_scales = vkgemm::Scales::shared}};
}

// Record it with .d and .row_values. Then add a barrier.
vkgemm::Result<vkgemm::Plan> plan_first_layer(const vkgemm::Context& context, std::uint64_t rows,
                                              std::uint64_t outputs, std::uint64_t inputs) {
  vkgemm::Problem problem = layer(rows, outputs, inputs);
  problem.d.type = vkgemm::DataType::s8;
  problem.epilogue.activation = vkgemm::Activation::relu;
  problem.row_reduction = {.op = vkgemm::RowOp::quantise};
  return context.plan(problem);
}

// Record it with .a = the first layer's d, and .row_scales = its row_values.
vkgemm::Result<vkgemm::Plan> plan_last_layer(const vkgemm::Context& context, std::uint64_t rows,
                                             std::uint64_t outputs, std::uint64_t inputs) {
  return context.plan(layer(rows, outputs, inputs));
}
