#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "problem/resolve.hpp"
#include "test_devices.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::resolved;
using test::touched_bytes;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

// Everything in use, so that each operand's checks are reached. 4 x 6 x 8, batch 3.
Problem full_problem() {
  Problem p = gemm(4, 6, 8);
  p.batch = 3;
  p.epilogue = {.beta = 1.0f, .bias = Bias::along_n, .aux = true};
  return p;
}

struct ErrorCase {
  std::string_view name;
  std::function<void(Problem&)> change;
  Status status;
  std::string_view expected;  // in the message
};

TEST(Resolve, ErrorsNameFieldAndValue) {
  constexpr Status invalid = Status::invalid_argument;
  constexpr Status unsupported = Status::unsupported;
  const ErrorCase cases[] = {
      {"m", [](Problem& p) { p.m = 2147483648; }, invalid, "m is 2147483648: at most 2147483647"},
      {"n", [](Problem& p) { p.n = huge; }, invalid, "n is 18446744073709551615"},
      {"k", [](Problem& p) { p.k = 1ull << 40; }, invalid, "k is 1099511627776"},
      {"batch", [](Problem& p) { p.batch = 4294967296; }, invalid, "batch is 4294967296"},

      {"a.ld short", [](Problem& p) { p.a.ld = 7; }, invalid,
       "a.ld is 7: a row of K = 8 needs at least 8"},
      {"a.ld zero", [](Problem& p) { p.a.ld = 0; }, invalid, "a.ld is 0"},
      {"a.ld zero, K zero", [](Problem& p) { p.k = 0, p.a.ld = 0; }, invalid, "a.ld is 0"},
      {"a.ld huge", [](Problem& p) { p.a.ld = 2147483648; }, invalid,
       "a.ld is 2147483648: at most 2147483647"},
      {"a.ld col", [](Problem& p) { p.a.layout = Layout::col_major, p.a.ld = 3; }, invalid,
       "a.ld is 3: a column of M = 4 needs at least 4"},
      {"b.ld", [](Problem& p) { p.b.ld = 5; }, invalid, "b.ld is 5: a row of N = 6"},
      {"b.ld col", [](Problem& p) { p.b.layout = Layout::col_major, p.b.ld = 7; }, invalid,
       "b.ld is 7: a column of K = 8"},
      {"c.ld", [](Problem& p) { p.c.ld = 1; }, invalid, "c.ld is 1: a row of N = 6"},
      {"d.ld", [](Problem& p) { p.d.ld = 5; }, invalid, "d.ld is 5: a row of N = 6"},
      {"d.ld col",
       [](Problem& p) {
         p.c.layout = p.d.layout = p.aux.layout = Layout::col_major;
         p.d.ld = 3;
       },
       invalid, "d.ld is 3: a column of M = 4"},
      {"aux.ld", [](Problem& p) { p.aux.ld = 2; }, invalid, "aux.ld is 2"},

      {"d.batch_stride zero", [](Problem& p) { p.d.batch_stride = 0; }, invalid,
       "d.batch_stride is 0"},
      {"d.batch_stride short", [](Problem& p) { p.d.batch_stride = 23; }, invalid,
       "d.batch_stride is 23: the matrices of the batch would overlap, at least 24"},
      {"d.batch_stride, wide rows, one element too many side by side",
       [](Problem& p) { p.d.ld = 17, p.d.batch_stride = 6; }, invalid, "d.batch_stride is 6"},
      {"d.batch_stride within a row", [](Problem& p) { p.d.ld = 100, p.d.batch_stride = 5; },
       invalid, "d.batch_stride is 5"},
      {"aux.batch_stride zero", [](Problem& p) { p.aux.batch_stride = 0; }, invalid,
       "aux.batch_stride is 0"},
      {"aux.batch_stride short", [](Problem& p) { p.aux.batch_stride = 1; }, invalid,
       "aux.batch_stride is 1"},
      {"a.batch_stride overflow", [](Problem& p) { p.a.batch_stride = huge; }, invalid,
       "a.batch_stride is 18446744073709551615"},
      {"a.batch_stride overflow in bytes only", [](Problem& p) { p.a.batch_stride = 1ull << 62; },
       invalid, "a.batch_stride is 4611686018427387904"},
      {"b.batch_stride overflow in the sum", [](Problem& p) { p.b.batch_stride = huge / 2; },
       invalid, "b.batch_stride is 9223372036854775807"},
      {"d.batch_stride overflow", [](Problem& p) { p.d.batch_stride = huge; }, invalid,
       "d.batch_stride is 18446744073709551615"},
      {"bias overflow", [](Problem& p) { p.epilogue.bias_batch_stride = huge; }, invalid,
       "epilogue.bias_batch_stride is 18446744073709551615"},

      {"a.alignment 0", [](Problem& p) { p.a.alignment = 0; }, invalid, "a.alignment is 0"},
      {"a.alignment 1", [](Problem& p) { p.a.alignment = 1; }, invalid,
       "a.alignment is 1: a power of two is needed, at least 2, the size of f16"},
      {"b.alignment 24", [](Problem& p) { p.b.alignment = 24; }, invalid, "b.alignment is 24"},
      {"d.alignment f32", [](Problem& p) { p.d.type = DataType::f32, p.d.alignment = 2; }, invalid,
       "d.alignment is 2: a power of two is needed, at least 4, the size of f32"},

      {"alpha nan", [](Problem& p) { p.epilogue.alpha = nan; }, invalid, "epilogue.alpha is nan"},
      {"beta nan", [](Problem& p) { p.epilogue.beta = nan; }, invalid, "epilogue.beta is nan"},
      {"clamp_min nan", [](Problem& p) { p.epilogue.clamp_min = nan; }, invalid,
       "epilogue.clamp_min is nan"},
      {"clamp_max nan", [](Problem& p) { p.epilogue.clamp_max = nan; }, invalid,
       "epilogue.clamp_max is nan"},
      {"clamp order", [](Problem& p) { p.epilogue.clamp_min = 2.0f, p.epilogue.clamp_max = 1.5f; },
       invalid, "epilogue.clamp_min is 2, which is more than epilogue.clamp_max, 1.5"},

      {"types", [](Problem& p) { p.b.type = DataType::bf16; }, unsupported,
       "a.type is f16 and b.type is bf16"},
      {"layout of C", [](Problem& p) { p.c.layout = Layout::col_major; }, unsupported,
       "c.layout is col_major and d.layout is row_major"},
      {"layout of aux", [](Problem& p) { p.aux.layout = Layout::col_major; }, unsupported,
       "aux.layout is col_major and d.layout is row_major"},
      {"type enumerator", [](Problem& p) { p.d.type = static_cast<DataType>(8); }, invalid,
       "d.type is 8"},
      {"f32_arithmetic enumerator",
       [](Problem& p) { p.f32_arithmetic = static_cast<F32Arithmetic>(4); }, invalid,
       "f32_arithmetic is 4"},
      {"layout enumerator", [](Problem& p) { p.a.layout = static_cast<Layout>(9); }, invalid,
       "a.layout is 9"},
      {"activation enumerator",
       [](Problem& p) { p.epilogue.activation = static_cast<Activation>(15); }, invalid,
       "epilogue.activation is 15"},
      {"step enumerator",
       [](Problem& p) { p.epilogue.steps[1].operand = static_cast<StepOperand>(5); }, invalid,
       "epilogue.steps[1].operand is 5: no such enumerator"},
      {"tensor enumerator", [](Problem& p) { p.epilogue.tensors[2] = static_cast<TensorShape>(9); },
       invalid, "epilogue.tensors[2] is 9: no such enumerator"},
      {"bias enumerator", [](Problem& p) { p.epilogue.bias = static_cast<Bias>(200); }, invalid,
       "epilogue.bias is 200"},
  };
  ASSERT_TRUE(resolve(full_problem()));
  for (const ErrorCase& c : cases) {
    Problem p = full_problem();
    c.change(p);
    const auto result = resolve(p);
    ASSERT_FALSE(result) << c.name;
    EXPECT_EQ(result.error().status, c.status) << c.name;
    EXPECT_TRUE(contains(result.error().message, c.expected))
        << c.name << ": " << result.error().message;
  }
}

