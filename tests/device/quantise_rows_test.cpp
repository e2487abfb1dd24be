// Rows that become codes and scales: every bit of them, what nobody writes, what can't be done; and
// that a product of such codes is what they promise.
#include "quantise_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "oracle/reference.hpp"

namespace vkgemm::test {
namespace {

constexpr DataType types[] = {DataType::f16, DataType::bf16, DataType::f32};
constexpr double inf = std::numeric_limits<double>::infinity();

RowQuantisation rows_of(std::uint64_t rows, std::uint64_t columns, DataType type = DataType::f16) {
  return {.rows = rows, .columns = columns, .source = {.type = type}};
}

class QuantiseRows : public testing::Test {
 protected:
  void SetUp() override { VKGEMM_SKIP_IF(why_not_quantised()); }

  static testing::AssertionResult passes(const RowQuantisation& q, std::uint64_t shift = 0) {
    QuantisedRows rows(q, shift);
    rows.fill(1);
    if (auto ran = rows.run(); !ran) return ran;
    if (auto exact = rows.is_exact(); !exact || q.group_k != 0) return exact;
    return rows.is_near();
  }
};

TEST_F(QuantiseRows, IntegersBecomeThemselves) {
  for (const DataType type : types) {
    QuantisedRows rows(with_padding(rows_of(3, 300, type)));
    for (std::uint64_t i = 0; i < 3; ++i) {
      for (std::uint64_t j = 0; j < 300; ++j) {
        rows.set(i, j, static_cast<double>((31 * i + 7 * j) % 253) - 126.0);
      }
      rows.set(i, 100 * i + 3, i % 2 == 0 ? 127.0 : -127.0);
    }
    ASSERT_TRUE(rows.run());
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(rows.scale(i), 1.0f);
      for (std::uint64_t j = 0; j < 300; ++j) ASSERT_EQ(rows.code(i, j), rows.source(i, j));
    }
  }
}

// Half way between two codes the even one is stored.
TEST_F(QuantiseRows, HalvesBecomeEven) {
  QuantisedRows rows(rows_of(1, 254, DataType::f16));
  for (std::uint64_t j = 0; j < 254; ++j) rows.set(0, j, static_cast<double>(j) / 2.0 - 63.5);
  rows.set(0, 0, 127.0);
  ASSERT_TRUE(rows.run());
  ASSERT_EQ(rows.scale(0), 1.0f);
  for (std::uint64_t j = 1; j < 254; ++j) {
    ASSERT_EQ(rows.code(0, j), std::nearbyint(rows.source(0, j))) << rows.source(0, j);
  }
}

// Rows that several share a workgroup, that are kept in registers, and that are read twice.
TEST_F(QuantiseRows, RowsOfAnyLength) {
  std::size_t turn = 0;
  for (const DataType type : types) {
    for (const std::uint64_t columns : {1u, 2u, 7u, 8u, 9u, 16u, 31u, 33u, 64u, 127u, 200u, 1023u,
                                        1024u, 2049u, 8191u, 8192u, 8200u, 8201u, 20003u}) {
      // Types take turns where compiling is slow.
      if (on_cpu() && !is_nightly() && turn++ % std::size(types) != 0) continue;
      const std::uint64_t count = columns > 2000 ? 3 : 37;
      EXPECT_TRUE(passes(rows_of(count, columns, type))) << columns;
      EXPECT_TRUE(passes(with_padding(rows_of(count, columns, type)), 3)) << columns;
      EXPECT_TRUE(passes(with_padding(rows_of(count, columns, type), 16 - columns % 16, true)))
          << columns;
      if (HasFailure()) return;
    }
  }
}

TEST_F(QuantiseRows, GroupsOfColumns) {
  for (const std::uint32_t group : {32u, 64u, 128u}) {
    for (const std::uint64_t columns : {1u, 31u, 32u, 100u, 256u, 1000u}) {
      RowQuantisation q = rows_of(37, columns, types[columns % std::size(types)]);
      q.group_k = group;
      EXPECT_TRUE(passes(q)) << group << ", " << columns;
      q.batch = 2;
      EXPECT_TRUE(passes(with_padding(q), 3)) << group << ", " << columns;
    }
  }
}

TEST_F(QuantiseRows, AnyNumberOfRows) {
  for (const std::uint64_t count : {1u, 2u, 255u, 256u, 257u, 700u}) {
    EXPECT_TRUE(passes(with_padding(rows_of(count, 5)))) << count;
    EXPECT_TRUE(passes(rows_of(count, 40))) << count;
  }
}

TEST_F(QuantiseRows, Batches) {
  for (const DataType type : types) {
    RowQuantisation q = rows_of(5, 40, type);
    q.batch = 3;
    EXPECT_TRUE(passes(q));
    EXPECT_TRUE(passes(with_padding(q), 1));
    EXPECT_TRUE(passes(with_padding(q, 8, true)));
    q.source.batch_stride = 0;  // one for all
    EXPECT_TRUE(passes(q));
    // Side by side in the rows of a larger matrix.
    q.source = {.type = type, .ld = 128, .batch_stride = 40};
    q.codes = {.type = DataType::s8, .ld = 128, .batch_stride = 40};
    EXPECT_TRUE(passes(q));
  }
}

// What may be loaded 16 bytes at a time does not say so of what is stored.
TEST_F(QuantiseRows, SourceAndCodesAreAlignedByThemselves) {
  RowQuantisation q = rows_of(9, 72);
  q.codes.ld = 73;
  EXPECT_TRUE(passes(q));
  q = rows_of(9, 72);
  q.source.ld = 73;
  EXPECT_TRUE(passes(q));
  q = rows_of(9, 72);
  q.codes.alignment = 8;
  EXPECT_TRUE(passes(q, 8));
}

TEST_F(QuantiseRows, WhatIsNoNumber) {
  for (const DataType type : types) {
    for (const std::uint64_t columns : {5u, 64u, 9000u}) {
      QuantisedRows rows(rows_of(9, columns, type));
      rows.fill(2);
      const std::uint64_t last = columns - 1;
      rows.set(0, last, nan);
      rows.set(1, 0, inf);
      rows.set(2, last, -inf);
      rows.set(3, 1, inf);
      rows.set(3, 2, nan);
      for (std::uint64_t j = 0; j < columns; ++j) rows.set(4, j, j % 2 == 0 ? 0.0 : -0.0);
      rows.set(5, 0, inf);
      rows.set(5, last, -inf);
      ASSERT_TRUE(rows.run());
      EXPECT_TRUE(rows.is_exact()) << to_string(type) << ", " << columns;
      EXPECT_TRUE(std::isnan(rows.scale(0)) && std::isnan(rows.scale(3)));
      for (const std::uint64_t i : {1u, 2u, 5u}) EXPECT_EQ(rows.scale(i), HUGE_VALF);
      EXPECT_EQ(rows.scale(4), 0.0f);
      for (std::uint64_t i = 0; i < 6; ++i) {
        for (std::uint64_t j = 0; j < columns; ++j) ASSERT_EQ(rows.code(i, j), 0.0);
      }
      for (std::uint64_t i = 6; i < 9; ++i) EXPECT_GT(rows.scale(i), 0.0f);
    }
  }
}

// Where 127 over the largest would overflow, and that over 127 underflow.
TEST_F(QuantiseRows, TheSmallestAndTheLargest) {
  for (const DataType type : {DataType::bf16, DataType::f32}) {
    const double sizes[] = {0x1p-149, 0x1p-133,    0x1p-126, 0x1p-120, 0x1.fp-120,
                            0x1p-119, 0x1.02p-119, 0x1p-1,   0x1p126,  0x1.fep127};
    QuantisedRows rows(rows_of(std::size(sizes), 12, type));
    rows.fill(3);
    for (std::uint64_t i = 0; i < std::size(sizes); ++i) {
      for (std::uint64_t j = 0; j < 12; ++j) {
        rows.set(i, j, sizes[i] * fill_value(Fill::random, i, j));
      }
      rows.set(i, 7, -sizes[i]);
    }
    ASSERT_TRUE(rows.run());
    EXPECT_TRUE(rows.is_exact());
    for (std::uint64_t i = 0; i < std::size(sizes); ++i) {
      EXPECT_EQ(rows.code(i, 7), sizes[i] < 0x1p-119 ? 0.0 : -127.0) << sizes[i];
      EXPECT_EQ(rows.scale(i) == 0.0f, sizes[i] < 0x1p-119) << sizes[i];
    }
  }
}

// Largest magnitudes of every kind: all digits of the quotients are right.
TEST_F(QuantiseRows, QuotientsAreRoundedToNearest) {
  QuantisedRows rows(rows_of(20000, 4, DataType::f32));
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double size = std::exp2(4.0 * fill_value(Fill::random, 4, i));
    rows.set(i, 0, size);
    for (std::uint64_t j = 1; j < 4; ++j) {
      rows.set(i, j, size * fill_value(Fill::random, 5 + j, i));
    }
  }
  ASSERT_TRUE(rows.run());
  EXPECT_TRUE(rows.is_exact());
}

