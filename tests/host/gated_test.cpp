// Tests gated products without a device: refusals, parameters of dispatches, choices of the tables,
// and the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "expectations.hpp"
#include "kernels/dispatch_plan.hpp"
#include "kernels/parts/split_k.hpp"
#include "oracle/reference.hpp"
#include "problem/convert.hpp"
#include "problem/resolve.hpp"
#include "runtime/operand_check.hpp"
#include "test_devices.hpp"
#include "tuning/rank.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::lowered;
using test::reason;
using test::resolved;
using test::touched_bytes;

constexpr Layout col = Layout::col_major;

Problem gated(std::uint64_t m, std::uint64_t n, std::uint64_t k, GatedB b = GatedB::halves,
              DataType type = DataType::f16) {
  Problem p = gemm(m, n, k, type);
  p.gated = Gated{.gate = Gate::geglu_erf, .b = b};
  return p;
}

// --- resolve
// --------------------------------------------------------------------------------------------------

TEST(ResolveGated, ErrorsNameFieldAndValue) {
  const test::ErrorCase cases[] = {
      {[](Problem& p) { p.epilogue.beta = 0.5f; }, Status::unsupported,
       "epilogue.beta is 0.5 and gated.gate is geglu_erf: not built together"},
      {[](Problem& p) { p.epilogue.activation = Activation::relu; }, Status::unsupported,
       "epilogue.activation is relu and gated.gate is geglu_erf: not built together"},
      {[](Problem& p) { p.row_reduction = RowReduction{.op = RowOp::softmax}; },
       Status::unsupported,
       "row_reduction.op is softmax and gated.gate is geglu_erf: not built together"},
      {[](Problem& p) { p.n = 1 << 30; }, Status::invalid_argument,
       "n is 1073741824: with a gate at most 1073741823 is supported"},
      {[](Problem& p) { p.gated->gate = static_cast<Gate>(6); }, Status::invalid_argument,
       "gated.gate is 6: no such enumerator"},
      {[](Problem& p) { p.gated->b = static_cast<GatedB>(3); }, Status::invalid_argument,
       "gated.b is 3: no such enumerator"},
      {[](Problem& p) { p.b.ld = 11; }, Status::invalid_argument,
       "b.ld is 11: a row of 2N = 12 needs at least 12"},
      {[](Problem& p) {
         p.gated->b = GatedB::separate;
         p.b.ld = 5;
       },
       Status::invalid_argument, "b.ld is 5: a row of N = 6 needs at least 6"},
      {[](Problem& p) {
         p.epilogue.aux = true;
         p.aux.ld = 11;
       },
       Status::invalid_argument, "aux.ld is 11: a row of 2N = 12 needs at least 12"},
  };
  test::expect_errors(gated(4, 6, 8), cases);
}

TEST(ResolveGated, WhatHasColumnsHasTwiceAsMany) {
  for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
    Problem p = gated(4, 6, 8, b);
    p.epilogue.aux = true;
    p.epilogue.bias = Bias::along_n;
    const ResolvedProblem r = resolved(p);
    EXPECT_EQ(r.n, 6u);
    EXPECT_EQ(r.product_n(), 12u);
    EXPECT_EQ(r.a.bytes, 4u * 8 * 2);
    EXPECT_EQ(r.b.bytes, 8u * (b == GatedB::separate ? 6 : 12) * 2);
    EXPECT_EQ(r.d.bytes, 4u * 6 * 2);
    EXPECT_EQ(r.aux.bytes, 4u * 12 * 2);
    EXPECT_EQ(touched_bytes(r, OperandId::bias), 12u * 4);
    p.epilogue.bias = Bias::along_m;
    EXPECT_EQ(touched_bytes(resolved(p), OperandId::bias), 4u * 4);
  }
}

TEST(ResolveGated, RightHalvesThatBeginAnywhereForbidVectors) {
  const auto vectors = [](const Problem& p) { return resolved(p).b_allows_vectors(); };
  EXPECT_TRUE(vectors(gated(8, 24, 8)));
  EXPECT_FALSE(vectors(gated(8, 20, 8))) << "rows of 40, of which the right half begins at 20";
  EXPECT_TRUE(vectors(gated(8, 20, 8, GatedB::interleaved)));
  EXPECT_FALSE(vectors(gated(8, 20, 8, GatedB::separate))) << "rows of 20";
  EXPECT_TRUE(vectors(gated(8, 20, 8, GatedB::halves, DataType::f32)));
  Problem p = gated(8, 5, 8);
  p.b.layout = col;
  EXPECT_TRUE(vectors(p)) << "columns are contiguous";
}

// --- legality
// ---------------------------------------------------------------------------------------------