// Results and operands of the epilogue may have 8 bits, A, B and vectors may not.
TEST(Resolve, Bytes) {
  const auto why = [](const auto& change) {
    Problem p = gemm(8, 16, 32);
    change(p);
    const auto result = resolve(p);
    return result ? std::string() : result.error().message;
  };
  for (const DataType type : {DataType::s8, DataType::u8, DataType::e4m3, DataType::e5m2}) {
    EXPECT_EQ(why([type](Problem& p) {
                p.c.type = p.d.type = p.aux.type = p.t0.type = type;
                p.epilogue.beta = 1.0f;
                p.epilogue.aux = true;
                p.epilogue.tensors[0] = TensorShape::along_n;
                p.epilogue.steps[0] = {.op = StepOp::add, .operand = StepOperand::t0};
              }),
              "");
  }
  EXPECT_EQ(why([](Problem& p) { p.a.type = p.b.type = DataType::u8; }),
            "a.type is u8: without multiply_as, f16 or bf16, it is not multiplied");
  EXPECT_EQ(why([](Problem& p) {
              p.epilogue.bias = Bias::along_n;
              p.epilogue.bias_type = DataType::u8;
            }),
            "epilogue.bias_type is u8: it must be f16, bf16 or f32");
  const auto with_zero = [&](DataType type, std::int32_t zero) {
    return why([=](Problem& p) {
      p.d.type = type;
      p.epilogue.zero_point = zero;
    });
  };
  EXPECT_EQ(with_zero(DataType::s8, -128), "");
  EXPECT_EQ(with_zero(DataType::u8, 255), "");
  EXPECT_EQ(with_zero(DataType::s8, 128),
            "epilogue.zero_point is 128: for d.type s8 it must be from -128 to 127");
  EXPECT_EQ(with_zero(DataType::u8, -1),
            "epilogue.zero_point is -1: for d.type u8 it must be from 0 to 255");
  EXPECT_EQ(with_zero(DataType::e4m3, 1),
            "epilogue.zero_point is 1 and d.type is e4m3: only D of s8 or u8 has one");
  const auto quantise = [&](const auto& change) {
    return why([&](Problem& p) {
      p.d.type = DataType::s8;
      p.row_reduction = RowReduction{.op = RowOp::quantise};
      change(p);
    });
  };
  EXPECT_EQ(quantise([](Problem&) {}), "");
  EXPECT_EQ(quantise([](Problem& p) { p.d.type = DataType::f16; }),
            "d.type is f16 and row_reduction.op is quantise: it must be s8");
  EXPECT_EQ(quantise([](Problem& p) { p.row_reduction->value_type = DataType::f16; }),
            "row_reduction.value_type is f16 and row_reduction.op is quantise: it must be f32");
  EXPECT_EQ(quantise([](Problem& p) { p.epilogue.zero_point = 3; }),
            "epilogue.zero_point is 3 and row_reduction.op is quantise, whose codes have none");
  EXPECT_EQ(quantise([](Problem& p) { p.row_reduction->store_d = false; }),
            "row_reduction.store_d is false: D is all that quantise gives");
}

