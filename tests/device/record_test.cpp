// Tests of what Plan::record refuses, with the field and its value, and without a trace in the
// command buffer; and what it accepts.
#include <algorithm>
#include <functional>
#include <limits>

#include "harness.hpp"
#include "problem/convert.hpp"
#include "problem/resolve.hpp"
#include "runtime/operand_check.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using headless::Buffer;

constexpr std::uint64_t buffer_bytes = 1 << 16;
constexpr std::uint32_t canary = 0x5a5a5a5a;

// A plan with every kind of operand, and a buffer for each.
class Record : public testing::Test {
 protected:
  void SetUp() override {
    problem_ = with_padding(gemm({9, 10, 11}, DataType::f32));
    problem_.epilogue = {.beta = 1.0f, .bias = Bias::along_n, .aux = true};
    problem_.c = problem_.d;
    // Promises that can be broken.
    for (Matrix* matrix : {&problem_.a, &problem_.b, &problem_.c, &problem_.d, &problem_.aux}) {
      matrix->alignment = 16;
    }
    const auto plan = context().plan(problem_, small_configs(Path::fma, DataType::f32).front());
    ASSERT_TRUE(succeeds(plan));
    plan_.emplace(*plan);
    const PerOperand<std::uint64_t> bytes = operand_bytes(problem_);
    const std::uint64_t needed[] = {bytes[OperandId::a],    bytes[OperandId::b],
                                    bytes[OperandId::c],    bytes[OperandId::d],
                                    bytes[OperandId::bias], bytes[OperandId::aux]};
    for (int i = 0; i < 6; ++i) {
      auto buffer = runner().allocate(buffer_bytes);
      ASSERT_TRUE(succeeds(buffer));
      buffers_[i] = std::move(*buffer);
      operands_.*spans[i] = buffers_[i].span(0, needed[i]);
    }
  }

  // Records with `operands`, runs whatever was recorded: an error, and D and aux as they were.
  void expect_refused(const Operands& operands, Status status,
                      std::initializer_list<std::string_view> parts) {
    for (const Buffer& buffer : buffers_) ASSERT_TRUE(succeeds(runner().fill(buffer, canary)));
    ASSERT_TRUE(succeeds(runner().submit([&](VkCommandBuffer commands) -> Result<void> {
      EXPECT_TRUE(fails_with(plan_->record(commands, operands), status, parts));
      EXPECT_TRUE(fails_with(context().record(*plan_, commands, operands), status, parts));
      return {};
    })));
    for (const Buffer& buffer : buffers_) {
      std::vector<std::uint32_t> words(buffer_bytes / 4);
      ASSERT_TRUE(succeeds(runner().download(buffer, 0, words.data(), buffer_bytes)));
      EXPECT_EQ(std::count(words.begin(), words.end(), canary), buffer_bytes / 4);
    }
  }
  void expect_accepted(const Operands& operands) {
    EXPECT_TRUE(succeeds(runner().submit(
        [&](VkCommandBuffer commands) { return plan_->record(commands, operands); })));
  }

  static constexpr DeviceSpan Operands::*spans[] = {&Operands::a, &Operands::b,    &Operands::c,
                                                    &Operands::d, &Operands::bias, &Operands::aux};
  static constexpr const char* names[] = {"a", "b", "c", "d", "bias", "aux"};

  Problem problem_;
  std::optional<Plan> plan_;
  Buffer buffers_[6];
  Operands operands_;
};

TEST_F(Record, AcceptsWhatTheProblemDescribes) { expect_accepted(operands_); }

TEST_F(Record, SpansTooSmallByOneByte) {
  for (int i = 0; i < 6; ++i) {
    Operands operands = operands_;
    const std::uint64_t needed = (operands.*spans[i]).bytes--;
    expect_refused(
        operands, Status::span_too_small,
        {std::string(names[i]) + ".bytes", std::to_string(needed - 1), std::to_string(needed)});
  }
}

TEST_F(Record, UnboundOperands) {
  for (int i = 0; i < 6; ++i) {
    Operands operands = operands_;
    operands.*spans[i] = {};
    expect_refused(operands, Status::span_too_small, {std::string(names[i]) + ".bytes is 0,"});
    operands.*spans[i] = {.address = 0, .bytes = buffer_bytes};
    expect_refused(operands, Status::invalid_argument, {std::string(names[i]) + ".address is 0"});
    operands.*spans[i] = {.address = UINT64_MAX - 15, .bytes = buffer_bytes};
    expect_refused(operands, Status::invalid_argument, {names[i], "2^64"});
  }
}

