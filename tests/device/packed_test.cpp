// Operands that the caller packs once: in fragments, where the direct loop is trusted, in rows,
// where it isn't, and in rows although it is (Packing::packed_rows).
#include <gtest/gtest.h>

#include <memory>
#include <tuple>

#include "harness.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

enum class Order : std::uint8_t { fragments, rows, asked_for_rows };

class Packed : public testing::TestWithParam<Order> {
 protected:
  static void SetUpTestSuite() { untrusting() = another_runner({}, false); }
  static void TearDownTestSuite() { untrusting().reset(); }

  void SetUp() override {
    const auto layout =
        on().context().packed_layout(as_packed(gemm({64, 64, 64})), PackedOperand::b);
    if (layout && layout->bytes == 0) GTEST_SKIP() << caps().name << " gains nothing by packing";
    if (!layout && GetParam() == Order::fragments) GTEST_SKIP() << layout.error().message;
    ASSERT_TRUE(succeeds(layout));
  }

  static std::unique_ptr<headless::Runner>& untrusting() {
    static std::unique_ptr<headless::Runner> the_runner;
    return the_runner;
  }
  headless::Runner& on() const { return GetParam() != Order::rows ? runner() : *untrusting(); }
  static Packing form() {
    return GetParam() == Order::fragments        ? Packing::packed_fragments
           : GetParam() == Order::asked_for_rows ? Packing::packed_rows
                                                 : Packing::packed;
  }
  static Problem as_packed(Problem problem) {
    problem.b = {.type = problem.b.type, .packing = form()};
    return problem;
  }
  const Context& ctx() const { return on().context(); }

  // Records the plan, executes what was recorded, and returns the result of record().
  Result<void> record_once(const Plan& plan, const Operands& operands) const {
    Result<void> result;
    (void)on().submit([&](VkCommandBuffer commands) {
      result = plan.record(commands, operands);
      return Result<void>();
    });
    return result;
  }

  TrialOptions packing(Packs packs) const {
    return {.packs_a = packs.a, .packs_b = packs.b, .packing = form(), .on = &on()};
  }

  // The configuration that the library chooses, and all gates.
  testing::AssertionResult passes(const Problem& problem, TrialOptions options) const {
    options.on = &on();
    Problem packed = problem;
    const auto pack = [](Matrix& matrix) { matrix = {.type = matrix.type, .packing = form()}; };
    if (options.packs_a) pack(packed.a);
    if (options.packs_b) pack(packed.b);
    const auto candidates = ctx().candidates(packed);
    if (!candidates) return succeeds(candidates);
    if (candidates->empty()) return testing::AssertionFailure() << "no candidate";
    return passes_gates(candidates->front().config, problem, options);
  }
};
INSTANTIATE_TEST_SUITE_P(, Packed,
                         testing::Values(Order::fragments, Order::rows, Order::asked_for_rows),
                         [](const auto& order) {
                           return order.param == Order::fragments ? "fragments"
                                  : order.param == Order::rows    ? "rows"
                                                                  : "asked_for_rows";
                         });

TEST_P(Packed, EveryLayout) {
  for (const Packs packs : all_packs) {
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        Problem problem = gemm({37, 70, 71});
        problem.a.layout = a;
        problem.b.layout = b;
        const bool aligned = a == b;
        EXPECT_TRUE(passes(with_padding(problem, 8, aligned), packing(packs)));
      }
    }
  }
}

// A column-major D swaps what is A and what is B.
TEST_P(Packed, ColumnMajorD) {
  for (const Packs packs : all_packs) {
    Problem problem = gemm({34, 21, 67});
    problem.c.layout = problem.d.layout = Layout::col_major;
    problem.epilogue.beta = 0.5f;
    EXPECT_TRUE(passes(with_padding(problem), packing(packs)));
  }
}

TEST_P(Packed, TinyAndEmpty) {
  for (const Packs packs : all_packs) {
    EXPECT_TRUE(passes(gemm({1, 1, 1}), packing(packs)));
    EXPECT_TRUE(passes(gemm({9, 70, 64}), packing(packs)));
    EXPECT_TRUE(passes(gemm({9, 70, 0}), packing(packs)));
  }
  // Nothing is read.
  Problem none = gemm({9, 7, 0});
  none.b.packing = Packing::packed;
  EXPECT_TRUE(succeeds(ctx().plan(none)));
}