TEST(LegalityGated, NamesWhatIsNotBuilt) {
  const Problem f16 = gated(512, 512, 512), f32 = gated(64, 64, 64, GatedB::halves, DataType::f32);
  const std::string khr = to_string(test::khr_config);
  EXPECT_EQ(reason(khr, f16), "");
  EXPECT_EQ(reason(khr + ",pack=a", f16), "");
  EXPECT_EQ(reason(khr + ",slices=4,reduction_mode=last_arriver", f16), "");
  EXPECT_EQ(reason(khr + ",pack=ab", f16), "");
  EXPECT_EQ(reason(to_string(test::nv_config), f16), "gated: not built on main loop nv");
  EXPECT_EQ(reason("khr:tile=64x24x32,fragment=16x8x16,subgroups=2x1,subgroup_size=32", f16),
            "gated: tile_n is 24, not a multiple of 16: half of it is for the left product, half "
            "for the right one");
  EXPECT_EQ(reason("fma:tile=64x64x16,fragment=8x8", f32), "");
  EXPECT_EQ(reason("fma:tile=64x64x16,fragment=4x4", f32),
            "gated: fragment_n is 4, not a multiple of 8: half of it is for the left product, half "
            "for the right one");
  EXPECT_EQ(reason("skinny:tile=4x64x64", f32), "");
  EXPECT_EQ(reason("skinny:tile=4x24x64", f32),
            "gated: tile_n is 24, not a multiple of 16: half of it is for the left product, half "
            "for the right one");
  EXPECT_TRUE(contains(reason("fma:tile=64x1x16,fragment=4x1", f32), "tile_n is 1"));
}

// --- what is lowered
// --------------------------------------------------------------------------------------

TEST(KernelGated, ATileHoldsHalfAsManyColumnsOfD) {
  const ResolvedProblem p = resolved(gated(1000, 640, 512));
  EXPECT_EQ(d_tile_n(test::khr_config, p), 64u);
  EXPECT_EQ(tile_count(test::khr_config, p), 8u * 10);
  const DispatchPlan kernel = lowered(gated(1024, 640, 512));
  const auto& constants = kernel.product.key.constants;
  EXPECT_EQ(kernel.product.dispatches, (std::vector<Dispatch>{{.tiles = 80, .batches = 1}}));
  EXPECT_EQ(constants[SPEC_GATE], std::uint32_t{GATE_GEGLU_ERF});
  EXPECT_EQ(constants[SPEC_TILE_N], 128u);
  EXPECT_EQ(constants[SPEC_EDGES], 0u) << "640 are 10 halves of 128";
  EXPECT_EQ(kernel.product.gemm().n, 640u);
  EXPECT_EQ(lowered(gemm(1024, 640, 512)).product.key.constants[SPEC_GATE],
            std::uint32_t{GATE_NONE});
}

TEST(KernelGated, TheRightHalfIsAnAddress) {
  const auto told = [](GatedB b, Layout layout) {
    Problem p = gated(64, 40, 24, b);
    p.b.layout = layout;
    p.b.ld = 100;
    const DispatchPlan kernel = lowered(p);
    EXPECT_EQ(kernel.product.key.constants[SPEC_GATE_INTERLEAVED],
              b == GatedB::interleaved ? 1u : 0u);
    return std::pair{kernel.product.gemm().b_right, kernel.product.gemm().ldb};
  };
  using Told = std::pair<std::uint64_t, std::uint32_t>;
  EXPECT_EQ(told(GatedB::halves, Layout::row_major), (Told{40 * 2, 100}));
  EXPECT_EQ(told(GatedB::halves, col), (Told{40 * 100 * 2, 100}));
  EXPECT_EQ(told(GatedB::separate, Layout::row_major), (Told{0, 100})) << "bound later";
  EXPECT_EQ(told(GatedB::interleaved, col), (Told{100 * 2, 200})) << "every other column";
  EXPECT_EQ(told(GatedB::interleaved, Layout::row_major).second, 100u);
}

TEST(KernelGated, PartialResultsAreOfBothProducts) {
  Config split = test::khr_config;
  split.slices = 4;
  const Problem p = gated(128, 66, 512);
  EXPECT_EQ(partial_ld(resolved(p)), 2u * 68);
  EXPECT_EQ(sum_block_count(resolved(p)), (128u * 68 / 4 + 63) / 64);
  const DispatchPlan kernel = lowered(p, split);
  EXPECT_EQ(kernel.workspace.bytes, 4u * 128 * 136 * 4);
  ASSERT_EQ(kernel.after.size(), 1u);
  EXPECT_EQ(kernel.after.front().key.constants[SPEC_GATE], std::uint32_t{GATE_GEGLU_ERF});
}