TEST_F(QuantiseRows, RunsAgainWithTheSameBits) {
  for (const std::uint64_t columns : {13u, 4096u, 10000u}) {
    QuantisedRows rows(rows_of(50, columns, DataType::bf16));
    rows.fill(6);
    ASSERT_TRUE(rows.run());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(rows.repeats());
  }
}

TEST_F(QuantiseRows, NothingToDo) {
  for (RowQuantisation q : {rows_of(0, 8), rows_of(0, 0), rows_of(4, 8)}) {
    if (q.rows != 0) q.batch = 0;
    const auto plan = context().plan_quantise_rows(q);
    ASSERT_TRUE(succeeds(plan));
    EXPECT_EQ(plan->operands().scales.bytes, 0u);
    EXPECT_TRUE(succeeds(
        runner().submit([&](VkCommandBuffer commands) { return plan->record(commands, {}); })));
  }
  EXPECT_TRUE(passes(rows_of(40, 0)));  // scales of no columns are 0
}

TEST_F(QuantiseRows, BatchesOfMoreThanADispatchHolds) {
  RowQuantisation q = with_padding(rows_of(2, 3));
  q.batch = 65535 + 7;
  q.source.batch_stride = 9;
  q.codes.batch_stride = 11;
  EXPECT_TRUE(passes(q));
}

