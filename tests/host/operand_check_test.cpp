// Tests of what record() refuses, before it records anything.
#include <gtest/gtest.h>

#include <string>

#include "problem/resolve.hpp"
#include "runtime/operand_check.hpp"

namespace vkgemm {
namespace {

// Every operand, 1 MiB apart; 16×24 = 16×32 · 32×24.
Problem problem_of_all_operands() {
  Problem p{.m = 16, .n = 24, .k = 32};
  p.c.type = p.d.type = p.aux.type = DataType::f32;
  p.epilogue.beta = 1.0f;
  p.epilogue.bias = Bias::along_n;
  p.epilogue.aux = true;
  return p;
}

Operands full_operands() {
  constexpr std::uint64_t mib = 1 << 20;
  return {.a = {1 * mib, 16 * 32 * 2},
          .b = {2 * mib, 32 * 24 * 2},
          .c = {3 * mib, 16 * 24 * 4},
          .d = {4 * mib, 16 * 24 * 4},
          .bias = {5 * mib, 24 * 4},
          .aux = {6 * mib, 16 * 24 * 4},
          .workspace = {7 * mib, 4096}};
}

OperandRules rules_for(const Problem& problem, std::uint64_t workspace_bytes = 0) {
  const Result<ResolvedProblem> resolved = resolve(problem);
  EXPECT_TRUE(resolved) << resolved.error().message;
  return {*resolved, workspace_bytes};
}

void expect_error(const Result<void>& result, Status status, const std::string& part) {
  ASSERT_FALSE(result) << part;
  EXPECT_EQ(result.error().status, status) << result.error().message;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
}

TEST(OperandCheck, AcceptsWhatFitsExactly) {
  const auto checked = rules_for(problem_of_all_operands(), 4096).check(full_operands());
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST(OperandCheck, RefusesOneByteTooFew) {
  const OperandRules rules = rules_for(problem_of_all_operands());
  const std::pair<const char*, DeviceSpan Operands::*> spans[] = {
      {"a.bytes", &Operands::a}, {"b.bytes", &Operands::b},       {"c.bytes", &Operands::c},
      {"d.bytes", &Operands::d}, {"bias.bytes", &Operands::bias}, {"aux.bytes", &Operands::aux}};
  for (const auto& [name, span] : spans) {
    Operands operands = full_operands();
    --(operands.*span).bytes;
    expect_error(rules.check(operands), Status::span_too_small, name);
    operands = full_operands();
    (operands.*span).address = 0;
    expect_error(rules.check(operands), Status::invalid_argument, "address is 0");
    operands = full_operands();
    ++(operands.*span).address;
    expect_error(rules.check(operands), Status::misaligned, "is needed");
    operands = full_operands();
    (operands.*span).address = ~std::uint64_t{15};
    expect_error(rules.check(operands), Status::invalid_argument, "2^64");
  }
}

TEST(OperandCheck, NamesTheFigures) {
  Operands operands = full_operands();
  operands.d.bytes = 1535;
  expect_error(rules_for(problem_of_all_operands()).check(operands), Status::span_too_small,
               "d.bytes is 1535, the problem touches 1536");
}

TEST(OperandCheck, RefusesASmallOrMisalignedWorkspace) {
  const OperandRules rules = rules_for(problem_of_all_operands(), 4096);
  Operands operands = full_operands();
  --operands.workspace.bytes;
  expect_error(rules.check(operands), Status::workspace_too_small, "workspace");
  operands = full_operands();
  operands.workspace.address += 128;
  expect_error(rules.check(operands), Status::misaligned, "a multiple of 256 bytes is needed");
  operands = full_operands();
  operands.workspace = {operands.a.address, 4096};
  expect_error(rules.check(operands), Status::overlapping_operands, "overlaps a");
}

TEST(OperandCheck, IgnoresUnusedOperands) {
  Problem p = problem_of_all_operands();
  p.epilogue = {};
  const Operands all = full_operands();
  EXPECT_TRUE(rules_for(p).check({.a = all.a, .b = all.b, .d = all.d}));
  p.k = 0;
  p.epilogue.beta = 1.0f;
  EXPECT_TRUE(rules_for(p).check({.c = all.c, .d = all.d}));
  p.m = 0;
  EXPECT_TRUE(rules_for(p).check({}));
}

TEST(OperandCheck, LetsDReplaceC) {
  Operands operands = full_operands();
  operands.d = operands.c;
  EXPECT_TRUE(rules_for(problem_of_all_operands()).check(operands));

  operands.d.address += 16;
  expect_error(rules_for(problem_of_all_operands()).check(operands), Status::overlapping_operands,
               "exactly where c does");

  operands.d = operands.c;
  Problem other_type = problem_of_all_operands();
  other_type.d.type = DataType::f16;
  expect_error(rules_for(other_type).check(operands), Status::overlapping_operands, "type");
  Problem other_ld = problem_of_all_operands();
  other_ld.c.ld = 28;
  operands.c.bytes = operands.d.bytes = 4096;
  expect_error(rules_for(other_ld).check(operands), Status::overlapping_operands, "strides");
}

TEST(OperandCheck, RefusesToWriteOverOperands) {
  const OperandRules rules = rules_for(problem_of_all_operands());
  for (const auto other : {&Operands::a, &Operands::b, &Operands::bias, &Operands::aux}) {
    Operands operands = full_operands();
    // The last byte of D on the first of the other.
    operands.d.address = (operands.*other).address - operands.d.bytes + 16;
    expect_error(rules.check(operands), Status::overlapping_operands, "overlaps");
    operands.d.address -= 16;
    EXPECT_TRUE(rules.check(operands));
  }
  Operands operands = full_operands();
  operands.aux.address = operands.c.address;
  expect_error(rules.check(operands), Status::overlapping_operands, "aux");
}

TEST(OperandCheck, LetsInputsOverlap) {
  Operands operands = full_operands();
  operands.b.address = operands.c.address = operands.bias.address = operands.a.address;
  EXPECT_TRUE(rules_for(problem_of_all_operands()).check(operands));
}

TEST(OperandCheck, KnowsColumnsOfOneMatrix) {
  // D is the left and aux the right half of a 16×48 matrix.
  Problem p = problem_of_all_operands();
  p.d.ld = p.aux.ld = 48;
  Operands operands = full_operands();
  operands.d = {4 << 20, 16 * 48 * 4};
  operands.aux = {operands.d.address + 24 * 4, 16 * 48 * 4 - 24 * 4};
  const auto checked = rules_for(p).check(operands);
  EXPECT_TRUE(checked) << checked.error().message;
  std::swap(operands.d, operands.aux);
  EXPECT_TRUE(rules_for(p).check(operands));
  std::swap(operands.d, operands.aux);
  operands.aux.address -= 16;
  expect_error(rules_for(p).check(operands), Status::overlapping_operands, "overlaps");
  operands.aux.address += 32;  // its rows end on the next rows of D
  operands.aux.bytes = 1 << 20;
  expect_error(rules_for(p).check(operands), Status::overlapping_operands, "overlaps");
}

TEST(OperandCheck, SwapsTheInputsOfATransposedProblem) {
  Problem p = problem_of_all_operands();
  p.c.layout = p.d.layout = p.aux.layout = Layout::col_major;
  const OperandRules rules = rules_for(p);
  Operands operands = full_operands();
  Addresses at;
  rules.bind(operands, at);
  EXPECT_EQ(at.a, operands.b.address);
  EXPECT_EQ(at.b, operands.a.address);
  EXPECT_EQ(at.d, operands.d.address);
  --operands.b.bytes;
  expect_error(rules.check(operands), Status::span_too_small, "b.bytes is 1535");
}

}  // namespace
}  // namespace vkgemm