TEST(Resolve, ResultsOfTwoDimensionsDoNotOverlap) {
  const auto why = [](const auto& change) {
    Problem p = gemm(8, 16, 32);
    p.batch = 3;
    p.outer_batch = 4;
    change(p);
    const auto result = resolve(p);
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(why([](Problem&) {}), "");
  EXPECT_EQ(why([](Problem& p) { p.d.outer_batch_stride = 0; }),
            "d.outer_batch_stride is 0: matrices would overlap, at least 128 is needed");
  EXPECT_EQ(
      why([](Problem& p) { p.d.outer_batch_stride = 383; }),
      "d.outer_batch_stride is 383: the 4 matrices of batch and outer_batch would overlap, at "
      "least 384 is needed");
  EXPECT_EQ(why([](Problem& p) { p.d.outer_batch_stride = 384; }), "");
  // Either dimension may be the near one.
  const auto near_outer = [](std::uint64_t far) {
    return [far](Problem& p) {
      p.d.outer_batch_stride = 128;
      p.d.batch_stride = far;
    };
  };
  EXPECT_EQ(why(near_outer(512)), "");
  EXPECT_EQ(
      why(near_outer(511)),
      "d.batch_stride is 511: the 3 matrices of batch and outer_batch would overlap, at least "
      "512 is needed");
  // Heads side by side in the rows of each outer matrix, and all within one row.
  EXPECT_EQ(why([](Problem& p) {
              p.d.ld = 48;
              p.d.batch_stride = 16;
              p.d.outer_batch_stride = 8 * 48;
            }),
            "");
  EXPECT_EQ(why([](Problem& p) {
              p.d.ld = 192;
              p.d.batch_stride = 16;
              p.d.outer_batch_stride = 48;
            }),
            "");
  EXPECT_EQ(why([](Problem& p) { p.a.outer_batch_stride = p.b.batch_stride = 0; }), "");
  EXPECT_EQ(why([](Problem& p) {
              p.batch = 1;
              p.grouping = Grouping{.groups = 2};
            }),
            "outer_batch is 4: with grouping it must be 1");
  EXPECT_EQ(why([](Problem& p) { p.a.outer_batch_stride = UINT64_MAX / 2; }),
            "a.outer_batch_stride is 9223372036854775807: an outer batch of 4 does not fit 64 bits "
            "of bytes");
  EXPECT_EQ(
      why([](Problem& p) {
        p.epilogue.tensors[1] = TensorShape::scalar;
        p.epilogue.steps[0] = {.op = StepOp::amax, .operand = StepOperand::t1};
        p.t1.type = DataType::f32;
        p.t1.outer_batch_stride = 1;
      }),
      "t1.outer_batch_stride is 1: a step writes amax to t1, so it must be 0: one number is for "
      "the whole batch");
  EXPECT_EQ(why([](Problem& p) {
              p.a.batch_stride = (std::uint64_t{1} << 62) - (std::uint64_t{1} << 38);
              p.a.outer_batch_stride = std::uint64_t{1} << 61;
            }),
            "a.outer_batch_stride is 2305843009213693952: an outer batch of 4 does not fit 64 bits "
            "of bytes");
  Problem empty = gemm(8, 16, 32);
  empty.outer_batch = 0;
  EXPECT_TRUE(resolved(empty).is_empty());
}

TEST(Resolve, IgnoresWhatIsNotUsed) {
  Problem p = gemm(4, 6, 8);
  p.c = {.layout = Layout::col_major, .ld = 0, .alignment = 3};
  p.aux = p.c;
  p.a.batch_stride = huge;  // no second matrix
  p.d.batch_stride = 0;
  p.epilogue.bias_batch_stride = huge;
  const auto result = resolve(p);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->c.bytes, 0u);
  EXPECT_EQ(result->aux.bytes, 0u);
  EXPECT_EQ(result->a.batch_stride, 0u);
  EXPECT_EQ(touched_bytes(*result, OperandId::bias), 0u);
}