// --- refusals

TEST_F(QuantiseRows, SpansAreChecked) {
  RowQuantisation q = rows_of(4, 32);
  q.batch = 2;
  const auto plan = context().plan_quantise_rows(q);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(plan->problem(), Problem{});
  EXPECT_EQ(plan->command_line(), "");
  EXPECT_EQ(plan->explain(), concat("kernel quantise_rows on ", caps().name,
                                    ", 1 dispatch\n  reads source: 512 bytes\n"
                                    "  writes codes: 256 bytes\n  writes scales: 32 bytes\n"));
  auto memory = runner().allocate(4096);
  ASSERT_TRUE(succeeds(memory));
  const Operands good{.source = memory->span(0, 512),
                      .codes = memory->span(512, 256),
                      .scales = memory->span(768, 32)};
  // Nothing is recorded where it fails.
  const auto record = [&](const Operands& spans) {
    return runner().submit([&](VkCommandBuffer commands) { return plan->record(commands, spans); });
  };
  EXPECT_TRUE(succeeds(record(good)));
  struct Bad {
    void (*change)(Operands&);
    Status status;
    std::string_view message;
  };
  const Bad cases[] = {
      {[](Operands& s) { s.source.bytes = 511; }, Status::span_too_small,
       "source.bytes is 511, the plan wants 512"},
      {[](Operands& s) { s.codes.bytes = 255; }, Status::span_too_small,
       "codes.bytes is 255, the plan wants 256"},
      {[](Operands& s) { s.scales.bytes = 31; }, Status::span_too_small,
       "scales.bytes is 31, the plan wants 32"},
      {[](Operands& s) { s.codes.address = 0; }, Status::invalid_argument, "codes.address is 0"},
      {[](Operands& s) { s.scales.address = UINT64_MAX - 3; }, Status::invalid_argument,
       "scales span of 32 bytes at 0xfffffffffffffffc ends beyond 2^64"},
      {[](Operands& s) { s.source.address += 2; }, Status::misaligned,
       "a multiple of 16 bytes is needed"},
      {[](Operands& s) { s.scales.address += 2; }, Status::misaligned,
       "a multiple of 4 bytes is needed"},
      {[](Operands& s) { s.codes.address -= 16; }, Status::overlapping_operands,
       ") overlaps source ["},
      {[](Operands& s) { s.scales.address -= 4; }, Status::overlapping_operands,
       ") overlaps scales ["},
      {[](Operands& s) { s.scales.address = s.source.address; }, Status::overlapping_operands,
       ") overlaps source ["},
  };
  for (const Bad& bad : cases) {
    Operands spans = good;
    bad.change(spans);
    EXPECT_TRUE(fails_with(record(spans), bad.status, {bad.message}));
  }
  EXPECT_TRUE(fails_with(plan->record(VK_NULL_HANDLE, good), Status::invalid_argument,
                         {"command_buffer is VK_NULL_HANDLE"}));
}

