// Types of inputs: which ones are multiplied, in which arithmetic, and what is refused.
#include <gtest/gtest.h>

#include "problem/resolve.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::resolved;
using test::touched_bytes;

TEST(Resolve, IntegersAreOfOneKindOfProduct) {
  Problem sums = gemm(8, 16, 32);
  sums.a.type = sums.b.type = DataType::s8;
  sums.d.type = DataType::s32;
  ASSERT_TRUE(resolve(sums));
  Problem scaled = sums;
  scaled.d.type = DataType::f16;
  scaled.epilogue.row_scales = Scales::shared;
  ASSERT_TRUE(resolve(scaled));
  const auto why = [](Problem p, const auto& change) {
    change(p);
    const auto result = resolve(p);
    return result ? std::string() : result.error().message;
  };
  const auto alone = [](std::string_view what) {
    return "d.type is s32 and " + std::string(what) + ": D holds the sums alone";
  };
  EXPECT_EQ(why(sums, [](Problem& p) { p.epilogue.alpha = 2.0f; }), alone("epilogue.alpha is 2"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.epilogue.beta = 1.0f; }), alone("epilogue.beta is 1"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.epilogue.row_scales = Scales::shared; }),
            alone("epilogue.row_scales is shared"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.epilogue.column_scales = Scales::per_matrix; }),
            alone("epilogue.column_scales is per_matrix"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.epilogue.bias = Bias::along_n; }),
            alone("epilogue.bias is along_n"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.epilogue.activation = Activation::relu; }),
            alone("epilogue.activation is relu"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.epilogue.aux = true; }), alone("epilogue.aux is true"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.epilogue.clamp_max = 6.0f; }),
            alone("epilogue.clamp_max is 6"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.gated = Gated{.gate = Gate::reglu}; }),
            alone("gated.gate is reglu"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.row_reduction = RowReduction{.op = RowOp::sum}; }),
            alone("row_reduction.op is sum"));
  EXPECT_EQ(why(sums, [](Problem& p) { p.k = 131071; }), "");
  EXPECT_EQ(why(sums, [](Problem& p) { p.k = 131072; }),
            "k is 131072 and a.type is s8: sums of at most 131071 products fit s32");
  EXPECT_EQ(why(sums, [](Problem& p) { p.a.type = p.b.type = DataType::s32; }),
            "a.type is s32: A and B are f16, bf16, f32, s8, u8, e4m3 or e5m2");
  EXPECT_EQ(why(sums, [](Problem& p) { p.a.type = p.b.type = DataType::f16; }),
            "d.type is s32 and a.type is f16: D is f16, bf16, f32, s8, u8, e4m3 or e5m2, or of s8 "
            "inputs s32");
  EXPECT_EQ(why(scaled, [](Problem& p) { p.epilogue.beta = 1.0f, p.c.type = DataType::s32; }),
            "c.type is s32: it must be f16, bf16, f32, s8, u8, e4m3 or e5m2");
  EXPECT_EQ(why(scaled, [](Problem& p) { p.epilogue.aux = true, p.aux.type = DataType::s32; }),
            "aux.type is s32: it must be f16, bf16, f32, s8, u8, e4m3 or e5m2");
  EXPECT_EQ(why(scaled, [](Problem& p) { p.b.type = DataType::f16; }),
            "a.type is s8 and b.type is f16: without multiply_as, A and B must share one type");
}

TEST(Resolve, PartsAreOfF32) {
  Problem f32 = gemm(8, 16, 32);
  f32.a.type = f32.b.type = DataType::f32;
  const auto why = [&](F32Arithmetic arithmetic, const auto& change) {
    Problem p = f32;
    p.f32_arithmetic = arithmetic;
    change(p);
    const auto result = resolve(p);
    return result ? std::string() : result.error().message;
  };
  const auto no_change = [](Problem&) {};
  const auto f16 = [](Problem& p) { p.a.type = p.b.type = DataType::f16; };
  const auto s8 = [](Problem& p) { p.a.type = p.b.type = DataType::s8; };
  const auto rows = [](Problem& p) { p.epilogue.row_scales = Scales::shared; };
  const auto columns = [](Problem& p) { p.epilogue.column_scales = Scales::per_matrix; };
  const auto packed = [](Problem& p) { p.b.packing = Packing::packed; };
  for (const F32Arithmetic arithmetic :
       {F32Arithmetic::ieee, F32Arithmetic::bf16x9, F32Arithmetic::bf16x6, F32Arithmetic::f16x3}) {
    EXPECT_EQ(why(arithmetic, no_change), "");
  }
  EXPECT_EQ(why(F32Arithmetic::ieee, f16), "");
  EXPECT_EQ(why(F32Arithmetic::bf16x9, f16),
            "f32_arithmetic is bf16x9 and a.type is f16: only f32 is multiplied in parts");
  EXPECT_EQ(why(F32Arithmetic::f16x3, s8),
            "f32_arithmetic is f16x3 and a.type is s8: only f32 is multiplied in parts");
  EXPECT_EQ(why(F32Arithmetic::bf16x6, rows), "");
  EXPECT_EQ(why(F32Arithmetic::f16x3, rows),
            "f32_arithmetic is f16x3 and epilogue.row_scales is shared: not built together");
  EXPECT_EQ(why(F32Arithmetic::f16x3, columns),
            "f32_arithmetic is f16x3 and epilogue.column_scales is per_matrix: not built together");
  EXPECT_EQ(why(F32Arithmetic::f16x3, packed), "");
  const auto groups = [](Problem& p) {
    p.grouping = Grouping{.groups = 2, .along = GroupAlong::k};
  };
  EXPECT_EQ(why(F32Arithmetic::bf16x9, groups), "");
  EXPECT_EQ(
      why(F32Arithmetic::f16x3, groups),
      "f32_arithmetic is f16x3 and grouping.along is k: groups would share their lines' scales");
  EXPECT_EQ(why(F32Arithmetic::ieee, packed),
            "b.packing is packed and b.type is f32 and f32_arithmetic is ieee: 16-bit types and s8 "
            "are packed, and f32 in parts");
}