TEST_F(Record, MisalignedAddresses) {
  for (int i = 0; i < 6; ++i) {
    Operands operands = operands_;
    const std::uint64_t step = i == 4 ? 2 : 8;  // bias promises its element's size, 4
    (operands.*spans[i]).address += step;
    expect_refused(
        operands, Status::misaligned,
        {std::string(names[i]) + ".address is 0x", i == 4 ? "of 4 bytes" : "of 16 bytes"});
  }
}

TEST_F(Record, OverlappingOperands) {
  const auto overlap = [&](int written, int other, std::uint64_t offset) {
    Operands operands = operands_;
    (operands.*spans[other]).address = (operands.*spans[written]).address + offset;
    expect_refused(operands, Status::overlapping_operands,
                   {names[written], "overlaps", names[other]});
  };
  constexpr int a = 0, b = 1, c = 2, d = 3, bias = 4, aux = 5;
  for (const int other : {a, b, bias}) {
    overlap(d, other, 0);
    overlap(aux, other, 16);
  }
  overlap(d, c, 16);
  overlap(d, aux, 0);
  overlap(aux, c, 0);
  // By the last byte, and not by the one behind it.
  const std::uint64_t d_bytes = operands_.d.bytes;
  overlap(d, b, d_bytes / 16 * 16 - (d_bytes % 16 == 0 ? 16 : 0));
  Operands operands = operands_;
  operands.a.address = operands.d.address + (d_bytes + 15) / 16 * 16;
  expect_accepted(operands);
}

TEST_F(Record, InPlaceAndSharedInputsAreAllowed) {
  Operands operands = operands_;
  operands.c.address = operands.d.address;
  expect_accepted(operands);
  operands = operands_;
  operands.b.address = operands.a.address;
  operands.c.address = operands.a.address;
  expect_accepted(operands);
}

// In place needs the same type and strides.
TEST_F(Record, InPlaceOfAnotherLayoutIsRefused) {
  problem_.c.ld = *problem_.d.ld + 1;
  const auto plan = context().plan(problem_, small_configs(Path::fma, DataType::f32).front());
  ASSERT_TRUE(succeeds(plan));
  plan_.emplace(*plan);
  operands_.c = {operands_.d.address, buffer_bytes};
  expect_refused(operands_, Status::overlapping_operands, {"d", "c", "in place"});
}

TEST_F(Record, NoCommandBuffer) {
  EXPECT_TRUE(fails_with(plan_->record(VK_NULL_HANDLE, operands_), Status::invalid_argument,
                         {"command_buffer", "VK_NULL_HANDLE"}));
}

// The check that record() makes, by itself.
TEST_F(Record, WorkspaceTooSmall) {
  const OperandRules rules(resolve(problem_).value(), 4096);
  Operands operands = operands_;
  operands.workspace = {buffers_[0].address() + (1 << 15), 4095};
  EXPECT_TRUE(fails_with(rules.check(operands), Status::workspace_too_small,
                         {"workspace", "4095", "4096"}));
  operands.workspace.bytes = 4096;
  EXPECT_TRUE(succeeds(rules.check(operands)));
  operands.workspace.address += 128;
  EXPECT_TRUE(fails_with(rules.check(operands), Status::misaligned, {"workspace", "256"}));
  operands.workspace.address = operands.a.address;
  EXPECT_TRUE(fails_with(rules.check(operands), Status::overlapping_operands, {"workspace"}));
}

TEST_F(Record, PlanOfAnotherContext) {
  const auto other = another_runner();
  const auto plan = other->context().plan(problem_, plan_->config());
  ASSERT_TRUE(succeeds(plan));
  ASSERT_TRUE(succeeds(runner().submit([&](VkCommandBuffer commands) -> Result<void> {
    EXPECT_TRUE(fails_with(context().record(*plan, commands, operands_), Status::wrong_context,
                           {"context"}));
    return {};
  })));
}