TEST_F(QuantiseRows, PlansAreRefusedByField) {
  RowQuantisation q = rows_of(4, 32);
  q.source.type = DataType::s8;
  EXPECT_TRUE(fails_with(context().plan_quantise_rows(q), Status::unsupported,
                         {"source.type is s8: it must be f16, bf16 or f32"}));
}

// --- products of what was quantised

// A and a column-major B of numbers, their codes, and D = A·B from these, on the device.
class QuantisedProduct : public QuantiseRows {
 protected:
  struct Sizes {
    std::uint64_t m, n, k, batch;
  };

  void begin(const Sizes& s, DataType type) {
    s_ = s;
    a_ = with_batch(rows_of(s.m, s.k, type));
    b_ = with_batch(rows_of(s.n, s.k, type));
    host_a_ = std::make_unique<QuantisedRows>(a_);
    host_b_ = std::make_unique<QuantisedRows>(b_);
    host_a_->fill(11);
    host_b_->fill(12);
    problem_ = {
        .m = s.m,
        .n = s.n,
        .k = s.k,
        .batch = s.batch,
        .a = {.type = DataType::s8},
        .b = {.type = DataType::s8, .layout = Layout::col_major},
        .d = {.type = DataType::f32},
        .epilogue = {.row_scales = Scales::per_matrix, .column_scales = Scales::per_matrix}};
    d_.assign(s.batch * s.m * s.n, 0.0f);
  }
  RowQuantisation with_batch(RowQuantisation q) const {
    q.batch = s_.batch;
    return q;
  }

  // `between`: between the quantisation and the product.
  testing::AssertionResult run(const std::function<void(VkCommandBuffer)>& between) {
    const auto plan_a = context().plan_quantise_rows(a_);
    const auto plan_b = context().plan_quantise_rows(b_);
    const auto product = context().plan(problem_);
    if (!plan_a) return succeeds(plan_a);
    if (!plan_b) return succeeds(plan_b);
    if (!product) return succeeds(product);
    const Operands a_spans = plan_a->operands(), b_spans = plan_b->operands();
    const std::uint64_t bytes[] = {a_spans.source.bytes,      a_spans.codes.bytes,
                                   a_spans.scales.bytes,      b_spans.source.bytes,
                                   b_spans.codes.bytes,       b_spans.scales.bytes,
                                   d_.size() * sizeof(float), product->workspace_bytes()};
    headless::Buffer memory[std::size(bytes)];
    for (std::size_t i = 0; i < std::size(bytes); ++i) {
      auto made = runner().allocate(bytes[i]);
      if (!made) return succeeds(made);
      memory[i] = std::move(*made);
    }
    for (const auto& [buffer, host] : {std::pair{0, host_a_.get()}, {3, host_b_.get()}}) {
      const HostBuffer& from = host->source_bytes();
      const auto sent = runner().upload(memory[buffer], 0, from.data(), from.size);
      if (!sent) return succeeds(sent);
    }
    const auto done = runner().submit([&](VkCommandBuffer commands) -> Result<void> {
      if (auto a = plan_a->record(
              commands,
              {.source = memory[0].span(), .codes = memory[1].span(), .scales = memory[2].span()});
          !a) {
        return a;
      }
      if (auto b = plan_b->record(
              commands,
              {.source = memory[3].span(), .codes = memory[4].span(), .scales = memory[5].span()});
          !b) {
        return b;
      }
      between(commands);
      return product->record(commands, {.a = memory[1].span(),
                                        .b = memory[4].span(),
                                        .d = memory[6].span(),
                                        .row_scales = memory[2].span(),
                                        .column_scales = memory[5].span(),
                                        .workspace = memory[7].span()});
    });
    if (!done) return succeeds(done);
    return succeeds(runner().download(memory[6], 0, d_.data(), bytes[6]));
  }