// Parts are what is packed: three bf16, or two f16 with scales of the lines along N.
TEST(Resolve, PackedF32IsInParts) {
  Problem p = gemm(8, 16, 32);
  p.a.type = p.b.type = DataType::f32;
  p.b.packing = Packing::packed;
  p.f32_arithmetic = F32Arithmetic::bf16x6;
  const ResolvedProblem bf16 = resolved(p);
  EXPECT_EQ(bf16.input_type(), DataType::bf16);
  EXPECT_EQ(bf16.a.type, DataType::f32);
  EXPECT_EQ(bf16.b.type, DataType::bf16);
  EXPECT_EQ(bf16.b.element_bytes(), 6u);
  EXPECT_EQ(bf16.b.bytes, bf16.b.ld * bf16.b.lines() * 6);
  p.f32_arithmetic = F32Arithmetic::f16x3;
  const ResolvedProblem f16 = resolved(p);
  EXPECT_EQ(f16.input_type(), DataType::f16);
  EXPECT_EQ(f16.b.element_bytes(), 4u);
  EXPECT_EQ(f16.b.bytes, f16.b.ld * f16.b.lines() * 4 + f16.b.ld * sizeof(float));
}

TEST(Resolve, UnlikeTypesAreMultipliedAsOne) {
  const auto why = [](const auto& change) {
    Problem p = gemm(8, 16, 32);
    p.a.type = DataType::f32;
    change(p);
    const auto result = resolve(p);
    return result ? std::string() : result.error().message;
  };
  const auto as = [&](DataType type, const auto& change) {
    return why([&](Problem& p) {
      p.multiply_as = type;
      change(p);
    });
  };
  const auto no_change = [](Problem&) {};
  EXPECT_EQ(why(no_change),
            "a.type is f32 and b.type is f16: without multiply_as, A and B must share one type");
  EXPECT_EQ(as(DataType::f16, no_change), "");
  EXPECT_EQ(as(DataType::bf16, no_change), "");
  EXPECT_EQ(
      as(DataType::f32, no_change),
      "multiply_as is f32: f16 and bf16 are supported, s8 with a quantised B, and e4m3 without");
  EXPECT_EQ(as(DataType::f16, [](Problem& p) { p.b.type = DataType::s32; }),
            "b.type is s32: A and B are f16, bf16, f32, s8, u8, e4m3 or e5m2");
  EXPECT_EQ(as(DataType::f16,
               [](Problem& p) {
                 p.a.type = p.b.type = DataType::s8;
                 p.d.type = DataType::s32;
               }),
            "d.type is s32 and a.type is s8: D is f16, bf16, f32, s8, u8, e4m3 or e5m2, or of s8 "
            "inputs s32");
  EXPECT_EQ(as(DataType::f16, [](Problem& p) { p.f32_arithmetic = F32Arithmetic::bf16x6; }),
            "f32_arithmetic is bf16x6 and multiply_as is f16: it must be ieee");
  const auto codes = [](Problem& p) {
    p.quantised_b = Quantisation{.type = CodeType::int4, .group_k = 32};
    p.b.packing = Packing::packed;
  };
  EXPECT_EQ(as(DataType::f16, codes), "");
  EXPECT_EQ(as(DataType::bf16, codes),
            "quantised_b.type is int4, b.type is f16 and multiply_as is bf16: codes are multiplied "
            "as b.type");
  EXPECT_EQ(why(codes),
            "a.type is f32 and quantised_b.type is int4, multiplied as b.type is f16: without "
            "multiply_as, A and B must share one type");
}

TEST(Resolve, FloatsOf8BitsAreMultipliedAsF16) {
  Problem p = gemm(8, 16, 32);
  p.a.type = DataType::e4m3;
  for (const DataType b : {DataType::e4m3, DataType::e5m2, DataType::f16}) {
    p.b.type = b;
    const ResolvedProblem problem = resolved(p);
    EXPECT_EQ(problem.input_type(), DataType::f16);
    EXPECT_TRUE(problem.converts(problem.a));
    EXPECT_EQ(problem.a.bytes, 8u * 32u);
    EXPECT_EQ(problem.load_bytes_of(problem.a), 8u);
  }
  p.b.type = DataType::bf16;
  EXPECT_EQ(resolve(p).error().message,
            "a.type is e4m3 and b.type is bf16: without multiply_as, A and B must share one type");
  p.multiply_as = DataType::bf16;
  EXPECT_EQ(resolved(p).input_type(), DataType::bf16);
}

