// Memory above 4 GiB: addresses, offsets and sizes beyond 32 bits. On GPUs with the memory only.
#include <volk.h>

#include <algorithm>
#include <string>

#include "harness.hpp"
#include "problem/convert.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

class Large : public EachPath {
 protected:
  // Empty if the device is one to do this on.
  std::string why_skip_large() const {
    if (const std::string why = why_skip(GetParam()); !why.empty()) return why;
    if (caps().type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU) {
      return "needs a discrete GPU with tens of GiB: " + caps().name + " is none";
    }
    return {};
  }

  // Zeroed memory, or a skip that says how much was wanted.
  headless::Buffer zeroed(std::uint64_t bytes) {
    // The layers count it as an error, whatever the driver can do.
    VkPhysicalDeviceMaintenance3Properties most{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &most};
    vkGetPhysicalDeviceProperties2(runner().physical_device(), &properties);
    if (runner().is_validated() && bytes > most.maxMemoryAllocationSize) {
      reason_ = "the validation layers allow no allocation of " + std::to_string(bytes) +
                " bytes: maxMemoryAllocationSize is " +
                std::to_string(most.maxMemoryAllocationSize);
      return {};
    }
    auto buffer = runner().allocate(bytes);
    if (!buffer) {
      reason_ = buffer.error().message;
      return {};
    }
    EXPECT_TRUE(succeeds(runner().fill(*buffer, 0)));
    return std::move(*buffer);
  }

  // Records the plan and waits for the product, with as much workspace as the plan wants.
  Result<void> compute(const Plan& plan, const headless::Buffer& a, const headless::Buffer& b,
                       const headless::Buffer& d) {
    const headless::Buffer workspace = zeroed(plan.workspace_bytes());
    if (!reason_.empty()) return Error{Status::out_of_device_memory, reason_};
    return runner().submit([&](VkCommandBuffer commands) {
      return plan.record(
          commands, {.a = a.span(), .b = b.span(), .d = d.span(), .workspace = workspace.span()});
    });
  }

  // D = A·B for A with rows (or columns) far apart: element (i, k) is i + 1 at k = i, else 0, and B
  // counts upwards. D must be B with row i multiplied by i + 1.
  void rows_far_apart(Layout layout, std::uint64_t ld) {
    const DataType f16 = DataType::f16;
    constexpr std::uint64_t m = 5, n = 24, k = 5;
    Problem problem = gemm({m, n, k}, f16);
    problem.a.layout = layout;
    problem.a.ld = ld;
    const auto plan = plan_on(GetParam(), problem);
    if (!plan) {
      // nv computes offsets within a tile in 32 bits, and says so.
      EXPECT_TRUE(fails_with(plan, Status::unsupported, {}));
      GTEST_SKIP() << plan.error().message;
    }
    const PerOperand<std::uint64_t> bytes = operand_bytes(problem);
    const headless::Buffer a = zeroed(bytes[OperandId::a]), b = zeroed(bytes[OperandId::b]),
                           d = zeroed(bytes[OperandId::d]);
    if (!reason_.empty()) GTEST_SKIP() << reason_;
    for (std::uint64_t i = 0; i < m; ++i) {
      std::uint16_t element = to_f16(static_cast<double>(i + 1));
      ASSERT_TRUE(succeeds(runner().upload(a, (i * ld + i) * 2, &element, 2)));
    }
    std::vector<std::uint16_t> counting(k * n);
    for (std::uint64_t i = 0; i < k * n; ++i) {
      counting[i] = to_f16(static_cast<double>(i));
    }
    ASSERT_TRUE(succeeds(runner().upload(b, 0, counting.data(), bytes[OperandId::b])));
    ASSERT_TRUE(succeeds(compute(*plan, a, b, d)));
    std::vector<float> got(m * n);
    ASSERT_TRUE(succeeds(runner().download(d, 0, got.data(), bytes[OperandId::d])));
    for (std::uint64_t i = 0; i < m * n; ++i) {
      ASSERT_EQ(got[i], static_cast<float>(i * (i / n + 1))) << "element " << i;
    }
  }

  std::string reason_;
};
VKGEMM_ON_EACH_PATH(Large);

