// Tests that verify() looks at nothing but what it says that it looks at: the rest may never be
// downloaded.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "oracle/groups.hpp"
#include "oracle/reference.hpp"
#include "problem/convert.hpp"
#include "problem/row_index.hpp"
#include "test_devices.hpp"

namespace vkgemm::oracle {
namespace {

using Bytes = std::vector<unsigned char>;

// A problem with operands of small integers, and its results.
struct Results {
  explicit Results(const Problem& p, const std::vector<std::int64_t>& group_offsets = {})
      : problem(p), bytes(operand_bytes(p)) {
    a = integers(p.a.type, bytes[OperandId::a], 5);
    b = integers(p.b.type, bytes[OperandId::b], 7);
    if (p.grouping) offsets = encode_integers(group_offsets, size_in_bytes(p.grouping->offsets));
    d.assign(bytes[OperandId::d], 0);
    aux.assign(bytes[OperandId::aux], 0);
    row_values.assign(bytes[OperandId::row_values], 0);
    compute_reference(p, operands(),
                      {{OperandId::d, d.data()},
                       {OperandId::aux, aux.data()},
                       {OperandId::row_values, row_values.data()}});
  }

  static Bytes integers(DataType type, std::uint64_t size, std::uint64_t modulus) {
    Bytes data(size);
    for (std::uint64_t i = 0; i < size / size_in_bytes(type); ++i) {
      store_element(data.data(), type, i, static_cast<double>(i % modulus) - 2.0);
    }
    return data;
  }
  HostOperands operands() const {
    return {
        {OperandId::a, a.data()}, {OperandId::b, b.data()}, {OperandId::offsets, offsets.data()}};
  }
  VerifyReport check(const Bytes& some_d, const Bytes& some_aux, const VerifyOptions& how) const {
    return verify(problem,
                  operands().with({{OperandId::d, some_d.data()},
                                   {OperandId::aux, some_aux.data()},
                                   {OperandId::row_values, row_values.data()}}),
                  how);
  }

  Problem problem;
  PerOperand<std::uint64_t> bytes;
  Bytes a, b, d, aux, row_values;
  std::vector<std::byte> offsets;
};

// Nothing but these parts.
Bytes only(const Bytes& from, const std::vector<ByteRange>& parts) {
  Bytes to(from.size(), 0xff);
  for (const ByteRange& part : parts) {
    std::memcpy(to.data() + part.begin, from.data() + part.begin, part.bytes);
  }
  return to;
}

std::uint64_t size_of(const std::vector<ByteRange>& parts) {
  std::uint64_t sum = 0, end = 0;
  for (const ByteRange& part : parts) {
    EXPECT_GE(part.begin, end);  // ascending
    end = part.begin + part.bytes;
    sum += part.bytes;
  }
  return sum;
}

VerifiedParts expect_enough(const Results& x, VerifyOptions how = {}) {
  how.mode = Verify::sampled;
  const VerifiedParts parts = verified_parts(x.problem, x.operands(), how);
  Bytes d = only(x.d, parts[OperandId::d]), aux = only(x.aux, parts[OperandId::aux]);
  const VerifyReport report = x.check(d, aux, how);
  EXPECT_TRUE(report.passed()) << report.first_failure;
  EXPECT_GT(report.checked, 0u);
  size_of(parts[OperandId::aux]);
  // And of each part something is looked at.
  for (const ByteRange& part : parts[OperandId::d]) {
    std::memset(d.data() + part.begin, 0xff, part.bytes);
    EXPECT_FALSE(x.check(d, aux, how).passed()) << part.begin;
    std::memcpy(d.data() + part.begin, x.d.data() + part.begin, part.bytes);
  }
  return parts;
}

TEST(VerifiedParts, RowsOfABatch) {
  Problem p = test::gemm(40, 70, 20);
  p.batch = 3;
  p.d.ld = 77;
  p.epilogue.aux = true;
  const VerifiedParts parts = expect_enough(Results(p), {.seed = 4, .sampled_rows = 5});
  EXPECT_EQ(parts[OperandId::d].size(), 15u);
  EXPECT_EQ(size_of(parts[OperandId::d]), 15u * 70 * 2);
  EXPECT_EQ(parts[OperandId::aux].size(), 15u);
}

TEST(VerifiedParts, AllOfAColumnMajorD) {
  Problem p = test::gemm(40, 30, 20, DataType::f32);
  p.d.layout = p.aux.layout = p.c.layout = Layout::col_major;
  EXPECT_EQ(size_of(expect_enough(Results(p), {.sampled_rows = 2})[OperandId::d]), 40u * 30 * 4);
}

TEST(VerifiedParts, BothValuesBeforeAGate) {
  Problem p = test::gemm(40, 30, 20);
  p.gated = Gated{};
  p.epilogue.aux = true;
  const VerifiedParts parts = expect_enough(Results(p), {.sampled_rows = 2});
  EXPECT_EQ(size_of(parts[OperandId::aux]), 2 * size_of(parts[OperandId::d]));
}

TEST(VerifiedParts, SomeGroupsThatAreNotEmpty) {
  Problem p = test::gemm(60, 16, 8);
  p.grouping = Grouping{.groups = 9, .b = GroupedB::per_group};
  const Results x(p, {0, 0, 10, 10, 20, 30, 30, 45, 50, 60});  // three are empty
  EXPECT_EQ(expect_enough(x, {.sampled_rows = 2, .sampled_groups = 3})[OperandId::d].size(), 6u);
  EXPECT_EQ(expect_enough(x, {.sampled_rows = 2})[OperandId::d].size(), 12u);
  // Other seeds look at others, and a wrong row is found by one of them.
  Bytes wrong = x.d;
  std::memset(wrong.data() + std::size_t{30} * 16 * 2, 0xff, std::size_t{15} * 16 * 2);
  bool found = false, missed = false;
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    const bool passed =
        x.check(wrong, x.aux,
                {.mode = Verify::sampled, .seed = seed, .sampled_rows = 2, .sampled_groups = 3})
            .passed();
    (passed ? missed : found) = true;
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(missed);
}

TEST(VerifiedParts, RowsThatAreReduced) {
  Problem p = test::gemm(50, 30, 20);
  p.row_reduction = RowReduction{.op = RowOp::softmax};
  EXPECT_EQ(expect_enough(Results(p), {.sampled_rows = 3})[OperandId::d].size(), 3u);
  p.row_reduction = RowReduction{.op = RowOp::logsumexp, .store_d = false};
  EXPECT_TRUE(expect_enough(Results(p), {.sampled_rows = 3})[OperandId::d].empty());
}

}  // namespace
}  // namespace vkgemm::oracle