TEST(Resolve, DefaultsArePacked) {
  Problem p = full_problem();
  p.b.layout = Layout::col_major;
  const ResolvedProblem r = resolved(p);
  EXPECT_EQ(r.a.ld, 8u);
  EXPECT_EQ(r.b.ld, 8u);
  EXPECT_EQ(r.d.ld, 6u);
  EXPECT_EQ(r.a.batch_stride, 32u);
  EXPECT_EQ(r.b.batch_stride, 48u);
  EXPECT_EQ(r.d.batch_stride, 24u);
  EXPECT_EQ(r.a.bytes, 3u * 32 * 2);
  EXPECT_EQ(r.b.bytes, 3u * 48 * 2);
  EXPECT_EQ(r.d.bytes, 3u * 24 * 2);
  EXPECT_EQ(touched_bytes(r, OperandId::bias), 6u * 4);
}

TEST(Resolve, BytesReachTheLastElementAndNoFurther) {
  Problem p = full_problem();
  p.a.ld = 11;
  p.a.batch_stride = 100;
  p.d = {.type = DataType::f32, .ld = 9};
  p.c.batch_stride = 0;
  p.epilogue.bias_batch_stride = 7;
  const ResolvedProblem r = resolved(p);
  EXPECT_EQ(r.a.bytes, (2u * 100 + 3 * 11 + 8) * 2);
  EXPECT_EQ(r.d.batch_stride, 36u);
  EXPECT_EQ(r.d.bytes, (2u * 36 + 3 * 9 + 6) * 4);
  EXPECT_EQ(r.c.bytes, 24u * 2);
  EXPECT_EQ(touched_bytes(r, OperandId::bias), (2u * 7 + 6) * 4);
}

TEST(Resolve, BatchesMayLieSideBySideInTheRowsOfD) {
  Problem p = full_problem();  // 3 matrices of 4 x 6
  p.d.ld = 18;
  p.d.batch_stride = 6;
  const auto result = resolve(p);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->d.bytes, 4u * 18 * 2);
}

TEST(Resolve, LargerThan4GiB) {
  const ResolvedProblem r = resolved(gemm(1700000, 96, 2592));
  EXPECT_EQ(r.a.bytes, 1700000ull * 2592 * 2);
  const ResolvedProblem largest = resolved(gemm(2147483647, 2147483647, 1, DataType::f16));
  EXPECT_EQ(largest.d.bytes, 2147483647ull * 2147483647ull * 2);
}

