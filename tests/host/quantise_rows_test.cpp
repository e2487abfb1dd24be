// Rows that become codes: what is refused, how they are dispatched, and what the oracle says of the
// definition.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "kernels/quantise_rows.hpp"
#include "oracle/row_quantisation.hpp"
#include "problem/convert.hpp"
#include "problem/row_quantisation.hpp"
#include "test_devices.hpp"

namespace vkgemm::test {
namespace {

RowQuantisation good() { return {.rows = 5, .columns = 40, .batch = 2}; }

DeviceCaps with_int8(DeviceCaps caps = h200()) {
  caps.int8_arithmetic = true;
  return caps;
}

TEST(QuantiseRowsResolve, SizesAreThoseOfSpans) {
  RowQuantisation q = good();
  const auto packed = resolve(q);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->source.bytes, 2u * 5 * 40 * 2);
  EXPECT_EQ(packed->codes.bytes, 2u * 5 * 40);
  EXPECT_EQ(packed->scales_bytes, 2u * 5 * 4);
  q.source = {.type = DataType::f32, .ld = 48, .batch_stride = 1000};
  q.codes.ld = 41;
  const auto padded = resolve(q);
  ASSERT_TRUE(padded);
  EXPECT_EQ(padded->source.bytes, (1000u + 4 * 48 + 40) * 4);
  EXPECT_EQ(padded->codes.bytes, 5u * 41 + 4 * 41 + 40);
  for (std::uint64_t RowQuantisation::*size :
       {&RowQuantisation::rows, &RowQuantisation::batch, &RowQuantisation::columns}) {
    RowQuantisation none = good();
    none.*size = 0;
    const auto nothing = resolve(none);
    ASSERT_TRUE(nothing);
    EXPECT_EQ(nothing->source.bytes, 0u);
    EXPECT_EQ(nothing->codes.bytes, 0u);
    EXPECT_EQ(nothing->scales_bytes, size == &RowQuantisation::columns ? 40u : 0u);
  }
}

TEST(QuantiseRowsResolve, ErrorsNameTheField) {
  struct Bad {
    std::function<void(RowQuantisation&)> change;
    Status status;
    std::string_view message;
  };
  constexpr Status invalid = Status::invalid_argument, unsupported = Status::unsupported;
  const Bad cases[] = {
      {[](auto& q) { q.rows = std::uint64_t{1} << 31; }, invalid, "rows is 2147483648: at most"},
      {[](auto& q) { q.columns = UINT64_MAX; }, invalid,
       "columns is 18446744073709551615: at most"},
      {[](auto& q) { q.batch = std::uint64_t{1} << 31; }, invalid, "batch is 2147483648: at most"},
      {[](auto& q) { q.source.type = static_cast<DataType>(9); }, invalid,
       "source.type is 9: no such enumerator"},
      {[](auto& q) { q.codes.layout = static_cast<Layout>(7); }, invalid,
       "codes.layout is 7: no such enumerator"},
      {[](auto& q) { q.codes.packing = static_cast<Packing>(5); }, invalid,
       "codes.packing is 5: no such enumerator"},
      {[](auto& q) { q.source.type = DataType::s8; }, unsupported,
       "source.type is s8: it must be f16, bf16 or f32"},
      {[](auto& q) { q.codes.type = DataType::f16; }, unsupported,
       "codes.type is f16: it must be s8"},
      {[](auto& q) { q.source.layout = Layout::col_major; }, unsupported,
       "source.layout is col_major: it must be row_major"},
      {[](auto& q) { q.codes.layout = Layout::col_major; }, unsupported,
       "codes.layout is col_major: it must be row_major"},
      {[](auto& q) { q.codes.packing = Packing::packed; }, unsupported,
       "codes.packing is packed: it must be plain"},
      {[](auto& q) { q.source.ld = 39; }, invalid,
       "source.ld is 39: a row of columns = 40 needs at least 40"},
      {[](auto& q) { q.codes.ld = 0; }, invalid, "codes.ld is 0"},
      {[](auto& q) { q.source.alignment = 1; }, invalid,
       "source.alignment is 1: a power of two is needed, at least 2"},
      {[](auto& q) { q.codes.alignment = 12; }, invalid, "codes.alignment is 12"},
      {[](auto& q) { q.codes.batch_stride = 0; }, invalid,
       "codes.batch_stride is 0: the 2 matrices of the batch would overwrite each other"},
      {[](auto& q) { q.codes.batch_stride = 199; }, invalid, "codes.batch_stride is 199"},
      {[](auto& q) { q.source.batch_stride = UINT64_MAX; }, invalid, "source.batch_stride is"},
  };
  for (const Bad& bad : cases) {
    RowQuantisation q = good();
    bad.change(q);
    const auto result = resolve(q);
    ASSERT_FALSE(result) << bad.message;
    EXPECT_EQ(result.error().status, bad.status) << bad.message;
    EXPECT_TRUE(contains(result.error().message, bad.message)) << result.error().message;
  }
}

Step step_of(const RowQuantisation& q, const DeviceCaps& caps = with_int8()) {
  const ResolvedRowQuantisation resolved = resolve(q).value();
  EXPECT_EQ(why_not_quantised(resolved, caps), std::nullopt);
  return quantise_rows_step(resolved, caps.limits);
}

TEST(QuantiseRowsStep, ShortRowsShareAWorkgroup) {
  struct Case {
    std::uint64_t columns;
    std::uint32_t rows;  // of a workgroup
  };
  for (const Case c : {Case{0, 256},
                       {1, 256},
                       {8, 256},
                       {9, 128},
                       {64, 32},
                       {65, 16},
                       {1024, 2},
                       {1025, 1},
                       {100000, 1}}) {
    const Step step = step_of({.rows = 1000, .columns = c.columns});
    EXPECT_EQ(step.key.constants[SPEC_TILE_M], c.rows) << c.columns;
    ASSERT_EQ(step.dispatches.size(), 1u);
    EXPECT_EQ(step.dispatches[0].tiles, (1000 + c.rows - 1) / c.rows);
  }
  DeviceCaps few = with_int8();
  few.limits.max_invocations = 128;
  EXPECT_EQ(step_of({.rows = 1, .columns = 4096}, few).key.constants[SPEC_LOCAL_SIZE], 128u);
}

TEST(QuantiseRowsStep, VectorsNeedAlignment) {
  const auto vectors = [](const std::function<void(RowQuantisation&)>& change) {
    RowQuantisation q = good();
    change(q);
    return step_of(q).key.constants[SPEC_A_VECTOR] != 0;
  };
  EXPECT_TRUE(vectors([](auto&) {}));
  EXPECT_TRUE(vectors([](auto& q) { q.codes.alignment = 8; }));
  EXPECT_TRUE(vectors([](auto& q) {
    q.columns = 39;
    q.source.ld = q.codes.ld = 40;
  }));
  EXPECT_TRUE(vectors([](auto& q) {
    q.source.type = DataType::f32;
    q.source.ld = 44;
  }));
  EXPECT_FALSE(vectors([](auto& q) { q.source.alignment = 8; }));
  EXPECT_FALSE(vectors([](auto& q) { q.codes.alignment = 4; }));
  EXPECT_FALSE(vectors([](auto& q) { q.source.ld = 44; }));
  EXPECT_FALSE(vectors([](auto& q) { q.codes.ld = 44; }));
  EXPECT_FALSE(vectors([](auto& q) { q.codes.batch_stride = 204; }));
  EXPECT_FALSE(vectors([](auto& q) { q.source.batch_stride = 204; }));
  EXPECT_FALSE(vectors([](auto& q) {
    q.columns = 7;
    q.source.ld = q.codes.ld = 8;
  }));
}

TEST(QuantiseRowsStep, GridsAreCut) {
  const Step step =
      step_of({.rows = 70000, .columns = 2048, .batch = 65536}, with_int8(lavapipe()));
  ASSERT_EQ(step.dispatches.size(), 4u);
  EXPECT_EQ(step.dispatches[1].first_tile, 65535u);
  EXPECT_EQ(step.dispatches[1].tiles, 70000u - 65535u);
  EXPECT_EQ(step.dispatches[2].first_batch, 65535u);
  EXPECT_EQ(step.dispatches[2].batches, 1u);
  EXPECT_TRUE(step_of({.columns = 8}).dispatches.empty());
}

TEST(QuantiseRowsStep, DevicesThatCanNot) {
  const auto why = [](const RowQuantisation& q, const DeviceCaps& caps) {
    return why_not_quantised(resolve(q).value(), caps).value_or("");
  };
  DeviceCaps without = h200();
  without.int8_arithmetic = false;
  EXPECT_EQ(
      why(good(), without),
      "codes.type is s8: it needs shaderInt8, storageBuffer8BitAccess and shaderIntegerDotProduct");
  RowQuantisation many = good();
  many.rows = many.batch = (std::uint64_t{1} << 31) - 1;
  many.columns = 1;
  EXPECT_TRUE(contains(why(many, with_int8(lavapipe())),
                       "rows is 2147483647 and batch is 2147483647: at most 65536 dispatches"));
}

TEST(QuantiseRowsOracle, IsTheDefinition) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> source = {127.0f,     -2.5f, 3.5f,      0.49f,  //
                                     0.0f,       -0.0f, 0.0f,      0.0f,   //
                                     1.0f,       nan,   inf,       2.0f,   //
                                     1.0f,       -inf,  3.0f,      2.0f,   //
                                     0x1p-120f,  0.0f,  0.0f,      0.0f,   //
                                     -0x1p-119f, 0.0f,  0x1p-120f, 0.0f};
  std::vector<std::int8_t> codes(source.size(), 99);
  std::vector<float> scales(6, 99.0f);
  const RowQuantisation q{.rows = 6, .columns = 4, .source = {.type = DataType::f32}};
  oracle::quantise_rows(q, source.data(), codes.data(), scales.data());
  const std::vector<std::int8_t> expected = {127, -2, 4, 0, 0, 0, 0, 0, 0,    0, 0,  0,
                                             0,   0,  0, 0, 0, 0, 0, 0, -127, 0, 64, 0};
  EXPECT_EQ(codes, expected);
  EXPECT_EQ(scales[0], 1.0f);
  EXPECT_EQ(scales[1], 0.0f);
  EXPECT_TRUE(std::isnan(scales[2]));
  EXPECT_EQ(scales[3], inf);
  EXPECT_EQ(scales[4], 0.0f);
  EXPECT_EQ(scales[5], 0x1p-119f / 127.0f);
}

}  // namespace
}  // namespace vkgemm::test
