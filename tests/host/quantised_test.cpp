// Quantised matrices: what codes mean, where they stand, what is refused.
#include "oracle/quantised.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expectations.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/quantised.hpp"
#include "lib/quantised.h"
#include "oracle/reference.hpp"
#include "problem/convert.hpp"
#include "problem/inputs/codes.hpp"
#include "problem/resolve.hpp"

namespace vkgemm {
namespace {

using oracle::code_value;
using oracle::CodeMatrix;

constexpr double infinity = std::numeric_limits<double>::infinity();

Problem quantised(const Quantisation& q, std::uint64_t n = 10, std::uint64_t k = 64,
                  Layout layout = Layout::row_major) {
  return {.m = 1, .n = n, .k = k, .b = {.layout = layout}, .quantised_b = q};
}

// --- codes

TEST(Codes, OfIntegers) {
  EXPECT_EQ(code_value(CodeType::int8, false, 0x00), 0.0);
  EXPECT_EQ(code_value(CodeType::int8, false, 0x7f), 127.0);
  EXPECT_EQ(code_value(CodeType::int8, false, 0x80), -128.0);
  EXPECT_EQ(code_value(CodeType::int8, false, 0xff), -1.0);
  EXPECT_EQ(code_value(CodeType::int4, false, 0x7), 7.0);
  EXPECT_EQ(code_value(CodeType::int4, false, 0x8), -8.0);
  EXPECT_EQ(code_value(CodeType::int4, false, 0xf), -1.0);
  EXPECT_EQ(code_value(CodeType::int4, true, 0xf), 15.0);
}

// The tables of the OCP specifications of 8-bit floats and of microscaling formats, whose numbers
// grow with their codes.
TEST(Codes, OfFloats) {
  constexpr std::array<double, 8> e2m1{0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
  for (std::uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(code_value(CodeType::mxfp4, false, code), e2m1[code]);
    EXPECT_EQ(code_value(CodeType::mxfp4, false, code | 8), -e2m1[code]);
  }
  const auto value_of = [](CodeType type, std::uint32_t code) {
    return code_value(type, false, code);
  };
  EXPECT_EQ(value_of(CodeType::e4m3, 0x01), 0x1p-9);  // the smallest subnormal
  EXPECT_EQ(value_of(CodeType::e4m3, 0x07), 0x7p-9);  // the largest one
  EXPECT_EQ(value_of(CodeType::e4m3, 0x08), 0x1p-6);  // the smallest normal number
  EXPECT_EQ(value_of(CodeType::e4m3, 0x38), 1.0);
  EXPECT_EQ(value_of(CodeType::e4m3, 0x7e), 448.0);
  EXPECT_TRUE(std::isnan(value_of(CodeType::e4m3, 0x7f)));
  EXPECT_TRUE(std::isnan(value_of(CodeType::e4m3, 0xff)));
  EXPECT_EQ(value_of(CodeType::e5m2, 0x01), 0x1p-16);
  EXPECT_EQ(value_of(CodeType::e5m2, 0x04), 0x1p-14);
  EXPECT_EQ(value_of(CodeType::e5m2, 0x3c), 1.0);
  EXPECT_EQ(value_of(CodeType::e5m2, 0x7b), 57344.0);
  EXPECT_EQ(value_of(CodeType::e5m2, 0x7c), infinity);
  EXPECT_EQ(value_of(CodeType::e5m2, 0xfc), -infinity);
  EXPECT_TRUE(std::isnan(value_of(CodeType::e5m2, 0x7d)));
  for (const CodeType type : {CodeType::e4m3, CodeType::e5m2}) {
    const std::uint32_t last = type == CodeType::e4m3 ? 0x7e : 0x7b;
    for (std::uint32_t code = 0; code <= last; ++code) {
      EXPECT_EQ(value_of(type, code | 0x80), -value_of(type, code));
      if (code > 0) {
        EXPECT_GT(value_of(type, code), value_of(type, code - 1));
      }
    }
  }
  // An f16's upper byte.
  for (std::uint32_t code = 0; code < 0x7c; ++code) {
    EXPECT_EQ(value_of(CodeType::e5m2, code), from_f16(static_cast<std::uint16_t>(code << 8)));
  }
}

TEST(Codes, TheNearest) {
  for (const CodeType type :
       {CodeType::int8, CodeType::int4, CodeType::e4m3, CodeType::e5m2, CodeType::mxfp4}) {
    for (std::uint32_t code = 0; code < oracle::code_count(type); ++code) {
      const double value = code_value(type, false, code);
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(code_value(type, false, oracle::nearest_code(type, false, value)), value);
    }
  }
  EXPECT_EQ(oracle::nearest_code(CodeType::int4, false, 1e9), 7u);
  EXPECT_EQ(oracle::nearest_code(CodeType::int4, false, -1e9), 8u);
  EXPECT_EQ(oracle::nearest_code(CodeType::int4, true, 2.4), 2u);
  EXPECT_EQ(oracle::nearest_code(CodeType::mxfp4, false, 2.5), 4u);  // 2 or 3: the even code
}

// --- where they stand

TEST(CodeMatrix, PairsAreAlongK) {
  CodeMatrix rows(quantised({.type = CodeType::int4}, 10, 5));
  EXPECT_EQ(rows.codes.size(), 3u * 10);
  rows.set_code(0, 2, 7, 0x3);
  rows.set_code(0, 3, 7, 0xa);
  EXPECT_EQ(rows.codes[1 * 10 + 7], std::byte{0xa3});
  CodeMatrix columns(quantised({.type = CodeType::int4}, 10, 5, Layout::col_major));
  EXPECT_EQ(columns.codes.size(), 10u * 3);
  columns.set_code(0, 2, 7, 0x3);
  columns.set_code(0, 3, 7, 0xa);
  EXPECT_EQ(columns.codes[7 * 3 + 1], std::byte{0xa3});
}

TEST(CodeMatrix, ScalesLieAsBDoes) {
  const Quantisation q{
      .type = CodeType::int4, .group_k = 32, .scale_type = DataType::f32, .zeros = true};
  for (const Layout layout : {Layout::row_major, Layout::col_major}) {
    CodeMatrix codes(quantised(q, 10, 70, layout));
    EXPECT_EQ(codes.scales.size(), 3u * 10 * 4);
    EXPECT_EQ(codes.zeros.size(), 3u * 10);
    codes.set_scale(0, 69, 4, 2.5);
    codes.set_zero(0, 69, 4, 9);
    const std::size_t at = layout == Layout::row_major ? 2 * 10 + 4 : 4 * 3 + 2;
    EXPECT_EQ(load_element(codes.scales.data(), DataType::f32, at), 2.5);
    EXPECT_EQ(codes.zeros[at], std::byte{9});
    EXPECT_EQ(codes.scale(0, 64, 4), 2.5);
  }
  CodeMatrix blocks(quantised({.type = CodeType::e4m3, .group_k = 128, .group_n = 128}, 300, 200));
  EXPECT_EQ(blocks.scales.size(), 2u * 3 * 2);
  CodeMatrix one(quantised({.type = CodeType::e4m3, .group_n = 0}, 300, 200));
  EXPECT_EQ(one.scales.size(), 2u);
}

TEST(CodeMatrix, Mxfp4HasGroupsOf32) {
  CodeMatrix codes(quantised({.type = CodeType::mxfp4}, 3, 64));
  EXPECT_EQ(codes.scales.size(), 3u * 2);
  codes.set_scale(0, 32, 1, 4.0);
  EXPECT_EQ(codes.scale(0, 63, 1), 4.0);
  EXPECT_EQ(codes.scale(0, 31, 1), std::ldexp(1.0, -127));
}

// block_q4_0, block_q8_0 and block_mxfp4, byte by byte.
TEST(CodeMatrix, BlocksOfGgml) {
  Quantisation q{.type = CodeType::int4, .group_k = 32, .layout = CodeLayout::ggml_blocks};
  CodeMatrix q4_0(quantised(q, 3, 64, Layout::col_major));
  ASSERT_EQ(q4_0.codes.size(), 3u * 2 * 18);
  EXPECT_TRUE(q4_0.scales.empty());
  const std::size_t second = (1 * 2 + 1) * 18;  // column 1, codes 32 to 63
  q4_0.set_scale(0, 32, 1, 0.5);
  q4_0.set_code(0, 32 + 3, 1, 0xf);   // -1: 7 behind the lowest value
  q4_0.set_code(0, 32 + 19, 1, 0x2);  // 2: 10
  EXPECT_EQ(q4_0.codes[second + 1], std::byte{0x38});
  EXPECT_EQ(q4_0.codes[second + 2 + 3], std::byte{0xa7});
  EXPECT_EQ(q4_0.element(0, 35, 1), -0.5f);
  EXPECT_EQ(q4_0.element(0, 51, 1), 1.0f);

  q.type = CodeType::int8;
  CodeMatrix q8_0(quantised(q, 3, 64, Layout::col_major));
  ASSERT_EQ(q8_0.codes.size(), 3u * 2 * 34);
  q8_0.set_code(0, 33, 2, 0xfe);
  EXPECT_EQ(q8_0.codes[(2 * 2 + 1) * 34 + 2 + 1], std::byte{0xfe});

  q.type = CodeType::mxfp4;
  CodeMatrix mxfp4(quantised(q, 3, 64, Layout::col_major));
  ASSERT_EQ(mxfp4.codes.size(), 3u * 2 * 17);
  mxfp4.set_scale(0, 0, 0, 4.0);
  mxfp4.set_code(0, 1, 0, 0x3);
  mxfp4.set_code(0, 17, 0, 0xc);
  EXPECT_EQ(mxfp4.codes[0], std::byte{129});
  EXPECT_EQ(mxfp4.codes[1 + 1], std::byte{0xc3});
  EXPECT_EQ(mxfp4.element(0, 1, 0), 6.0f);
  EXPECT_EQ(mxfp4.element(0, 17, 0), -8.0f);
}

// Sums over a block whose byte i is 37 i + 11, with an f16 scale of 0.5 and a minimum of 0.25. ggml
// d99724f computes the same with dequantize_row_*().
TEST(CodeMatrix, ElementsOfGgml) {
  struct Case {
    CodeType type;
    int scale, minimum;  // bytes of the f16 numbers; -1: none
    double sum;
  };
  for (const Case& c : {Case{CodeType::q4_1, 0, 2, 723.75},
                        {CodeType::q5_0, 0, -1, 78.5},
                        {CodeType::q5_1, 0, 2, 1456.75},
                        {CodeType::q2_k, 80, 82, 33446.0},
                        {CodeType::q3_k, 108, -1, 22449.0},
                        {CodeType::q4_k, 0, 2, 959686.5},
                        {CodeType::q5_k, 0, 2, 2097850.5},
                        {CodeType::q6_k, 208, -1, -140524.5},
                        {CodeType::iq4_nl, 0, -1, 901.5},
                        {CodeType::iq4_xs, 0, -1, -950063.5},
                        {CodeType::nvfp4, -1, -1, 7918.548828125},
                        {CodeType::q1_0, 0, -1, -78.0},
                        {CodeType::q2_0, 0, -1, 143.0},
                        {CodeType::tq2_0, 64, -1, 2060.5}}) {
    const Quantisation q{.type = c.type, .layout = CodeLayout::ggml_blocks};
    const std::uint64_t k = BLOCK_CODES(source_of(q));
    CodeMatrix codes(quantised(q, 1, k, Layout::col_major));
    ASSERT_EQ(codes.codes.size(), BLOCK_SIZE(source_of(q))) << to_string(c.type);
    for (std::size_t i = 0; i < codes.codes.size(); ++i) {
      codes.codes[i] = static_cast<std::byte>(i * 37 + 11);
    }
    if (c.scale >= 0) store_element(codes.codes.data() + c.scale, DataType::f16, 0, 0.5);
    if (c.minimum >= 0) store_element(codes.codes.data() + c.minimum, DataType::f16, 0, 0.25);
    double sum = 0.0;
    for (std::uint64_t i = 0; i < k; ++i) {
      const auto element = static_cast<double>(codes.element(0, i, 0));
      sum += element * static_cast<double>((i % 7 + 1) * (i / 16 + 1));
    }
    EXPECT_EQ(sum, c.sum) << to_string(c.type);
  }
}

// Word by word, as AutoGPTQ and AutoAWQ store them.
TEST(CodeMatrix, WordsOfCheckpoints) {
  Quantisation q{.type = CodeType::int4, .group_k = 32, .zeros = true, .layout = CodeLayout::gptq};
  for (const CodeLayout layout : {CodeLayout::gptq, CodeLayout::gptq_v2, CodeLayout::awq}) {
    q.layout = layout;
    CodeMatrix codes(quantised(q, 16, 64));
    ASSERT_EQ(codes.codes.size(), 16u * 64 / 2);
    ASSERT_EQ(codes.zeros.size(), 2u * 16 / 2);
    EXPECT_EQ(codes.source().codes.alignment, 4u);
    codes.set_code(0, 43, 9, 0xc);
    codes.set_zero(0, 43, 9, 5.0);
    codes.set_scale(0, 43, 9, 0.5);
    EXPECT_EQ(codes.element(0, 43, 9), 3.5f);
    const bool awq = layout == CodeLayout::awq;
    // Row 43 is place 3 of word row 5; column 9 is place 1, of AWQ place 4.
    const std::size_t code = awq ? 43 * 8 + 4 + 2 : (5 * 16 + 9) * 4 + 1;
    EXPECT_EQ(codes.codes[code], awq ? std::byte{0x0c} : std::byte{0xc0});
    const std::size_t zero = 8 + 4 + (awq ? 2 : 0);
    const unsigned stored = layout == CodeLayout::gptq ? 4 : 5;
    EXPECT_EQ(codes.zeros[zero], static_cast<std::byte>(awq ? stored : stored << 4));
  }
}

// What quantise() chooses errs by half a step of the group's scale, at most.
TEST(CodeMatrix, Quantises) {
  const auto value = [](std::uint64_t matrix, std::uint64_t k, std::uint64_t n) {
    return std::sin(static_cast<double>(matrix * 1000 + k * 17 + n)) * static_cast<double>(n + 1);
  };
  struct Case {
    Quantisation q;
    double steps;  // of the scale
  };
  for (const auto& [q, steps] :
       {Case{{.type = CodeType::int8}, 0.51}, Case{{.type = CodeType::int4, .group_k = 32}, 0.51},
        Case{{.type = CodeType::int4, .group_k = 32, .zeros = true}, 1.02},
        Case{{.type = CodeType::e4m3, .scale_type = DataType::f32}, 16.0},
        Case{{.type = CodeType::mxfp4, .group_k = 32}, 1.0}, Case{{.type = CodeType::nvfp4}, 1.3},
        Case{{.type = CodeType::q4_1}, 0.52}, Case{{.type = CodeType::q5_0}, 0.51},
        Case{{.type = CodeType::q5_1}, 0.53}, Case{{.type = CodeType::q4_k}, 1.6},
        Case{{.type = CodeType::q5_k}, 3.0}, Case{{.type = CodeType::q6_k}, 0.8},
        Case{{.type = CodeType::iq4_nl}, 13.0}}) {
    const bool blocks = with_group(q).layout == CodeLayout::ggml_blocks;
    Problem problem =
        quantised(q, 7, blocks ? 256 : 70, blocks ? Layout::col_major : Layout::row_major);
    problem.batch = 2;
    CodeMatrix codes(problem);
    codes.quantise(value);
    for (std::uint64_t b = 0; b < 2; ++b) {
      for (std::uint64_t k = 0; k < problem.k; ++k) {
        for (std::uint64_t n = 0; n < 7; ++n) {
          ASSERT_NEAR(codes.element(b, k, n), value(b, k, n), steps * codes.scale(b, k, n))
              << to_string(q) << ": " << b << ", " << k << ", " << n;
        }
      }
    }
  }
  CodeMatrix nothing(quantised({.type = CodeType::int8}, 7, 70));
  nothing.quantise([](std::uint64_t, std::uint64_t, std::uint64_t) { return 0.0; });
  EXPECT_EQ(nothing.element(0, 3, 3), 0.0f);
}

// --- packed

TEST(PackedCodes, Bytes) {
  // Blocks of 64 with two rows of scales, or of a group, or of all of K.
  EXPECT_EQ(packed_bytes({.type = CodeType::int4, .group_k = 32}, 64, 128),
            2u * 64 * (2 * 2 + 64 / 2));
  EXPECT_EQ(packed_bytes({.type = CodeType::int4, .group_k = 128, .zeros = true}, 64, 256),
            2u * 64 * (4 + 128 / 2));
  EXPECT_EQ(packed_bytes({.type = CodeType::e4m3, .scale_type = DataType::f32}, 64, 384),
            64u * (4 + 384));
  EXPECT_EQ(packed_bytes({.type = CodeType::mxfp4, .group_k = 32}, 64, 64), 64u * (2 * 2 + 64 / 2));
  // Two levels: a word for 256, and 2 bytes for each group.
  EXPECT_EQ(packed_bytes({.type = CodeType::q4_k}, 64, 512), 2u * 64 * (4 + 8 * 2 + 256 / 2));
  EXPECT_EQ(packed_bytes({.type = CodeType::q6_k}, 64, 256), 64u * (4 + 16 * 2 + 256));
  EXPECT_EQ(packed_bytes({.type = CodeType::q4_1}, 64, 64), 64u * (2 * 4 + 64 / 2));
  EXPECT_EQ(packed_bytes({.type = CodeType::int4, .group_k = 192}, 64, 384), 2u * 64 * (2 + 96));
}

TEST(PackedCodes, AreResolved) {
  Problem problem = quantised({.type = CodeType::int4, .group_k = 128}, 100, 200);
  problem.b = {.packing = Packing::packed};
  problem.d.layout = Layout::col_major;
  const auto resolved = resolve(problem);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->b.bytes, packed_bytes(*problem.quantised_b, 128, 256));
  EXPECT_FALSE(resolved->transposed);
  EXPECT_TRUE(resolved->b_in_columns());
}

TEST(Quantisation, ScalesOfSumsWhereExactOrQuicker) {
  const auto of = [](std::string_view config, const Quantisation& q, DataType input) {
    return scales_of(parse_config(config).value(), q, input_of(input));
  };
  const std::string_view small =
      "khr_direct:tile=16x64x128,fragment=16x16x16,subgroups=1x2,subgroup_size=32,pack=ab";
  const std::string_view large =
      "khr_direct:tile=128x128x64,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4,pack="
      "ab";
  const Quantisation f16{.type = CodeType::int4, .group_k = 128};
  const Quantisation f32{.type = CodeType::int4, .group_k = 128, .scale_type = DataType::f32};
  const Quantisation column{.type = CodeType::int8};
  const Quantisation mxfp4{.type = CodeType::mxfp4};
  for (const DataType input : {DataType::f16, DataType::bf16}) {
    EXPECT_EQ(of(small, column, input), SCALES_OF_ALL);
    EXPECT_EQ(of(large, column, input), SCALES_OF_ALL);
    EXPECT_EQ(of(small, f32, input), SCALES_OF_GROUPS);
    EXPECT_EQ(of(large, f32, input), SCALES_OF_CODES);
    EXPECT_EQ(of(small, mxfp4, input), SCALES_OF_GROUPS);
    EXPECT_EQ(of("fma:tile=64x64x16,fragment=4x4", column, input), SCALES_OF_CODES);
  }
  EXPECT_EQ(of(small, f16, DataType::f16), SCALES_OF_CODES);
  EXPECT_EQ(of(small, f16, DataType::bf16), SCALES_OF_GROUPS);
  EXPECT_TRUE(rounds_elements(parse_config(large).value(), f32, input_of(DataType::f16)));
  EXPECT_FALSE(rounds_elements(parse_config(small).value(), f32, input_of(DataType::f16)));
}

// explain() says the depth of K over which a sum is exact.
TEST(Quantisation, SumsHaveADepth) {
  const auto depth = [](std::string_view config, std::uint32_t a_group_k = 0) {
    Problem problem = quantised({.type = CodeType::int4, .group_k = 128}, 256, 512);
    problem.m = 128;
    problem.a.type = problem.b.type = DataType::s8;
    problem.b.packing = Packing::packed;
    problem.a_group_k = a_group_k;
    problem.epilogue.row_scales = Scales::shared;
    const auto resolved = resolve(problem);
    EXPECT_TRUE(resolved);
    const Config c = parse_config(config).value();
    const DispatchPlan plan = test::lowered(problem, c);
    std::string text;
    for (const Part* part : parts()) {
      if (part->describe != nullptr) text += part->describe(c, *resolved, plan);
    }
    const std::size_t at = text.find("exact over ");
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + 11));
  };
  EXPECT_EQ(depth("skinny:tile=4x64x256,pack=b"), 16);
  EXPECT_EQ(depth("fma:tile=64x64x64,fragment=8x8,pack=b"), 64);
  // Sums that stay in registers are as deep as the group, or K.
  constexpr std::string_view few =
      "khr:tile=128x128x64,fragment=16x16x32,subgroups=2x2,"
      "subgroup_size=32,subtiles=4,pack=b";
  constexpr std::string_view many =
      "khr:tile=128x128x64,fragment=16x16x32,subgroups=4x2,"
      "subgroup_size=32,subtiles=2,pack=b";
  EXPECT_EQ(depth(few), 64);
  EXPECT_EQ(depth(many), 128);
  EXPECT_EQ(depth(many, 128), 128);
  EXPECT_EQ(depth(many, 64), 64);
  EXPECT_EQ(depth(many, 32), 32);
}