TEST_P(Packed, BatchesAndSlices) {
  for (const Packs packs : all_packs) {
    for (const std::uint32_t slices : {1u, 3u}) {
      Problem problem = gemm({20, 17, 90});
      problem.batch = 3;
      problem.split_k.slices = slices;
      problem = with_padding(problem);
      EXPECT_TRUE(passes(problem, packing(packs)));
      problem.b.batch_stride = 0;
      EXPECT_TRUE(passes(problem, packing(packs)));
    }
  }
}

// Halves of every kind, of any width: each begins at whole lines of the packed matrix.
TEST_P(Packed, Gates) {
  for (const Packs packs : all_packs) {
    for (const GatedB halves : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        Problem problem = gemm({19, 37, 40});
        problem.gated = Gated{.gate = Gate::reglu, .b = halves};
        problem.b.layout = b;
        problem.epilogue.aux = b == Layout::row_major;
        problem.epilogue.bias = Bias::along_n;
        EXPECT_TRUE(passes(with_padding(problem, 8, packs.a), packing(packs)));
      }
    }
    Problem problem = gemm({19, 37, 40});
    problem.gated = Gated{.gate = Gate::reglu};
    problem.d.layout = Layout::col_major;  // doesn't turn the product round
    EXPECT_TRUE(passes(problem, packing(packs)));
  }
}

TEST_P(Packed, Rows) {
  for (const RowOp op : {RowOp::softmax, RowOp::logsumexp, RowOp::rms_norm}) {
    Problem problem = gemm({37, 70, 96});
    problem.row_reduction = RowReduction{.op = op};
    EXPECT_TRUE(passes(problem, packing({false, true})));
    EXPECT_TRUE(passes(problem, packing({true, true})));
    if (op != RowOp::softmax) continue;
    problem.d.layout = Layout::col_major;  // doesn't turn the product round
    EXPECT_TRUE(passes(problem, packing({true, true})));
  }
}

TEST_P(Packed, OneMatrixBForEachGroup) {
  for (const GroupedB b : {GroupedB::shared, GroupedB::per_group}) {
    Problem problem = gemm({50, 40, 70});
    problem.grouping = Grouping{.groups = 4, .b = b};
    TrialOptions options = packing({false, true});
    options.offsets = {0, 17, 17, 40, 50};
    EXPECT_TRUE(passes(with_padding(problem), options));
  }
}

// One packed B serves every M, batch of A, split-K, epilogue and D's type: the layout is the same.
TEST_P(Packed, TheLayoutDependsOnTheMatrixOnly) {
  const Problem problem = gemm({64, 70, 71});
  const auto first = ctx().packed_layout(problem, PackedOperand::b);
  ASSERT_TRUE(succeeds(first));
  EXPECT_EQ(first->matrix_bytes, 128u * 128 * 2);
  const auto same = [&](const Problem& other) {
    const auto layout = ctx().packed_layout(other, PackedOperand::b);
    return layout && layout->fingerprint == first->fingerprint && layout->bytes == first->bytes;
  };
  Problem other = with_padding(gemm({1, 70, 71}, DataType::f16, DataType::f16), 3);
  other.b.layout = Layout::col_major;
  other.epilogue = {.alpha = 2.0f, .bias = Bias::along_m, .activation = Activation::relu};
  EXPECT_TRUE(same(other));
  other.b = {.packing = Packing::packed};
  EXPECT_TRUE(same(other));
  EXPECT_FALSE(same(gemm({64, 71, 71})));
  EXPECT_FALSE(same(gemm({64, 70, 72})));
  Problem gated = problem;
  gated.gated = Gated{.gate = Gate::glu};
  EXPECT_FALSE(same(gated));
  Problem columns = problem;
  columns.d.layout = Layout::col_major;
  EXPECT_FALSE(same(columns));
  // Nothing to gain.
  for (const Problem& plain : {gemm({64, 64, 64}, DataType::f32), gemm({64, 64, 0})}) {
    const auto layout = ctx().packed_layout(plain, PackedOperand::b);
    ASSERT_TRUE(succeeds(layout));
    EXPECT_EQ(layout->bytes, 0u);
  }
}

