// Uses a library with paths khr and fma, type f16 and no parts: one product, checked exactly
// against a triple loop, and refusals of types and parts that are not built in.
#include <cstdint>
#include <cstdio>
#include <string>

#include "application.hpp"

namespace {

using namespace consumer;

constexpr std::uint32_t m = 33, n = 40, k = 24;

int a_at(std::uint32_t i) { return static_cast<int>(i * 7 % 11) - 5; }
int b_at(std::uint32_t i) { return static_cast<int>(i * 5 % 13) - 6; }

vkgemm::Problem product(vkgemm::DataType type) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = {.type = type},
          .b = {.type = type},
          .d = {.type = vkgemm::DataType::f32}};
}

void expect_refusal(const vkgemm::Context& context, const vkgemm::Problem& problem,
                    const std::string& reason) {
  const vkgemm::Result<vkgemm::Plan> plan = context.plan(problem);
  if (plan) fail("planned, although " + reason);
  if (plan.error().status != vkgemm::Status::unsupported ||
      plan.error().message.find("not built into this library: " + reason) == std::string::npos) {
    fail("expected '" + reason + "', got '" + plan.error().message + "'");
  }
  std::printf("refused: %s\n", plan.error().message.c_str());
}

}  // namespace

int main() {
  Application app;
  const vkgemm::Context context = app.create_context();

  expect_refusal(context, product(vkgemm::DataType::s8), "VKGEMM_TYPES lacks s8");
  vkgemm::Problem rows = product(vkgemm::DataType::f16);
  rows.row_reduction = {.op = vkgemm::RowOp::softmax};
  expect_refusal(context, rows, "VKGEMM_PARTS lacks rows");
  vkgemm::Problem grouped = product(vkgemm::DataType::f16);
  grouped.grouping = vkgemm::Grouping{.groups = 2};
  expect_refusal(context, grouped, "VKGEMM_PARTS lacks grouped");

  const vkgemm::Plan plan = unwrap(context.plan(product(vkgemm::DataType::f16)));
  std::printf("%s\n", plan.explain().c_str());
  const Buffer a = app.create_buffer(m * k), b = app.create_buffer(k * n);
  const Buffer d = app.create_buffer(m * n);
  auto* const a_data = reinterpret_cast<std::uint16_t*>(a.data);
  auto* const b_data = reinterpret_cast<std::uint16_t*>(b.data);
  for (std::uint32_t i = 0; i < m * k; ++i) a_data[i] = vkgemm::to_f16(a_at(i));
  for (std::uint32_t i = 0; i < k * n; ++i) b_data[i] = vkgemm::to_f16(b_at(i));
  const Buffer workspace = app.create_buffer(plan.workspace_bytes() / sizeof(float));
  app.run(plan, {.a = a.span, .b = b.span, .d = d.span, .workspace = workspace.span});
  for (std::uint32_t row = 0; row < m; ++row) {
    for (std::uint32_t column = 0; column < n; ++column) {
      int expected = 0;
      for (std::uint32_t i = 0; i < k; ++i) expected += a_at(row * k + i) * b_at(i * n + column);
      const float got = d.data[row * n + column];
      if (got != static_cast<float>(expected)) {
        fail("D[" + std::to_string(row) + "," + std::to_string(column) + "] is " +
             std::to_string(got) + ", expected " + std::to_string(expected));
      }
    }
  }
  std::printf("consumer: %u x %u x %u is right\n", m, n, k);
  return 0;
}