// bf16 rounds 1 + 2^-8 to 1: a kernel that scales sums must not have the other's result.
TEST(Codes, TheOracleMultipliesWhatTheKernelMultiplies) {
  Problem problem = quantised({.type = CodeType::int8, .scale_type = DataType::f32}, 1, 64);
  problem.a.type = problem.b.type = DataType::bf16;
  problem.d.type = DataType::f32;
  CodeMatrix codes(problem);
  codes.set_scale(0, 0, 0, 1.0 + 0x1p-8);
  for (std::uint64_t k = 0; k < 64; ++k) codes.set_code(0, k, 0, 1);
  const Config config =
      parse_config(
          "khr_direct:tile=32x32x64,fragment=16x16x16,subgroups=2x2,subgroup_size=32,pack="
          "ab")
          .value();
  ASSERT_FALSE(oracle::rounds_b(problem, config));
  const std::vector<std::uint16_t> a(64, 0x3f80);
  const std::vector<float> exact = codes.elements(problem);
  Problem multiplied = problem;
  multiplied.quantised_b.reset();
  multiplied.b.type = DataType::f32;
  for (const auto& [d, is_right] : {std::pair{64.25f, true}, {64.0f, false}}) {
    const auto report = oracle::verify(
        multiplied, {{OperandId::a, a.data()}, {OperandId::b, exact.data()}, {OperandId::d, &d}});
    EXPECT_EQ(report.passed(), is_right) << d << ": " << report.first_failure;
  }
}