// The library says no to what no kernel can compute.
TEST(PlanErrors, NameFieldAndValue) {
  struct Case {
    std::function<void(Problem&)> change;
    Status status;
    std::initializer_list<std::string_view> parts;
  };
  const Case cases[] = {
      {[](Problem& p) { p.a.ld = 0; }, Status::invalid_argument, {"a.ld is 0"}},
      {[](Problem& p) { p.b.ld = 7; }, Status::invalid_argument, {"b.ld is 7", "8"}},
      {[](Problem& p) { p.d.ld = 7; }, Status::invalid_argument, {"d.ld is 7", "8"}},
      {[](Problem& p) { p.m = std::uint64_t{1} << 31; },
       Status::invalid_argument,
       {"m is 2147483648"}},
      {[](Problem& p) { p.batch = 2, p.d.batch_stride = 0; },
       Status::invalid_argument,
       {"d.batch_stride is 0"}},
      {[](Problem& p) { p.a.alignment = 1; }, Status::invalid_argument, {"a.alignment is 1"}},
      {[](Problem& p) { p.epilogue.alpha = std::numeric_limits<float>::quiet_NaN(); },
       Status::invalid_argument,
       {"alpha"}},
      {[](Problem& p) { p.epilogue.activation = static_cast<Activation>(99); },
       Status::invalid_argument,
       {"epilogue.activation is 99"}},
      {[](Problem& p) { p.d.type = static_cast<DataType>(9); },
       Status::invalid_argument,
       {"d.type is 9"}},
      {[](Problem& p) { p.b.type = DataType::f32; },
       Status::unsupported,
       {"a.type is f16", "b.type is f32"}},
  };
  for (const Case& test : cases) {
    Problem problem = gemm({8, 8, 8});
    test.change(problem);
    EXPECT_TRUE(fails_with(context().plan(problem), test.status, test.parts));
    EXPECT_TRUE(fails_with(context().candidates(problem), test.status, test.parts));
  }
}

TEST(PlanErrors, IllegalConfigurations) {
  const Problem f32 = gemm({8, 8, 8}, DataType::f32);
  const auto refuse = [](const Problem& problem, std::string_view text,
                         std::initializer_list<std::string_view> parts) {
    EXPECT_TRUE(fails_with(context().plan(problem, parse_config(text).value()), Status::unsupported,
                           parts));
  };
  if (caps().khr.available) {
    refuse(f32, "khr:tile=16x16x16,fragment=8x8x8,subgroups=1x1,subgroup_size=8", {"f32", "khr"});
  }
  // More shared memory than any device has is not refused by every driver: it loses the device.
  refuse(f32, "fma:tile=128x128x1024,fragment=8x8", {"shared memory", "128x128x1024"});
  refuse(f32, "fma:tile=1024x1024x16,fragment=4x4", {"invocations", "65536"});
  if (!caps().bf16_matrices && caps().khr.available) {
    refuse(gemm({8, 8, 8}, DataType::bf16),
           "khr:tile=16x16x16,fragment=8x8x8,subgroups=1x1,subgroup_size=8", {"bf16"});
  }
  for (const Path path : {Path::nv, Path::khr}) {
    const PathSupport& support = caps().path(path);
    if (support.available) continue;
    const Config config =
        parse_config(path == Path::nv
                         ? "nv:tile=64x64x32,invocations=128"
                         : "khr:tile=64x64x32,fragment=16x16x16,subgroups=1x1,subgroup_size=32")
            .value();
    EXPECT_TRUE(fails_with(context().plan(gemm({8, 8, 8}), config), Status::unsupported,
                           {to_string(path), support.reason}));
  }
}

// Explanations of what is slower than it could be, and why.
TEST(Explain, MentionsSlowPaths) {
  const auto explain = [](const Problem& problem) {
    const auto plan = context().plan(problem, small_configs(Path::fma, problem.a.type).front());
    return plan ? plan->explain() : plan.error().message;
  };
  Problem problem = gemm({64, 64, 64}, DataType::f16);
  EXPECT_NE(explain(problem).find("at once"), std::string::npos) << explain(problem);
  EXPECT_EQ(explain(problem).find("element by element"), std::string::npos) << explain(problem);
  problem.a.ld = 67;
  EXPECT_NE(explain(problem).find("a: f16 row_major, ld 67, element by element: ld 67"),
            std::string::npos)
      << explain(problem);
  problem.b.alignment = 2;
  EXPECT_NE(explain(problem).find("its alignment is 2, not 16"), std::string::npos)
      << explain(problem);
  problem.a.type = problem.b.type = DataType::bf16;
  EXPECT_NE(explain(problem).find("bf16 is widened to f32"), std::string::npos) << explain(problem);
  if (!caps().bf16_matrices) {
    EXPECT_NE(explain(problem).find("no bf16 cooperative matrices"), std::string::npos);
  }
}

}  // namespace
}  // namespace vkgemm::test
