// tests/examples/transformer_mlp.cpp and the README's C++ as they stand, on this device: their
// results against the reference, one product after the other. The gradients of
// tests/examples/linear_layer.cpp against finite differences.
#include <volk.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../examples/linear_layer.cpp"
#include "../examples/minimal.cpp"
#include "../examples/transformer_mlp.cpp"
#include "harness.hpp"
#include "oracle/reference.hpp"
#include "problem/convert.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes filled(std::uint64_t elements, DataType type, std::uint64_t seed) {
  Bytes bytes(elements * size_in_bytes(type));
  for (std::uint64_t i = 0; i < elements; ++i) {
    store_element(bytes.data(), type, i, fill_value(Fill::random, seed, i));
  }
  return bytes;
}

headless::Buffer uploaded(const Bytes& bytes) {
  headless::Buffer buffer = std::move(runner().allocate(bytes.size()).value());
  EXPECT_TRUE(succeeds(runner().upload(buffer, 0, bytes.data(), bytes.size())));
  return buffer;
}

// NaN until somebody writes it.
headless::Buffer output(std::uint64_t bytes) { return uploaded(Bytes(bytes, nan_byte)); }

Bytes downloaded(const headless::Buffer& buffer, std::uint64_t bytes) {
  Bytes data(bytes);
  EXPECT_TRUE(succeeds(runner().download(buffer, 0, data.data(), bytes)));
  return data;
}

// Executes the product that record(commands, D, workspace) records, and compares all of D with the
// reference.
template <class Record>
void expect_product(const Problem& problem, const oracle::HostOperands& operands,
                    std::uint64_t workspace_bytes, const Record& record) {
  const std::uint64_t d_bytes = operand_bytes(problem)[OperandId::d];
  const headless::Buffer at_d = output(d_bytes), workspace = output(workspace_bytes);
  ASSERT_TRUE(succeeds(runner().submit(
      [&](VkCommandBuffer commands) { return record(commands, at_d.span(), workspace.span()); })));
  const Bytes d = downloaded(at_d, d_bytes);
  const auto checked = oracle::verify(problem, operands.with({{OperandId::d, d.data()}}));
  EXPECT_TRUE(checked.passed()) << checked.first_failure;
  EXPECT_EQ(checked.checked, problem.m * problem.n);
}

TEST(Examples, TransformerMlp) {
  constexpr std::uint64_t tokens = 33, width = 72, hidden = 104;
  const auto mlp = plan_mlp(context(), tokens, width, hidden);
  ASSERT_TRUE(succeeds(mlp));
  const Problem& up = mlp->up.problem();
  const Problem& down = mlp->down.problem();

  const Bytes x = filled(tokens * width, DataType::f16, 1);
  const Bytes w_gate_up = filled(width * 2 * hidden, DataType::f16, 2);
  const Bytes w_down = filled(hidden * width, DataType::f16, 3);
  const Bytes residual = filled(tokens * width, DataType::f16, 4);
  const Bytes gamma = filled(width, DataType::f32, 5);
  const headless::Buffer at_x = uploaded(x), at_gate_up = uploaded(w_gate_up);
  const headless::Buffer at_down = uploaded(w_down), at_residual = uploaded(residual);
  const headless::Buffer at_gamma = uploaded(gamma);
  const std::uint64_t h_bytes = operand_bytes(up)[OperandId::d];
  const std::uint64_t y_bytes = operand_bytes(down)[OperandId::d];
  const headless::Buffer at_h = output(h_bytes), at_stream = output(y_bytes);
  const headless::Buffer at_y = output(y_bytes);
  const headless::Buffer workspace =
      output(std::max(mlp->up.workspace_bytes(), mlp->down.workspace_bytes()));

  const MlpOperands operands{.x = at_x.span(),
                             .w_gate_up = at_gate_up.span(),
                             .w_down = at_down.span(),
                             .residual = at_residual.span(),
                             .gamma = at_gamma.span(),
                             .h = at_h.span(),
                             .stream = at_stream.span(),
                             .y = at_y.span(),
                             .workspace = workspace.span(),
                             .h_buffer = at_h.handle()};
  ASSERT_TRUE(succeeds(runner().submit(
      [&](VkCommandBuffer commands) { return record_mlp(*mlp, commands, operands); })));

  const Bytes h = downloaded(at_h, h_bytes);
  const auto first = oracle::verify(
      up, {{OperandId::a, x.data()}, {OperandId::b, w_gate_up.data()}, {OperandId::d, h.data()}});
  EXPECT_TRUE(first.passed()) << first.first_failure;
  EXPECT_EQ(first.checked, tokens * hidden);

  const Bytes stream = downloaded(at_stream, y_bytes), y = downloaded(at_y, y_bytes);
  const auto second = oracle::verify(down, {{OperandId::a, h.data()},
                                            {OperandId::b, w_down.data()},
                                            {OperandId::c, residual.data()},
                                            {OperandId::gamma, gamma.data()},
                                            {OperandId::d, y.data()},
                                            {OperandId::aux, stream.data()}});
  EXPECT_TRUE(second.passed()) << second.first_failure;
  EXPECT_EQ(second.checked, 2 * tokens * width);
}