// --- texts and refusals

TEST(Quantisation, TextsComeBack) {
  for (const char* text :
       {"int8", "int8:group=32", "int4:group=128:zeros", "int4:scales=bf16", "e4m3:columns=all",
        "e4m3:group=128:columns=128:scales=f32", "e5m2", "mxfp4", "mxfp4:ggml", "nvfp4",
        "nvfp4:ggml", "int4:group=16:float_zeros", "int4:group=192:zeros:gptq", "int4:gptq_v2",
        "int4:zeros:awq", "q4_k", "q6_k", "tq2_0"}) {
    const auto parsed = parse_quantisation(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_string(*parsed), text);
  }
  EXPECT_EQ(parse_quantisation("int4:ggml:group=64")->group_k, 64u);  // refused with a problem
  EXPECT_EQ(as_packed({.type = CodeType::mxfp4}).group_k, 32u);
  EXPECT_EQ(as_packed({.layout = CodeLayout::ggml_blocks}).group_k, 32u);
  EXPECT_EQ(parse_quantisation("int8:group=all")->group_k, 0u);
  EXPECT_EQ(to_string(*parse_quantisation("q4_0")), "int4:ggml");
  EXPECT_EQ(to_string(*parse_quantisation("q8_0")), "int8:ggml");
}

TEST(Quantisation, WhatIsWrongWithATextIsNamed) {
  for (const auto& [text, part] : {std::pair{"", "''"},
                                   {"int5", "'int5'"},
                                   {"int4:group", "'group'"},
                                   {"int4:group=x", "'group=x'"},
                                   {"int4:scales=int8", "'scales=int8'"},
                                   {"int4:zero", "'zero'"},
                                   {"mxfp4:scales=f32", "'scales=f32'"},
                                   {"int4:", "a part is empty"}}) {
    const auto parsed = parse_quantisation(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find(part), std::string::npos) << parsed.error().message;
  }
}