TEST(Resolve, EmptyProblemsTouchNothing) {
  for (int zero = 0; zero < 3; ++zero) {
    Problem p = full_problem();
    (zero == 0 ? p.m : zero == 1 ? p.n : p.batch) = 0;
    const auto r = resolve(p);
    ASSERT_TRUE(r) << zero << ": " << r.error().message;
    EXPECT_TRUE(r->is_empty());
    EXPECT_EQ(r->a.bytes + r->b.bytes + r->c.bytes + r->d.bytes + r->aux.bytes +
                  touched_bytes(*r, OperandId::bias),
              0u)
        << zero;
  }
}

TEST(Resolve, WithoutKOnlyTheEpilogueRemains) {
  Problem p = full_problem();
  p.k = 0;
  const ResolvedProblem r = resolved(p);
  EXPECT_FALSE(r.is_empty());
  EXPECT_EQ(r.a.bytes, 0u);
  EXPECT_EQ(r.b.bytes, 0u);
  EXPECT_EQ(r.c.bytes, 3u * 24 * 2);
  EXPECT_EQ(r.d.bytes, 3u * 24 * 2);
}

TEST(Resolve, ColumnMajorDIsTheProductOfTransposes) {
  Problem p = full_problem();
  p.a = {.ld = 10, .alignment = 4};
  p.b = {.layout = Layout::col_major, .ld = 12, .alignment = 8};
  p.c.layout = p.d.layout = p.aux.layout = Layout::col_major;
  p.d.ld = 5;
  const ResolvedProblem r = resolved(p);
  EXPECT_TRUE(r.transposed);
  EXPECT_EQ(r.m, 6u);
  EXPECT_EQ(r.n, 4u);
  EXPECT_EQ(r.k, 8u);
  // B was K x N by columns: its transpose is N x K by rows, the same memory.
  EXPECT_EQ(r.a.rows, 6u);
  EXPECT_EQ(r.a.cols, 8u);
  EXPECT_EQ(r.a.layout, Layout::row_major);
  EXPECT_EQ(r.a.ld, 12u);
  EXPECT_EQ(r.a.alignment, 8u);
  EXPECT_EQ(r.b.rows, 8u);
  EXPECT_EQ(r.b.cols, 4u);
  EXPECT_EQ(r.b.layout, Layout::col_major);
  EXPECT_EQ(r.b.ld, 10u);
  EXPECT_EQ(r.d.layout, Layout::row_major);
  EXPECT_EQ(r.d.rows, 6u);
  EXPECT_EQ(r.d.cols, 4u);
  EXPECT_EQ(r.d.ld, 5u);
  EXPECT_EQ(r.d.bytes, (2u * 30 + 5 * 5 + 4) * 2);
  EXPECT_EQ(r.epilogue.bias, Bias::along_m);
  EXPECT_EQ(touched_bytes(r, OperandId::bias), 6u * 4);  // still as long as the caller's N

  p.epilogue.bias = Bias::along_m;
  EXPECT_EQ(resolved(p).epilogue.bias, Bias::along_n);
  p.epilogue.bias = Bias::none;
  EXPECT_EQ(resolved(p).epilogue.bias, Bias::none);
}

TEST(Resolve, VectorsNeedEveryDistanceAligned) {
  const auto allows = [](Matrix matrix, std::uint64_t k, std::uint64_t batch, std::uint32_t width) {
    Problem p = gemm(5, 16, k);
    p.batch = batch;
    p.a = matrix;
    return resolved(p).a.allows_vectors(width);
  };
  EXPECT_TRUE(allows({}, 8, 1, 16));
  EXPECT_TRUE(allows({.alignment = 256}, 64, 1, 16));
  EXPECT_FALSE(allows({.alignment = 8}, 8, 1, 16));
  EXPECT_TRUE(allows({.alignment = 8}, 8, 1, 8));
  EXPECT_FALSE(allows({.ld = 12}, 8, 1, 16));
  EXPECT_TRUE(allows({.ld = 12}, 8, 1, 8));
  EXPECT_FALSE(allows({.ld = 16}, 12, 1, 16)) << "a vector would straddle the row's end";
  EXPECT_FALSE(allows({}, 12, 1, 16));
  EXPECT_FALSE(allows({.batch_stride = 44}, 8, 2, 16));
  EXPECT_TRUE(allows({.batch_stride = 44}, 8, 1, 16)) << "no second matrix";
  EXPECT_TRUE(allows({.batch_stride = 0}, 8, 9, 16));
  EXPECT_FALSE(allows({.layout = Layout::col_major}, 8, 1, 16)) << "columns of 5";
}

}  // namespace
}  // namespace vkgemm