TEST(KernelGated, AuxIsVectorWhereBothOfItsHalvesAre) {
  const auto vectors = [](std::uint64_t n, GatedB b) {
    Problem p = gated(64, n, 64, b);
    p.epilogue.aux = true;
    return lowered(p).product.key.constants[SPEC_AUX_VECTOR] != 0;
  };
  EXPECT_TRUE(vectors(24, GatedB::halves));
  EXPECT_FALSE(vectors(22, GatedB::halves));
  EXPECT_FALSE(vectors(22, GatedB::separate));
  EXPECT_TRUE(vectors(22, GatedB::interleaved));
}

TEST(OperandCheckGated, TheRightHalfIsAnOperand) {
  constexpr std::uint64_t mib = 1 << 20;
  const OperandRules rules(resolved(gated(4, 6, 8, GatedB::separate)), 0);
  Operands operands{
      .a = {1 * mib, mib}, .b = {4 * mib, mib}, .b_right = {3 * mib, 96}, .d = {5 * mib, mib}};
  EXPECT_TRUE(rules.check(operands));
  Addresses at;
  rules.bind(operands, at);
  EXPECT_EQ(at.b + at.b_right, 3 * mib) << "also if it stands before b";
  operands.b_right.bytes = 95;
  EXPECT_TRUE(contains(rules.check(operands).error().message,
                       "b_right.bytes is 95, the problem touches 96"));
  operands.b_right = {3 * mib + 8, 96};
  EXPECT_EQ(rules.check(operands).error().status, Status::misaligned);
  operands.b_right = {5 * mib, 96};
  EXPECT_EQ(rules.check(operands).error().status, Status::overlapping_operands);
  operands.b_right = operands.b;
  EXPECT_TRUE(rules.check(operands)) << "what is read may overlap";
}

// --- what the tables make of it
// ---------------------------------------------------------------------------

// A gated product is the work of a plain one with twice the columns.
TEST(ChooseGated, AsAPlainProductOfTwiceTheColumns) {
  const DeviceCaps caps = test::h200();
  const TuningTable& table = built_in_table(table_name(caps));
  struct Shape {
    std::uint64_t m, n, k;
    DataType type;
  };
  for (const Shape& s :
       {Shape{1024, 2048, 2048, DataType::f32}, Shape{1024, 2048, 2048, DataType::f16},
        Shape{4096, 14336, 4096, DataType::bf16}}) {
    const auto ranked = rank(table, resolved(gated(s.m, s.n, s.k, GatedB::halves, s.type)), caps);
    const auto plain = rank(table, resolved(gemm(s.m, 2 * s.n, s.k, s.type)), caps);
    ASSERT_FALSE(ranked.empty());
    EXPECT_EQ(to_string(ranked.front().config), to_string(plain.front().config));
    EXPECT_NEAR(ranked.front().cost, plain.front().cost, 0.1 * plain.front().cost);
  }
}

// --- the oracle
// -------------------------------------------------------------------------------------------

double expected_gate(Gate gate, double l, double r) {
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  switch (gate) {
    case Gate::sigmoid_tanh:
      return sigmoid(l) * std::tanh(r);
    case Gate::geglu_erf:
      return l * 0.5 * r * (1.0 + std::erf(r / std::sqrt(2.0)));
    case Gate::geglu_tanh:
      return l * 0.5 * r *
             (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (r + 0.044715 * r * r * r)));
    case Gate::swiglu:
      return l * sigmoid(l) * r;
    case Gate::reglu:
      return l * std::max(r, 0.0);
    case Gate::glu:
      return l * sigmoid(r);
  }
  return 0.0;
}

// 1×N = 1×1 · 1×2N: l and r are a row of B, and bias.
TEST(ReferenceGated, ComputesEveryGateOfEveryArrangement) {
  for (const Gate gate : {Gate::sigmoid_tanh, Gate::geglu_erf, Gate::geglu_tanh, Gate::swiglu,
                          Gate::reglu, Gate::glu}) {
    for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
      Problem p = gated(1, 3, 1, b, DataType::f32);
      p.gated->gate = gate;
      p.aux.type = DataType::f32;
      p.epilogue = {.alpha = 2.0f, .bias = Bias::along_n, .aux = true};
      const bool by_turns = b == GatedB::interleaved;
      const std::vector<float> a{0.5f}, l{-1.5f, 0.25f, 2.0f}, r{0.75f, -2.0f, 1.0f};
      std::vector<float> both(6), bias(6), d(3), aux(6);
      for (std::size_t j = 0; j < 3; ++j) {
        const std::size_t left = by_turns ? 2 * j : j, right = by_turns ? 2 * j + 1 : j + 3;
        both[left] = l[j];
        both[right] = r[j];
        bias[left] = 0.125f;
        bias[right] = -0.5f;
      }
      oracle::HostOperands operands{
          {OperandId::a, a.data()}, {OperandId::b, both.data()}, {OperandId::bias, bias.data()}};
      if (b == GatedB::separate) {
        operands[OperandId::b] = l.data();
        operands[OperandId::b_right] = r.data();
      }
      oracle::compute_reference(p, operands,
                                {{OperandId::d, d.data()}, {OperandId::aux, aux.data()}});
      operands[OperandId::d] = d.data();
      operands[OperandId::aux] = aux.data();
      for (std::size_t j = 0; j < 3; ++j) {
        const double pre_l = l[j] + 0.125, pre_r = r[j] - 0.5;
        EXPECT_FLOAT_EQ(d[j], static_cast<float>(expected_gate(gate, pre_l, pre_r)))
            << to_string(gate) << ' ' << to_string(b);
        EXPECT_EQ(aux[by_turns ? 2 * j : j], static_cast<float>(pre_l));
        EXPECT_EQ(aux[by_turns ? 2 * j + 1 : j + 3], static_cast<float>(pre_r));
      }
      EXPECT_TRUE(oracle::verify(p, operands).passed());
      d[1] += 1e-3f;
      EXPECT_EQ(oracle::verify(p, operands).failures, 1u);
      d[1] -= 1e-3f;
      aux[4] = std::nextafter(aux[4], 100.0f) + 1e-5f;
      EXPECT_EQ(oracle::verify(p, operands).failures, 1u);
    }
  }
}