TEST_P(Packed, AnotherFingerprintIsRefused) {
  Problem problem = gemm({64, 70, 71});
  const auto other = ctx().packed_layout(gemm({64, 70, 72}), PackedOperand::b);
  const auto own = ctx().packed_layout(problem, PackedOperand::b);
  ASSERT_TRUE(succeeds(other));
  ASSERT_TRUE(succeeds(own));
  problem.b.packing = Packing::packed;
  const auto plan = ctx().plan(problem);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_NE(plan->explain().find("packed by the caller"), std::string::npos) << plan->explain();
  auto memory = on().allocate(1 << 22);
  ASSERT_TRUE(succeeds(memory));
  Operands operands{.a = memory->span(0, 64 * 71 * 2),
                    .b = memory->span(1 << 20, own->bytes),
                    .d = memory->span(2 << 20, 64 * 70 * 4),
                    .workspace = memory->span(3 << 20, 1 << 20)};
  const auto recorded = [&] { return record_once(*plan, operands); };
  EXPECT_TRUE(fails_with(recorded(), Status::wrong_fingerprint, {"b_fingerprint", "is not given"}));
  operands.b_fingerprint = other->fingerprint;
  EXPECT_TRUE(fails_with(recorded(), Status::wrong_fingerprint,
                         {"b_fingerprint", "k is 72, wanted is 71"}));
  operands.b_fingerprint = own->fingerprint;
  operands.b.bytes -= 1;
  EXPECT_TRUE(fails_with(recorded(), Status::span_too_small, {"b.bytes"}));
  operands.b.bytes += 1;
  operands.b.address += 64;
  EXPECT_TRUE(fails_with(recorded(), Status::misaligned, {"b.address"}));
}

// Weights that were packed before a self-test are those of a product in rows after it.
TEST_P(Packed, RowsStayUsable) {
  if (GetParam() != Order::asked_for_rows) GTEST_SKIP() << "of two orders";
  Problem problem = gemm({64, 70, 71});
  const auto before = untrusting()->context().packed_layout(problem, PackedOperand::b);
  const auto preferred = ctx().packed_layout(problem, PackedOperand::b);
  problem.b = {.packing = Packing::packed_fragments};
  const auto after = ctx().packed_layout(problem, PackedOperand::b);
  if (!after) GTEST_SKIP() << after.error().message;
  const auto fragments = ctx().plan(problem);
  ASSERT_TRUE(succeeds(before));
  ASSERT_TRUE(succeeds(preferred));
  ASSERT_TRUE(succeeds(fragments));
  EXPECT_NE(fragments->command_line().find("--packed-b-fragments"), std::string::npos);
  EXPECT_EQ(packing_of(before->fingerprint), Packing::packed_rows);
  EXPECT_EQ(packing_of(after->fingerprint), Packing::packed);
  problem.b = {.packing = packing_of(before->fingerprint)};
  const auto same = ctx().packed_layout(problem, PackedOperand::b);
  ASSERT_TRUE(succeeds(same));
  EXPECT_EQ(same->fingerprint, before->fingerprint);
  const auto plan = ctx().plan(problem);
  ASSERT_TRUE(succeeds(plan));
  const std::string text = plan->explain();
  EXPECT_NE(text.find("packed by the caller, in rows"), std::string::npos) << text;
  EXPECT_EQ(text.find("packed again, in fragments: khr_direct") != std::string::npos,
            preferred->fingerprint == after->fingerprint)
      << text;
  EXPECT_NE(plan->command_line().find("--packed-b-rows"), std::string::npos);
  // Fragments are another order, and the error says what helps.
  auto memory = on().allocate(1 << 22);
  ASSERT_TRUE(succeeds(memory));
  const Operands operands{.a = memory->span(0, 64 * 71 * 2),
                          .b = memory->span(1 << 20, after->bytes),
                          .d = memory->span(2 << 20, 64 * 70 * 4),
                          .workspace = memory->span(3 << 20, 1 << 20),
                          .b_fingerprint = before->fingerprint};
  EXPECT_TRUE(fails_with(record_once(*fragments, operands), Status::wrong_fingerprint,
                         {"order is rows", "or plan with Packing::packed_rows"}));
}

// The plan that packs says which order it is, and why.
TEST_P(Packed, TheOrderIsExplained) {
  Problem problem = gemm({64, 70, 71});
  const auto reason = [&](const Context& of) {
    const auto plan = of.plan_pack(problem, PackedOperand::b);
    return plan ? plan->explain() : plan.error().message;
  };
  const auto mentions = [](const std::string& text, std::string_view part) {
    return testing::AssertionResult(text.find(part) != std::string::npos) << text;
  };
  problem.b.packing = form();
  if (GetParam() == Order::rows) {
    problem.b.packing = Packing::plain;
    EXPECT_TRUE(mentions(reason(ctx()), "in rows\n  order: "));
    return;
  }
  EXPECT_TRUE(mentions(reason(ctx()), "\n  order: packing is packed_"));
  problem.b.packing = Packing::plain;
  if (GetParam() == Order::fragments) {  // which the device could take, too
    EXPECT_TRUE(
        mentions(reason(ctx()), "\n  order: a product of 4096x4096x4096 is estimated to take "));
  }
}