// L = the sum of g * (relu(x·w + bias)·v), whose derivatives the example computes.
struct Loss {
  std::uint64_t rows, inputs, outputs, next;
  std::vector<double> x, w, bias, v, g;

  double operator()() const {
    double loss = 0.0;
    for (std::uint64_t i = 0; i < rows; ++i) {
      for (std::uint64_t j = 0; j < outputs; ++j) {
        double z = bias[j], slope = 0.0;
        for (std::uint64_t k = 0; k < inputs; ++k) z += x[i * inputs + k] * w[k * outputs + j];
        for (std::uint64_t l = 0; l < next; ++l) slope += g[i * next + l] * v[j * next + l];
        loss += std::max(z, 0.0) * slope;
      }
    }
    return loss;
  }
};

TEST(Examples, LinearLayer) {
  Loss loss{.rows = 70, .inputs = 13, .outputs = 21, .next = 6};
  const auto layer =
      plan_layer_and_gradients(context(), loss.rows, loss.inputs, loss.outputs, loss.next);
  ASSERT_TRUE(succeeds(layer));
  EXPECT_EQ(layer->gradient.dispatch_count(), 2u);

  std::uint64_t seed = 1;
  std::vector<headless::Buffer> buffers;
  const auto input = [&](std::vector<double>& numbers, std::uint64_t elements) {
    const Bytes bytes = filled(elements, DataType::f32, seed++);
    for (std::uint64_t i = 0; i < elements; ++i) {
      numbers.push_back(load_element(bytes.data(), DataType::f32, i));
    }
    buffers.push_back(uploaded(bytes));
    return buffers.back().span();
  };
  const auto result = [&](std::uint64_t bytes) {
    buffers.push_back(output(bytes));
    return buffers.back().span();
  };
  const std::uint64_t z_bytes = loss.rows * loss.outputs * sizeof(float);
  const std::uint64_t w_elements = loss.inputs * loss.outputs;
  LinearLayerOperands operands{.x = input(loss.x, loss.rows * loss.inputs),
                               .w = input(loss.w, w_elements),
                               .bias = input(loss.bias, loss.outputs),
                               .v = input(loss.v, loss.outputs * loss.next),
                               .g = input(loss.g, loss.rows * loss.next),
                               .y = result(z_bytes),
                               .z = result(z_bytes),
                               .dz = result(z_bytes)};
  const headless::Buffer dbias = output(loss.outputs * sizeof(float));
  const headless::Buffer dw = output(w_elements * sizeof(float));
  operands.dbias = dbias.span();
  operands.dw = dw.span();
  const Plan* const plans[] = {&layer->forward, &layer->gradient, &layer->weight_gradient};
  for (std::size_t i = 0; i < std::size(plans); ++i) {
    operands.workspaces[i] = result(std::max<std::uint64_t>(plans[i]->workspace_bytes(), 4));
  }
  ASSERT_TRUE(succeeds(runner().submit([&](VkCommandBuffer commands) {
    return record_layer_and_gradients(*layer, commands, operands);
  })));

  const auto expect_slopes = [&](std::vector<double>& numbers, const headless::Buffer& gradient) {
    const Bytes got = downloaded(gradient, numbers.size() * sizeof(float));
    constexpr double h = 1e-6;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double number = numbers[i];
      numbers[i] = number + h;
      const double above = loss();
      numbers[i] = number - h;
      const double slope = (above - loss()) / (2.0 * h);
      numbers[i] = number;
      EXPECT_NEAR(load_element(got.data(), DataType::f32, i), slope,
                  1e-4 * (1.0 + std::fabs(slope)))
          << i;
    }
  };
  expect_slopes(loss.bias, dbias);
  expect_slopes(loss.w, dw);
}