// As they are, where the device has matrices of them.
TEST(Resolve, FloatsOf8BitsAreNative) {
  Problem p = gemm(8, 16, 32);
  p.a.type = p.b.type = DataType::e4m3;
  const auto on = [&](const DeviceCaps& caps) { return native_type(p, caps); };
  EXPECT_EQ(on(test::navi48()), DataType::e4m3);
  EXPECT_EQ(on(test::h200()), std::nullopt);
  p.multiply_as = DataType::f16;
  EXPECT_EQ(on(test::navi48()), std::nullopt);
  p.multiply_as = DataType::e4m3;
  const ResolvedProblem problem = resolved(p);
  EXPECT_EQ(problem.input_type(), DataType::e4m3);
  EXPECT_FALSE(problem.converts(problem.a));
  p.b.type = DataType::f16;
  EXPECT_EQ(resolve(p).error().message, "b.type is f16 and multiply_as is e4m3: it must be e4m3");
  p.multiply_as.reset();
  EXPECT_EQ(on(test::navi48()), std::nullopt);
  p.a.type = p.b.type = DataType::e5m2;
  EXPECT_EQ(on(test::navi48()), std::nullopt);
  p.a.type = p.b.type = DataType::e4m3;
  p.b.packing = Packing::packed;
  EXPECT_EQ(on(test::navi48()), std::nullopt);
}

TEST(Resolve, ConvertedOperandsKeepTheirType) {
  Problem p = gemm(8, 16, 32);
  p.a.type = DataType::f32;
  p.multiply_as = DataType::bf16;
  const ResolvedProblem problem = resolved(p);
  EXPECT_EQ(problem.input_type(), DataType::bf16);
  EXPECT_TRUE(problem.converts(problem.a));
  EXPECT_TRUE(problem.converts(problem.b));
  EXPECT_EQ(problem.a.bytes, 8u * 32 * 4);
  EXPECT_TRUE(problem.a_allows_vectors());
  // Loads take eight elements, which are 32 bytes of f32 at a multiple of 16.
  p.k = 36;
  EXPECT_FALSE(resolved(p).a_allows_vectors());
  p.k = 40;
  EXPECT_TRUE(resolved(p).a_allows_vectors());
  p.a.alignment = 8;
  EXPECT_FALSE(resolved(p).a_allows_vectors());
  p.a = {.type = DataType::f32, .packing = Packing::packed};
  EXPECT_EQ(resolved(p).a.type, DataType::bf16);
  EXPECT_FALSE(resolved(p).converts(resolved(p).a));
}

TEST(Resolve, ScalesAreOfWhatIsMultiplied) {
  Problem p = gemm(8, 16, 32);
  p.batch = 3;
  p.epilogue.row_scales = Scales::per_matrix;
  p.epilogue.column_scales = Scales::shared;
  const ResolvedProblem rows = resolved(p);
  EXPECT_EQ(touched_bytes(rows, OperandId::row_scales), 3u * 8 * 4);
  EXPECT_EQ(touched_bytes(rows, OperandId::column_scales), 16u * 4);
  // The transposed product has the columns as its rows, and the caller's operands stay his.
  p.d.layout = Layout::col_major;
  const ResolvedProblem columns = resolved(p);
  EXPECT_EQ(columns.epilogue.row_scales, Scales::shared);
  EXPECT_EQ(columns.epilogue.column_scales, Scales::per_matrix);
  EXPECT_EQ(touched_bytes(columns, OperandId::row_scales), 3u * 8 * 4);
  EXPECT_EQ(touched_bytes(columns, OperandId::column_scales), 16u * 4);
  // One matrix has no others, an empty sum no factors.
  p.batch = 1;
  EXPECT_EQ(resolved(p).epilogue.column_scales, Scales::shared);
  p.k = 0;
  EXPECT_FALSE(resolved(p).has_scales());
  // Groups of rows have factors of their own columns, and one for each row.
  Problem grouped = gemm(64, 16, 32);
  grouped.grouping = Grouping{.groups = 5};
  grouped.epilogue.row_scales = grouped.epilogue.column_scales = Scales::per_matrix;
  EXPECT_EQ(touched_bytes(resolved(grouped), OperandId::row_scales), 64u * 4);
  EXPECT_EQ(touched_bytes(resolved(grouped), OperandId::column_scales), 5u * 16 * 4);
  Problem gated = gemm(8, 16, 32);
  gated.gated = Gated{.gate = Gate::swiglu};
  gated.epilogue.column_scales = Scales::shared;
  EXPECT_EQ(touched_bytes(resolved(gated), OperandId::column_scales), 2u * 16 * 4);
}

}  // namespace
}  // namespace vkgemm