TEST_P(Packed, WithoutAVerdictCodesLieInRows) {
  if (GetParam() != Order::fragments) GTEST_SKIP() << "of the order in fragments";
  const auto untrusting = another_runner({}, false);
  Problem problem = gemm({64, 64, 64});
  problem.quantised_b = {.type = CodeType::int4, .group_k = 32, .zeros = true};
  problem.b.packing = Packing::packed_fragments;
  const auto trusted = context().packed_layout(problem, PackedOperand::b);
  EXPECT_TRUE(fails_with(untrusting->context().packed_layout(problem, PackedOperand::b),
                         Status::unsupported, {"b.packing is packed_fragments", "self-test"}));
  problem.b.packing = Packing::packed;
  const auto other = untrusting->context().packed_layout(problem, PackedOperand::b);
  ASSERT_TRUE(succeeds(trusted));
  ASSERT_TRUE(succeeds(other));
  EXPECT_EQ(trusted->matrix_bytes, other->matrix_bytes);
  EXPECT_NE(difference(trusted->fingerprint, other->fingerprint).find("codes"), std::string::npos)
      << difference(trusted->fingerprint, other->fingerprint);
}

TEST_P(Packed, EachHalfHasAFingerprint) {
  Problem problem = gemm({16, 64, 64});
  problem.gated = Gated{.gate = Gate::glu, .b = GatedB::separate};
  const auto own = ctx().packed_layout(problem, PackedOperand::b);
  Problem halves = problem;
  halves.gated->b = GatedB::halves;
  const auto other = ctx().packed_layout(halves, PackedOperand::b);
  ASSERT_TRUE(succeeds(own));
  ASSERT_TRUE(succeeds(other));
  problem.b.packing = Packing::packed;
  const auto plan = ctx().plan(problem);
  ASSERT_TRUE(succeeds(plan));
  auto memory = on().allocate(1 << 22);
  ASSERT_TRUE(succeeds(memory));
  Operands operands{.a = memory->span(0, 16 * 64 * 2),
                    .b = memory->span(1 << 18, own->bytes),
                    .b_right = memory->span(2 << 18, own->bytes),
                    .d = memory->span(3 << 18, 16 * 64 * 4),
                    .workspace = memory->span(1 << 20, plan->workspace_bytes()),
                    .b_fingerprint = own->fingerprint};
  const auto recorded = [&] { return record_once(*plan, operands); };
  EXPECT_TRUE(
      fails_with(recorded(), Status::wrong_fingerprint, {"b_right_fingerprint", "is not given"}));
  operands.b_right_fingerprint = other->fingerprint;
  EXPECT_TRUE(fails_with(recorded(), Status::wrong_fingerprint,
                         {"b_right_fingerprint", "both halves of a gated product"}));
  operands.b_right_fingerprint = own->fingerprint;
  EXPECT_TRUE(succeeds(recorded()));
}

TEST_P(Packed, WhatCannotBePackedIsRefused) {
  const auto refused = [&](const auto& change, std::initializer_list<std::string_view> parts,
                           Status status = Status::unsupported) {
    Problem problem = gemm({64, 64, 64});
    problem.b.packing = Packing::packed;
    change(problem);
    return fails_with(ctx().plan(problem), status, parts);
  };
  EXPECT_TRUE(refused([](Problem& p) { p.a.type = p.b.type = DataType::f32; },
                      {"b.packing", "b.type is f32"}));
  EXPECT_TRUE(
      refused([](Problem& p) { p.b.ld = 64; }, {"b.ld is 64", "packed"}, Status::invalid_argument));
  EXPECT_TRUE(refused([](Problem& p) { p.d.packing = Packing::packed; }, {"d.packing"},
                      Status::invalid_argument));
  EXPECT_TRUE(
      refused([](Problem& p) { p.grouping = Grouping{.groups = 2, .along = GroupAlong::k}; },
              {"b.packing", "grouping.along is k"}));
  EXPECT_TRUE(refused(
      [](Problem& p) {
        p.a.packing = Packing::packed;
        p.grouping = Grouping{.groups = 2};
      },
      {"a.packing", "grouping.along is m"}));
  Problem packed = gemm({64, 64, 64});
  packed.b.packing = Packing::packed;
  EXPECT_TRUE(fails_with(ctx().plan_pack(packed, PackedOperand::b), Status::invalid_argument,
                         {"b.packing is packed"}));
}

}  // namespace
}  // namespace vkgemm::test
