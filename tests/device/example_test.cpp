// tests/examples/transformer_mlp.cpp and the README's C++ as they stand, on this device: their
// results against the reference, one product after the other. The gradients of
// tests/examples/linear_layer.cpp against finite differences, the experts of
// tests/examples/moe_layer.cpp against sums in double precision.
#include <volk.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "../examples/linear_layer.cpp"
#include "../examples/minimal.cpp"
#include "../examples/moe_layer.cpp"
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

// The application's part, between the router and the experts.
struct Choices {
  std::vector<std::uint32_t> sorted;
  std::vector<std::int32_t> sizes;
  std::vector<float> weights;

  Choices(const Bytes& p, std::uint64_t tokens, std::uint32_t experts, std::uint32_t chosen)
      : sizes(experts), weights(tokens * chosen) {
    std::vector<std::vector<std::uint32_t>> of_expert(experts);
    for (std::uint64_t t = 0; t < tokens; ++t) {
      const auto weight = [&](std::uint32_t e) {
        return load_element(p.data(), DataType::f32, t * experts + e);
      };
      std::vector<std::uint32_t> order(experts);
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::stable_sort(order, std::ranges::greater(), weight);
      for (std::uint32_t c = 0; c < chosen; ++c) {
        const std::uint64_t choice = t * chosen + c;
        of_expert[order[c]].push_back(static_cast<std::uint32_t>(choice));
        weights[choice] = static_cast<float>(weight(order[c]));
      }
    }
    for (std::uint32_t e = 0; e < experts; ++e) {
      sizes[e] = static_cast<std::int32_t>(of_expert[e].size());
      sorted.insert(sorted.end(), of_expert[e].begin(), of_expert[e].end());
    }
  }
};

template <class T>
Bytes bytes_of_all(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(Examples, MoeLayer) {
  constexpr std::uint64_t tokens = 29, width = 40, hidden = 24;
  constexpr std::uint32_t experts = 6, chosen = 2;
  const auto layer = plan_moe_layer(context(), tokens, width, hidden, experts, chosen);
  ASSERT_TRUE(succeeds(layer));
  const Bytes x = filled(tokens * width, DataType::f16, 1);
  const Bytes router = filled(width * experts, DataType::f16, 2);
  const Bytes gate_and_up = filled(experts * width * 2 * hidden, DataType::f16, 3);
  const Bytes down = filled(experts * hidden * width, DataType::f16, 4);
  const headless::Buffer at_x = uploaded(x), at_router = uploaded(router);
  const headless::Buffer at_up = uploaded(gate_and_up), at_down = uploaded(down);
  const std::uint64_t p_bytes = tokens * experts * sizeof(float);
  const std::uint64_t h_bytes = tokens * chosen * hidden * 2, y_bytes = tokens * width * 2;
  const headless::Buffer at_p = output(p_bytes), at_h = output(h_bytes), at_y = output(y_bytes);
  MoeLayerOperands operands{.x = at_x.span(),
                            .router = at_router.span(),
                            .gate_and_up = at_up.span(),
                            .down = at_down.span(),
                            .p = at_p.span(),
                            .h = at_h.span(),
                            .y = at_y.span()};
  std::vector<headless::Buffer> workspaces;
  const Plan* const plans[] = {&layer->router, &layer->up, &layer->down};
  for (std::size_t i = 0; i < std::size(plans); ++i) {
    workspaces.push_back(output(std::max<std::uint64_t>(plans[i]->workspace_bytes(), 4)));
    operands.workspaces[i] = workspaces.back().span();
  }
  ASSERT_TRUE(succeeds(runner().submit(
      [&](VkCommandBuffer commands) { return record_router(*layer, commands, operands); })));
  const Bytes p = downloaded(at_p, p_bytes);
  const Choices choices(p, tokens, experts, chosen);
  const headless::Buffer at_choices = uploaded(bytes_of_all(choices.sorted));
  const headless::Buffer at_sizes = uploaded(bytes_of_all(choices.sizes));
  const headless::Buffer at_weights = uploaded(bytes_of_all(choices.weights));
  operands.choices = at_choices.span();
  operands.sizes = at_sizes.span();
  operands.weights = at_weights.span();
  ASSERT_TRUE(succeeds(runner().submit(
      [&](VkCommandBuffer commands) { return record_experts(*layer, commands, operands); })));

  const Bytes y = downloaded(at_y, y_bytes);
  const auto f16 = [](const Bytes& from, std::uint64_t i) {
    return load_element(from.data(), DataType::f16, i);
  };
  std::vector<double> expected(tokens * width);
  std::size_t next = 0;
  for (std::uint32_t e = 0; e < experts; ++e) {
    for (std::int32_t i = 0; i < choices.sizes[e]; ++i) {
      const std::uint32_t choice = choices.sorted[next++];
      const std::uint64_t t = choice / chosen;
      std::vector<double> h(hidden);
      for (std::uint64_t j = 0; j < hidden; ++j) {
        double gate = 0.0, up = 0.0;
        for (std::uint64_t k = 0; k < width; ++k) {
          const std::uint64_t line = (e * width + k) * 2 * hidden;
          gate += f16(x, t * width + k) * f16(gate_and_up, line + j);
          up += f16(x, t * width + k) * f16(gate_and_up, line + hidden + j);
        }
        h[j] = gate / (1.0 + std::exp(-gate)) * up;
      }
      for (std::uint64_t j = 0; j < width; ++j) {
        double sum = 0.0;
        for (std::uint64_t k = 0; k < hidden; ++k) {
          sum += h[k] * f16(down, (e * hidden + k) * width + j);
        }
        expected[t * width + j] += static_cast<double>(choices.weights[choice]) * sum;
      }
    }
  }
  for (std::uint64_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(f16(y, i), expected[i], 0.01 + 0.004 * std::fabs(expected[i])) << i;
  }
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