TEST(Quantisation, RefusalsNameTheField) {
  const auto refused = [](const Quantisation& q, DataType type, const char* part) {
    Problem problem = quantised(q);
    problem.a.type = problem.b.type = type;
    problem.b.packing = Packing::packed;
    const auto resolved = resolve(problem);
    return !resolved && resolved.error().message.find(part) != std::string::npos;
  };
  const DataType f16 = DataType::f16;
  EXPECT_TRUE(refused({.group_k = 48}, f16, "quantised_b.group_k is 48"));
  EXPECT_TRUE(refused({.group_n = 2}, f16, "quantised_b.group_n is 2"));
  EXPECT_TRUE(refused({.type = CodeType::int8, .zeros = true}, f16, "quantised_b.zeros is true"));
  EXPECT_TRUE(refused({.type = CodeType::mxfp4, .group_k = 64}, f16, "quantised_b.group_k is 64"));
  EXPECT_TRUE(refused({.type = static_cast<CodeType>(19)}, f16, "quantised_b.type is 19"));
  EXPECT_TRUE(
      refused({.scale_type = static_cast<DataType>(9)}, f16, "quantised_b.scale_type is 9"));
  EXPECT_TRUE(refused({.layout = static_cast<CodeLayout>(9)}, f16, "quantised_b.layout is 9"));
  EXPECT_TRUE(refused({}, DataType::f32, "b.type is f32"));
  EXPECT_TRUE(refused({.type = CodeType::int4, .float_zeros = true}, f16, "float_zeros is true"));
  EXPECT_TRUE(refused({.type = CodeType::q6_k, .group_k = 32}, f16, "quantised_b.group_k is 32"));
  EXPECT_TRUE(refused({.type = CodeType::q4_k, .group_n = 0}, f16, "quantised_b.group_n is 0"));
  const auto plain = resolve(quantised({}));
  ASSERT_FALSE(plain);
  EXPECT_NE(plain.error().message.find("b.packing is plain"), std::string::npos);
  for (Problem empty : {quantised({}, 10, 0), quantised({}, 0, 64)}) {
    EXPECT_TRUE(resolve(empty)) << "an empty B has nothing to pack";
  }
  Problem mixed = quantised({});
  mixed.b.packing = Packing::packed;
  mixed.a.type = DataType::f32;
  const auto refused_types = resolve(mixed);
  ASSERT_FALSE(refused_types);
  EXPECT_NE(refused_types.error().message.find("a.type is f32 and quantised_b.type is int8"),
            std::string::npos)
      << refused_types.error().message;

  const auto bad_source = [](Problem problem, const char* part) {
    const auto source = code_source(problem, 1);
    return !source && source.error().message.find(part) != std::string::npos;
  };
  Problem odd = quantised({.type = CodeType::int4}, 10, 64, Layout::col_major);
  odd.b.ld = 65;
  EXPECT_TRUE(bad_source(odd, "b.ld is 65"));
  odd.b.ld = 60;
  EXPECT_TRUE(bad_source(odd, "b.ld is 60"));
  odd.b.ld = 64;
  odd.b.batch_stride = 3;
  EXPECT_TRUE(bad_source(odd, "b.batch_stride is 3"));
  Problem far = quantised({.type = CodeType::int8});
  far.b.batch_stride = std::uint64_t{1} << 63;
  const auto source = code_source(far, 3);
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message.find("does not fit 64 bits"), std::string::npos);
  const Quantisation ggml{.group_k = 32, .layout = CodeLayout::ggml_blocks};
  const auto bad_ggml = [&](auto change, const char* part) {
    Problem problem = quantised(ggml, 10, 64, Layout::col_major);
    change(problem, *problem.quantised_b);
    return bad_source(problem, part);
  };
  using P = Problem&;
  using Q = Quantisation&;
  const auto bad_words = [&](auto change, const char* part) {
    Problem problem =
        quantised({.type = CodeType::int4, .zeros = true, .layout = CodeLayout::gptq}, 16, 64);
    change(problem, *problem.quantised_b);
    return bad_source(problem, part);
  };
  EXPECT_TRUE(bad_words([](P p, Q) { p.n = 12; }, "columns of B is 12"));
  EXPECT_TRUE(bad_words([](P p, Q) { p.k = 60; }, "k is 60"));
  EXPECT_TRUE(bad_words([](P p, Q) { p.b.ld = 1u << 30; }, "b.ld is 1073741824"));
  EXPECT_TRUE(bad_words([](P p, Q) { p.b.layout = Layout::col_major; }, "b.layout is col_major"));
  EXPECT_TRUE(bad_words([](P, Q q) { q.float_zeros = true; }, "float_zeros is true"));
  EXPECT_TRUE(bad_words([](P, Q q) { q.type = CodeType::int8; }, "quantised_b.type is int8"));
  EXPECT_TRUE(bad_ggml([](P p, Q) { p.b.layout = Layout::row_major; }, "b.layout is row_major"));
  EXPECT_TRUE(bad_ggml([](P p, Q) { p.k = 40; }, "k is 40"));
  EXPECT_TRUE(bad_ggml([](P, Q q) { q.group_k = 64; }, "quantised_b.group_k is 64"));
  EXPECT_TRUE(bad_ggml([](P, Q q) { q.group_n = 0; }, "quantised_b.group_n is 0"));
  EXPECT_TRUE(bad_ggml([](P, Q q) { q.type = CodeType::e5m2; }, "quantised_b.type is e5m2"));
  EXPECT_TRUE(
      bad_ggml([](P, Q q) { q.scale_type = DataType::f32; }, "quantised_b.scale_type is f32"));
}

}  // namespace
}  // namespace vkgemm