  float d(std::uint64_t i, std::uint64_t j, std::uint64_t b = 0) const {
    return d_[(b * s_.m + i) * s_.n + j];
  }

  Sizes s_{};
  RowQuantisation a_, b_;
  std::unique_ptr<QuantisedRows> host_a_, host_b_;
  Problem problem_;
  std::vector<float> d_;
};

// Each code errs by half a scale; and the codes alone give the sum exactly, with a few roundings.
TEST_F(QuantisedProduct, IsWithinWhatCodesPromise) {
  for (const DataType type : types) {
    begin({.m = 33, .n = 40, .k = 96, .batch = 2}, type);
    ASSERT_TRUE(run(record_barrier));
    ASSERT_TRUE(host_a_->run());
    ASSERT_TRUE(host_b_->run());
    const oracle::VerifyReport report =
        oracle::verify(problem_, {{OperandId::a, host_a_->codes_bytes().data()},
                                  {OperandId::b, host_b_->codes_bytes().data()},
                                  {OperandId::row_scales, host_a_->scales_bytes().data()},
                                  {OperandId::column_scales, host_b_->scales_bytes().data()},
                                  {OperandId::d, d_.data()}});
    EXPECT_TRUE(report.passed()) << report.first_failure;
    for (std::uint64_t b = 0; b < s_.batch; ++b) {
      for (std::uint64_t i = 0; i < s_.m; ++i) {
        for (std::uint64_t j = 0; j < s_.n; ++j) {
          const double ea = 0.50003 * static_cast<double>(host_a_->scale(i, b));
          const double eb = 0.50003 * static_cast<double>(host_b_->scale(j, b));
          double sum = 0.0, bound = 0.0;
          for (std::uint64_t k = 0; k < s_.k; ++k) {
            const double x = host_a_->source(i, k, b), y = host_b_->source(j, k, b);
            sum += x * y;
            bound += ea * std::fabs(y) + eb * std::fabs(x) + ea * eb;
          }
          bound += 4.0 * 0x1p-24 * (std::fabs(sum) + bound);
          ASSERT_LE(std::fabs(static_cast<double>(d(i, j, b)) - sum), bound)
              << i << ", " << j << ": " << d(i, j, b) << ", " << sum;
        }
      }
    }
  }
}

TEST_F(QuantisedProduct, WhatIsNoNumberSpoilsItsRowAlone) {
  begin({.m = 6, .n = 9, .k = 40, .batch = 1}, DataType::f16);
  host_a_->set(1, 3, nan);
  host_a_->set(2, 39, -inf);
  for (std::uint64_t k = 0; k < 40; ++k) host_a_->set(4, k, 0.0);
  host_b_->set(7, 5, inf);
  ASSERT_TRUE(run(record_barrier));
  for (std::uint64_t i = 0; i < 6; ++i) {
    for (std::uint64_t j = 0; j < 9; ++j) {
      if (i == 1 || i == 2 || j == 7) {
        EXPECT_TRUE(std::isnan(d(i, j))) << i << ", " << j;
      } else {
        EXPECT_TRUE(std::isfinite(d(i, j))) << i << ", " << j;
      }
      if (i == 4 && j != 7) {
        EXPECT_EQ(d(i, j), 0.0f);
      }
    }
  }
}

TEST_F(QuantisedProduct, NeedsTheCallersBarrier) {
  begin({.m = 8, .n = 8, .k = 32, .batch = 1}, DataType::f16);
  problem_.max_workspace_bytes = 0;
  const ExpectedHazards hazards;
  ASSERT_TRUE(run([](VkCommandBuffer) {}));
  const auto says = [&](std::string_view one, std::string_view other) {
    return std::ranges::any_of(hazards.found(), [&](const std::string& line) {
      return line.find(one) != std::string::npos && line.find(other) != std::string::npos;
    });
  };
  EXPECT_EQ(hazards.found().size(), 2u);
  EXPECT_TRUE(says("reads a", "(quantise_rows) writes as codes"));
  EXPECT_TRUE(says("reads b", "(quantise_rows) writes as codes"));
}

}  // namespace
}  // namespace vkgemm::test
