// Lets vkgemm record one product into an application's command buffer: D = relu(A·B + bias),
// checked exactly against a triple loop.
#include "application.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#ifdef CONSUMER_HAS_FUNCTION
#include "doubled.epilogue.h"
#endif

namespace {

using namespace consumer;

constexpr std::uint32_t m = 33, n = 40, k = 24;

}  // namespace

int main() {
  Application app;
  const vkgemm::Context context = app.create_context();

  using vkgemm::DataType;
  vkgemm::Problem problem{
      .m = m,
      .n = n,
      .k = k,
      .a = {.type = DataType::f32},
      .b = {.type = DataType::f32},
      .d = {.type = DataType::f32},
      .epilogue = {.bias = vkgemm::Bias::along_n, .activation = vkgemm::Activation::relu}};
  float factor = 1.0f;
#ifdef CONSUMER_HAS_FUNCTION
  problem.epilogue.function =
      unwrap(context.add_function({.name = "doubled", .spirv = vkgemm_doubled}));
  problem.epilogue.steps[0] = {.op = vkgemm::StepOp::function};
  factor = 2.0f;
#endif
  const vkgemm::Plan plan = unwrap(context.plan(problem));
  std::printf("%s\n", plan.explain().c_str());

  const Buffer a = app.create_buffer(m * k), b = app.create_buffer(k * n);
  const Buffer bias = app.create_buffer(n), d = app.create_buffer(m * n);
  const Buffer workspace = app.create_buffer(plan.workspace_bytes() / sizeof(float));
  // Small integers: the exact result is representable, whatever the order of summation.
  for (std::uint32_t i = 0; i < m * k; ++i) a.data[i] = static_cast<float>(i * 7 % 11) - 5.0f;
  for (std::uint32_t i = 0; i < k * n; ++i) b.data[i] = static_cast<float>(i * 5 % 13) - 6.0f;
  for (std::uint32_t i = 0; i < n; ++i) bias.data[i] = static_cast<float>(i % 5) - 2.0f;

  app.run(plan,
          {.a = a.span, .b = b.span, .d = d.span, .bias = bias.span, .workspace = workspace.span});

  for (std::uint32_t row = 0; row < m; ++row) {
    for (std::uint32_t column = 0; column < n; ++column) {
      float expected = bias.data[column];
      for (std::uint32_t i = 0; i < k; ++i) {
        expected += a.data[row * k + i] * b.data[i * n + column];
      }
      expected = factor * std::max(expected, 0.0f);
      const float got = d.data[row * n + column];
      if (got != expected) {
        fail("D[" + std::to_string(row) + "," + std::to_string(column) + "] is " +
             std::to_string(got) + ", expected " + std::to_string(expected));
      }
    }
  }
  std::printf("consumer: %u x %u x %u is right\n", m, n, k);
  return 0;
}