// The clamped SwiGLU of gpt-oss.
TEST(ReferenceGated, ParametersAreApplied) {
  Problem p = gated(1, 3, 1, GatedB::halves, DataType::f32);
  p.gated = Gated{.gate = Gate::swiglu, .limit = 7.0f, .slope = 1.702f, .offset = 1.0f};
  EXPECT_TRUE(contains(to_command_line(p), "--gated swiglu:limit=7:slope=1.702:offset=1"));
  const std::vector<float> a{1.0f}, b{9.0f, -1.5f, 0.25f, 3.0f, -8.0f, 7.5f};
  std::vector<float> d(3);
  for (const bool swapped : {false, true}) {
    p.gated->swapped = swapped;
    oracle::compute_reference(p, {{OperandId::a, a.data()}, {OperandId::b, b.data()}},
                              {{OperandId::d, d.data()}});
    for (std::size_t j = 0; j < 3; ++j) {
      const double gate = std::min<double>(b[swapped ? j + 3 : j], 7.0);
      const double up = std::clamp<double>(b[swapped ? j : j + 3], -7.0, 7.0);
      const double expected = gate / (1.0 + std::exp(-double{1.702f} * gate)) * (up + 1.0);
      EXPECT_FLOAT_EQ(d[j], static_cast<float>(expected)) << j;
    }
  }
}

// The errors of both products go through the gate, and no further.
TEST(ReferenceGated, BoundIsThatOfBothProducts) {
  Problem p = gated(1, 1, 64, GatedB::halves, DataType::f32);
  p.gated->gate = Gate::reglu;
  const std::vector<float> a(64, 1.0f), b(128, 1.0f);
  std::vector<float> d{4096.0f};
  const oracle::HostOperands operands{
      {OperandId::a, a.data()}, {OperandId::b, b.data()}, {OperandId::d, d.data()}};
  EXPECT_TRUE(oracle::verify(p, operands).passed());
  const double of_one = (2.0 * 64 + 2.0 + 4.0) * 0x1p-23 * 64;
  d[0] = static_cast<float>(4096.0 + 1.9 * 64 * of_one);
  EXPECT_TRUE(oracle::verify(p, operands).passed());
  d[0] = static_cast<float>(4096.0 + 2.2 * 64 * of_one);
  EXPECT_FALSE(oracle::verify(p, operands).passed());
}

TEST(GatedProblem, ParametersAreChecked) {
  const auto why = [](const Gated& gated) {
    Problem problem = gemm(64, 64, 64);
    problem.gated = gated;
    const auto resolved = resolve(problem);
    return resolved ? std::string() : resolved.error().message;
  };
  EXPECT_EQ(why({.swapped = true, .limit = 7.0f, .slope = 1.702f, .offset = 1.0f}), "");
  EXPECT_EQ(why({.limit = -1.0f}), "gated.limit is -1: a number above 0 is needed, or 0 for none");
  EXPECT_EQ(why({.slope = 0.0f}), "gated.slope is 0: a number above 0 is needed");
  EXPECT_EQ(why({.offset = std::numeric_limits<float>::infinity()}),
            "gated.offset is inf: a number is needed");
  EXPECT_EQ(why({.gate = Gate::reglu, .slope = 2.0f}), "gated.slope is 2: reglu has none");
  EXPECT_EQ(why({.gate = Gate::sigmoid_tanh, .limit = 2.0f}),
            "gated.limit is 2: sigmoid_tanh has none");
}

}  // namespace
}  // namespace vkgemm