// The README's program, in a context of its own on the runner's device.
TEST(Examples, Minimal) {
  constexpr std::uint64_t m = 33, n = 72, k = 104;
  const auto needs = ask(runner().instance(), runner().physical_device());
  ASSERT_TRUE(succeeds(needs));
  const auto own = make_context(runner().instance(), runner().physical_device(), runner().device(),
                                runner().queue(), runner().queue_family(), *needs);
  ASSERT_TRUE(succeeds(own));
  const auto plan = plan_layer(*own, m, n, k);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_FALSE(own->verdicts().empty());  // the queue was used
  const Bytes a = filled(m * k, DataType::f16, 1), b = filled(k * n, DataType::f16, 2);
  const Bytes bias = filled(n, DataType::f32, 3);
  const headless::Buffer at_a = uploaded(a), at_b = uploaded(b), at_bias = uploaded(bias);
  expect_product(
      plan->problem(),
      {{OperandId::a, a.data()}, {OperandId::b, b.data()}, {OperandId::bias, bias.data()}},
      plan->workspace_bytes(), [&](VkCommandBuffer commands, DeviceSpan d, DeviceSpan workspace) {
        return record_layer(*plan, commands, at_a.span(), at_b.span(), at_bias.span(), d,
                            workspace);
      });
}

TEST(Examples, Packed) {
  constexpr std::uint64_t m = 33, n = 72, k = 104;
  const Context& context = test::context();
#include "../examples/readme/packed.inc"
  ASSERT_TRUE(succeeds(packing));
  ASSERT_TRUE(succeeds(plan));
  const Bytes a = filled(m * k, DataType::f16, 1), b = filled(k * n, DataType::f16, 2);
  const headless::Buffer at_a = uploaded(a), at_b = uploaded(b), packed = output(layout.bytes);
  ASSERT_TRUE(succeeds(runner().submit([&](VkCommandBuffer commands) {
    return packing->record(commands, {.source = at_b.span(), .packed = packed.span()});
  })));
  expect_product(
      {.m = m, .n = n, .k = k}, {{OperandId::a, a.data()}, {OperandId::b, b.data()}},
      plan->workspace_bytes(), [&](VkCommandBuffer commands, DeviceSpan d, DeviceSpan workspace) {
        return plan->record(commands, {.a = at_a.span(),
                                       .b = layout.bytes > 0 ? packed.span() : at_b.span(),
                                       .d = d,
                                       .workspace = workspace,
                                       .b_fingerprint = layout.fingerprint});
      });
}

TEST(Examples, PlansOfTheReadme) {
  constexpr std::uint64_t m = 33, n = 72, k = 256;
  const Context& context = test::context();
  {
#include "../examples/readme/int4.inc"
    ASSERT_TRUE(succeeds(packing));
    EXPECT_GT(packing->layout().bytes, 0u);
    EXPECT_TRUE(succeeds(context.plan(problem)));
  }
  {
#include "../examples/readme/experts.inc"
    ASSERT_TRUE(succeeds(plan));
    EXPECT_EQ(plan->operands().offsets.bytes, 65 * sizeof(std::int32_t));
  }
  {
#include "../examples/readme/layer_norm.inc"
    ASSERT_TRUE(succeeds(plan));
    EXPECT_GT(plan->operands().aux.bytes, 0u);
    EXPECT_GT(plan->operands().gamma.bytes, 0u);
    EXPECT_GT(plan->operands().beta.bytes, 0u);
  }
}

}  // namespace
}  // namespace vkgemm::test
