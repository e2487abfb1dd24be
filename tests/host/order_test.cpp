// Tests the order of packed operands, rows or fragments: a choice by the estimates of one table.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "problem/inputs/input.hpp"
#include "self_test/self_test.hpp"
#include "self_test/wanted_kinds.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm {
namespace {

// A product with both operands packed, or with B packed as codes.
ResolvedProblem packed(const Input& input, bool codes = false, std::uint64_t size = 64) {
  Problem problem = test::gemm(size, size, size, input.given);
  problem.f32_arithmetic = input.arithmetic;
  problem.b.packing = Packing::packed;
  if (codes) {
    problem.quantised_b = Quantisation{.type = CodeType::int4, .group_k = 32};
  } else {
    problem.a.packing = Packing::packed;
  }
  return test::resolved(problem);
}
ResolvedProblem packed_f16(std::uint64_t size = 64) {
  return packed(input_of(DataType::f16), false, size);
}

bool in_fragments(const PackedOrder& order) { return order.row != nullptr; }

// A table with this row alone, or with one of fma in addition.
TuningTable table(double direct_rate, double fma_rate = 0.0) {
  std::string text =
      R"({"architecture": "cpu", "rows": [{"config": "khr_direct:tile=16x16x16,fragment=8x8x8,)"
      R"(subgroups=2x1,subgroup_size=8,peel=0,pack=ab", "provenance": "derived: for a test", "rate": )" +
      std::to_string(direct_rate) + "}";
  if (fma_rate != 0.0) {
    text +=
        R"(, {"config": "fma:tile=64x64x16,fragment=8x8", "provenance": "derived: for a test", )"
        R"("rate": )" +
        std::to_string(fma_rate) + "}";
  }
  return parse_tuning_table(text + "]}", "a test").value();
}

PackedOrder order_with(TuningTable loaded) {
  std::vector<TuningTable> tables;
  tables.push_back(std::move(loaded));
  return DeviceTables("cpu", std::move(tables)).order(packed_f16().b, trusting(test::lavapipe()));
}

// On GPUs whose tables propose khr_direct fragments are faster, and on a CPU rows.
TEST(PackedOrders, AreThoseOfTheFasterEstimate) {
  for (const DeviceCaps& device : test::tabled_devices()) {
    const DeviceTables tables(device.architecture);
    const DeviceCaps caps = trusting(device);
    for (const Input* input : inputs()) {
      if (!input->packed_in_rows || !loads(caps, *input)) continue;
      for (const bool codes : {false, true}) {
        const ResolvedProblem problem = packed(*input, codes);
        const PackedOrder order = tables.order(problem.b, caps);
        EXPECT_FALSE(in_fragments(tables.order(problem.b, device))) << "without a self-test";
        EXPECT_EQ(order.fragments_us.has_value(), order.rows_us.has_value());
        if (!order.rows_us) {
          EXPECT_FALSE(in_fragments(order)) << device.name;
          continue;
        }
        EXPECT_EQ(in_fragments(order), device.type != VK_PHYSICAL_DEVICE_TYPE_CPU)
            << device.name << ", " << input->name << (codes ? ", codes" : "");
        EXPECT_EQ(in_fragments(order), *order.fragments_us <= *order.rows_us) << device.name;
      }
    }
  }
}

// A and B of one product are in one order, whatever their sizes, and so is what was packed before.
TEST(PackedOrders, DoNotDependOnSizes) {
  for (const DeviceCaps& device : {test::h200(), test::lavapipe()}) {
    const DeviceTables tables(device.architecture);
    const DeviceCaps caps = trusting(device);
    for (const std::uint64_t size : {1, 70, 4096, 65536}) {
      ResolvedProblem problem = packed_f16(size);
      EXPECT_FALSE(tables.set_orders(problem, caps));
      EXPECT_EQ(problem.a.fragments.has_value(), problem.b.fragments.has_value());
      EXPECT_EQ(problem.b.fragments.has_value(), device.name == test::h200().name) << size;
      EXPECT_TRUE(tables.best(problem, caps)) << size;
    }
  }
}

// Estimates of two tables can't be compared: the one that proposes fragments decides.
TEST(PackedOrders, AreOfOneTable) {
  EXPECT_TRUE(in_fragments(order_with(table(0.003))));
  EXPECT_FALSE(order_with(table(0.003)).rows_us);
  EXPECT_FALSE(in_fragments(order_with(table(0.003, 0.02))));
  EXPECT_TRUE(in_fragments(order_with(table(0.02, 0.003))));
}

// Inputs that are never packed in rows have no choice.
TEST(PackedOrders, AreFragmentsWhereThereAreNoRows) {
  const DeviceCaps caps = trusting(test::lavapipe());
  const DeviceTables tables("cpu");
  const ResolvedProblem problem = packed(input_of(DataType::f32, F32Arithmetic::f16x3));
  const PackedOrder order = tables.order(problem.b, caps);
  EXPECT_TRUE(in_fragments(order));
  EXPECT_FALSE(order.rows_us);
}

// A caller may ask for either.
TEST(PackedOrders, AreThoseThatAreAskedFor) {
  const DeviceTables tables("cpu");
  for (const bool codes : {false, true}) {
    ResolvedProblem problem = packed(input_of(DataType::f16), codes);
    problem.b.packing = Packing::packed_fragments;
    if (!codes) problem.a.packing = Packing::packed_fragments;
    EXPECT_FALSE(tables.set_orders(problem, trusting(test::lavapipe())));
    EXPECT_TRUE(problem.b.fragments);
    EXPECT_TRUE(tables.best(problem, trusting(test::lavapipe())));
    const auto error = tables.set_orders(problem, test::lavapipe());
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status, Status::unsupported);
    EXPECT_NE(error->message.find(".packing is packed_fragments: "), std::string::npos);
  }
  ResolvedProblem rows = packed_f16();
  rows.a.packing = rows.b.packing = Packing::packed_rows;
  EXPECT_FALSE(tables.set_orders(rows, trusting(test::h200())));
  EXPECT_FALSE(rows.b.fragments);
}

// Scales multiply sums over groups of K: no loop that takes fragments has these sums.
TEST(PackedOrders, OfScaledSumsAreRows) {
  const DeviceTables tables(trusting(test::h200()));
  for (const DataType a : {DataType::e4m3, DataType::f16}) {
    Problem problem = test::gemm(512, 4096, 4096, a);
    problem.b = {.type = DataType::f16, .packing = Packing::packed};
    problem.d.type = DataType::f16;
    problem.quantised_b = Quantisation{
        .type = CodeType::e4m3, .group_k = 128, .group_n = 128, .scale_type = DataType::f32};
    problem.a_group_k = 128;
    problem.epilogue.row_scales = Scales::shared;
    ResolvedProblem packed = test::resolved(problem);
    EXPECT_FALSE(tables.set_orders(packed, trusting(test::h200())));
    EXPECT_FALSE(packed.b.fragments);
    EXPECT_TRUE(tables.best(packed, trusting(test::h200())));
  }
}

// Kinds are tested only if they decide.
TEST(PackedOrders, WantTheKindsOfFragmentsIfTheseAreFaster) {
  const auto wanted = [](const DeviceCaps& caps) {
    return wanted_by_orders(packed_f16(), DeviceTables(caps.architecture), caps);
  };
  EXPECT_FALSE(wanted(test::h200()).empty());
  EXPECT_TRUE(wanted(test::lavapipe()).empty());
}

}  // namespace
}  // namespace vkgemm