// Two rows are 4 GiB apart: beyond 2^32 bytes from the third row on, 2^33 at the last.
TEST_P(Large, RowsOfAFarApart) {
  VKGEMM_SKIP_IF(why_skip_large());
  rows_far_apart(Layout::row_major, (std::uint64_t{1} << 31) - 8);
}
TEST_P(Large, ColumnsOfAFarApart) {
  VKGEMM_SKIP_IF(why_skip_large());
  rows_far_apart(Layout::col_major, (std::uint64_t{1} << 31) - 1);
}

// Matrices of a batch more than 2^32 elements apart, in A and in D.
TEST_P(Large, BatchesFarApart) {
  VKGEMM_SKIP_IF(why_skip_large());
  constexpr std::uint64_t stride = (std::uint64_t{1} << 32) + 8;
  Problem problem = gemm({16, 16, 16}, DataType::f16, DataType::f16);
  problem.batch = 3;
  problem.a.batch_stride = stride;
  problem.b.batch_stride = 0;
  problem.d.batch_stride = stride;
  const auto plan = plan_on(GetParam(), problem);
  ASSERT_TRUE(succeeds(plan));
  const PerOperand<std::uint64_t> bytes = operand_bytes(problem);
  const headless::Buffer a = zeroed(bytes[OperandId::a]), b = zeroed(bytes[OperandId::b]),
                         d = zeroed(bytes[OperandId::d]);
  if (!reason_.empty()) GTEST_SKIP() << reason_;
  // A_b = (b + 1) * I, B counts.
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    for (std::uint64_t i = 0; i < 16; ++i) {
      const std::uint16_t element = to_f16(static_cast<double>(batch + 1));
      ASSERT_TRUE(succeeds(runner().upload(a, (batch * stride + i * 17) * 2, &element, 2)));
    }
  }
  std::vector<std::uint16_t> counting(256);
  for (std::size_t i = 0; i < 256; ++i) counting[i] = to_f16(static_cast<double>(i));
  ASSERT_TRUE(succeeds(runner().upload(b, 0, counting.data(), 512)));
  ASSERT_TRUE(succeeds(compute(*plan, a, b, d)));
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    std::vector<std::uint16_t> got(256);
    ASSERT_TRUE(succeeds(runner().download(d, batch * stride * 2, got.data(), 512)));
    for (std::size_t i = 0; i < 256; ++i) {
      ASSERT_EQ(from_f16(got[i]), static_cast<double>(i * (batch + 1))) << batch;
    }
  }
}

// 1 700 000 x 96 x 2592: A is 8.8 GB. A is constant along K, so D is known without a reference.
TEST_P(Large, TallMatrix) {
  VKGEMM_SKIP_IF(why_skip_large());
  constexpr std::uint64_t m = 1700000, n = 96, k = 2592;
  const Problem problem = gemm({m, n, k}, DataType::f16);
  const auto plan = plan_on(GetParam(), problem);
  ASSERT_TRUE(succeeds(plan));
  const PerOperand<std::uint64_t> bytes = operand_bytes(problem);
  const headless::Buffer a = zeroed(bytes[OperandId::a]), b = zeroed(bytes[OperandId::b]),
                         d = zeroed(bytes[OperandId::d]);
  if (!reason_.empty()) GTEST_SKIP() << reason_;
  // B is 1 everywhere, A too but for some rows, first and last among them.
  ASSERT_TRUE(succeeds(runner().fill(b, 0x3c003c00)));
  ASSERT_TRUE(succeeds(runner().fill(a, 0x3c003c00)));
  const std::uint64_t special[] = {0,       828504,  828505,
                                   1657008, 1657009, m - 1};  // 2^32 bytes and 2^33
  for (const std::uint64_t row : special) {
    const std::vector<std::uint16_t> values(k, to_f16(static_cast<double>(row % 7 + 2)));
    ASSERT_TRUE(succeeds(runner().upload(a, row * k * 2, values.data(), k * 2)));
  }
  ASSERT_TRUE(succeeds(compute(*plan, a, b, d)));
  std::vector<float> got(m * n);
  ASSERT_TRUE(succeeds(runner().download(d, 0, got.data(), bytes[OperandId::d])));
  for (std::uint64_t i = 0; i < m; ++i) {
    const bool is_special = std::ranges::find(special, i) != std::end(special);
    const auto expected = static_cast<float>(k * (is_special ? i % 7 + 2 : 1));
    for (std::uint64_t j = 0; j < n; ++j) ASSERT_EQ(got[i * n + j], expected) << i << ", " << j;
  }
}

}  // namespace
}  // namespace vkgemm::test
