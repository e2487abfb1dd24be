// The self-test's products and what verdicts do to configurations, without a device.
#include "self_test/self_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "kernels/legality.hpp"
#include "kernels/loops/khr_fragments.hpp"
#include "kernels/lowering.hpp"
#include "kernels/main_loop.hpp"
#include "problem/convert.hpp"
#include "test_devices.hpp"
#include "tuning/device_tables.hpp"

namespace vkgemm {
namespace {

using test::contains;
using test::gemm;
using test::khr_config;
using test::resolved;

DeviceCaps h200() {
  DeviceCaps caps = test::h200();
  caps.driver_name = "NVIDIA";
  caps.driver_info = "580.159.04";
  return caps;
}

KernelKind khr_kind() {
  return make_kind(MainLoop::khr, DataType::f16,
                   FragmentKind{.m = 16, .n = 16, .k = 16, .subgroup_size = 32});
}

TEST(KernelKinds, AreWhatTheDeviceLists) {
  const auto names = [](const DeviceCaps& caps) {
    std::set<std::string> texts;
    for (const KernelKind& kind : kernel_kinds(caps)) texts.insert(to_string(kind));
    return texts;
  };
  const auto on_h200 = names(h200());
  for (const char* name :
       {"main loop fma, f32", "main loop skinny, bf16",
        "main loop khr, fragment 16x8x8 f16, subgroups of 32",
        "main loop khr, fragment 16x16x16 bf16, subgroups of 32",
        "main loop khr_direct, fragment 16x16x16 f16, subgroups of 32",
        "main loop khr, fragment 16x16x32 s8, subgroups of 32",
        "main loop khr_direct, fragment 16x16x32 s8, subgroups of 32, A in rows",
        "main loop khr_direct, fragment 16x16x16 bf16, subgroups of 32, A in rows",
        "main loop khr_direct, fragment 16x16x16 f16, subgroups of 32, codes in runs of 4",
        "main loop nv, granularity 32x16x16 f16, 128 invocations",
        "main loop nv, granularity 32x32x16 bf16, 256 invocations"}) {
    EXPECT_TRUE(on_h200.contains(name)) << name;
  }
  EXPECT_EQ(on_h200.size(), 7u + 5u + 6u + 4u + 4u);
  EXPECT_EQ(on_h200.size(), kernel_kinds(h200()).size()) << "a kind is there twice";
  // Either size may be required of this one.
  const auto on_navi = names(test::navi31());
  EXPECT_TRUE(on_navi.contains("main loop khr, fragment 16x16x16 f16, subgroups of 32"));
  EXPECT_TRUE(on_navi.contains("main loop khr, fragment 16x16x16 f16, subgroups of 64"));
  // Flexible dimensions: the smallest, which is listed, and what tables propose.
  const auto on_lavapipe = names(test::lavapipe());
  EXPECT_TRUE(on_lavapipe.contains("main loop khr, fragment 8x8x8 f16, subgroups of 8"));
  EXPECT_TRUE(on_lavapipe.contains("main loop khr, fragment 16x16x16 f16, subgroups of 8"));
  EXPECT_TRUE(on_lavapipe.contains("main loop khr, fragment 16x16x16 s8, subgroups of 8"));
  EXPECT_TRUE(on_lavapipe.contains("main loop khr_direct, fragment 8x8x16 s8, subgroups of 8"));
  // A path that is off has none.
  DeviceCaps off = h200();
  off.khr = off.nv = {.available = false, .reason = "off"};
  EXPECT_EQ(names(off).size(), 7u);
}

// For each kind there is a configuration that is of this kind, in every layout, whatever is known.
TEST(KernelKinds, HaveConfigurations) {
  for (DeviceCaps caps : test::all_devices()) {
    for (const KernelKind& kind : kernel_kinds(caps)) {
      caps.verdicts.push_back({.kind = kind, .outcome = Outcome::wrong_result});
    }
    caps.denials = {{.path = Path::khr}, {.path = Path::fma}, {.path = Path::nv}};
    for (const KernelKind& kind : kernel_kinds(caps)) {
      const auto trials = self_test_trials(kind, caps);
      ASSERT_TRUE(trials) << caps.name << ", " << to_string(kind) << ": " << trials.error().message;
      const KindOperands operands = operands_of(kind);
      std::set<std::string> configs;
      std::set<Layout> a, b;
      bool cut_off = false;
      std::uint32_t narrow = 0;
      for (const auto& [config, p] : *trials) {
        if (p.row_reduction) continue;
        configs.insert(to_string(config));
        EXPECT_TRUE(covers(kind, config, {kind.input, operands == KindOperands::codes}))
            << to_string(config);
        a.insert(p.a.layout);
        b.insert(p.b.layout);
        EXPECT_NE(p.m, p.n);
        EXPECT_NE(p.n, p.k);
        EXPECT_NE(p.m, p.k);
        // Every place of a fragment, and several of them along K.
        EXPECT_GT(p.m, config.tile_m);
        EXPECT_GT(p.n, config.tile_n);
        if (p.d.type == DataType::f32)
          EXPECT_GE(p.k, 3 * config.tile_k);
        else
          EXPECT_EQ(p.k, 1u);
        ResolvedProblem problem = resolved(p);
        EXPECT_FALSE(DeviceTables(caps).set_orders(problem, trusting(caps)));
        const DispatchPlan plan = lower(config, problem, trusting(caps));
        narrow += plan.product.key.constants[SPEC_NARROW_SLICES];
        cut_off = cut_off || p.m % config.tile_m + p.n % config.tile_n != 0;
        EXPECT_EQ(why_illegal(config, problem, trusting(caps)), std::nullopt);
        EXPECT_FALSE(is_legal(config, problem, caps));
      }
      // Agreement of pipelines takes more than one.
      EXPECT_EQ(configs.size() > 1, descriptor(kind.loop).needs_verdict);
      EXPECT_TRUE(cut_off);
      const bool narrows = kind.loop == MainLoop::khr_direct && operands == KindOperands::any &&
                           kind.input != DataType::s8 && caps.name == test::h200().name;
      EXPECT_EQ(narrow > 0, narrows) << to_string(kind);
      EXPECT_EQ(a.size(), operands == KindOperands::a_in_rows ? 1u : 2u);
      EXPECT_EQ(b.size(), operands == KindOperands::codes ? 1u : 2u);
    }
  }
}

// Kernels that reduce rows are among the trials of each kind, where they are legal.
TEST(KernelKinds, TryRowReductions) {
  for (const DeviceCaps& caps : test::all_devices()) {
    std::set<RowStrategy> strategies;
    for (const KernelKind& kind : kernel_kinds(caps)) {
      const auto trials = self_test_trials(kind, caps);
      ASSERT_TRUE(trials);
      for (const Trial& trial : *trials) {
        if (!trial.problem.row_reduction) continue;
        strategies.insert(trial.config.rows);
        const ResolvedProblem problem = resolved(trial.problem);
        EXPECT_EQ(why_illegal(trial.config, problem, trusting(caps)), std::nullopt);
        // f32 holds every partial sum.
        const ExactProduct product(trial.problem);
        for (std::uint64_t row = 0; row < trial.problem.m; ++row) {
          double size = 0.0;
          for (std::uint64_t col = 0; col < trial.problem.n; ++col) {
            size += std::fabs(load_element(product.expected().data(), DataType::f32,
                                           row * *trial.problem.d.ld + col));
          }
          EXPECT_LT(size, 0x1p24) << to_string(trial.config);
        }
      }
    }
    EXPECT_TRUE(strategies.contains(RowStrategy::resident)) << caps.name;
  }
}

// --- the product

Problem small_product(DataType input, Layout a, Layout b) {
  return {.m = 13,
          .n = 19,
          .k = 37,
          .a = {.type = input, .layout = a, .ld = 40},
          .b = {.type = input, .layout = b, .ld = 43},
          .d = {.type = DataType::f32, .ld = 21}};
}

std::uint64_t index_of(const Matrix& matrix, std::uint64_t row, std::uint64_t col) {
  return matrix.layout == Layout::row_major ? row * *matrix.ld + col : col * *matrix.ld + row;
}

double load(std::span<const std::byte> bytes, const Matrix& matrix, std::uint64_t row,
            std::uint64_t col) {
  return load_element(bytes.data(), matrix.type, index_of(matrix, row, col));
}

// A "device": multiplies what stands in memory, element (i, k) of A taken from from_a(i, k), and
// rounds sums as it is told.
template <class FromA, class Sum>
std::vector<std::byte> compute(const Problem& p, const ExactProduct& product, FromA from_a,
                               Sum rounded) {
  std::vector<std::byte> d(product.d_bytes(), ExactProduct::poison);
  for (std::uint64_t i = 0; i < p.m; ++i) {
    for (std::uint64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::uint64_t k = 0; k < p.k; ++k) {
        const auto [row, col] = from_a(i, k);
        const double a = load(product.a(), p.a, row, col);
        sum = rounded(sum + static_cast<float>(a * load(product.b(), p.b, k, j)));
      }
      store_element(d.data(), p.d.type, index_of(p.d, i, j), sum);
    }
  }
  return d;
}

constexpr auto in_place = [](std::uint64_t i, std::uint64_t k) { return std::pair(i, k); };
constexpr auto exactly = [](float sum) { return sum; };

TEST(ExactProduct, IsTheProduct) {
  for (const DataType input : {DataType::f16, DataType::bf16, DataType::f32}) {
    for (const Layout a : {Layout::row_major, Layout::col_major}) {
      for (const Layout b : {Layout::row_major, Layout::col_major}) {
        const Problem p = small_product(input, a, b);
        const ExactProduct product(p);
        const auto d = compute(p, product, in_place, exactly);
        EXPECT_TRUE(std::ranges::equal(d, product.expected()));
        EXPECT_EQ(product.why_wrong(d), std::nullopt);
      }
    }
    for (const DataType output : {DataType::f16, DataType::bf16}) {
      Problem p = small_product(input, Layout::row_major, Layout::row_major);
      p.k = 1;
      p.d.type = output;
      const ExactProduct product(p);
      auto d = compute(p, product, in_place, exactly);
      EXPECT_EQ(product.why_wrong(d), std::nullopt);
      std::swap(d[2], d[4]);
      std::swap(d[3], d[5]);
      EXPECT_NE(product.why_wrong(d), std::nullopt);
    }
  }
}

TEST(ExactProduct, OperandsStandAmongNaN) {
  const Problem p = small_product(DataType::f16, Layout::row_major, Layout::col_major);
  const ExactProduct product(p);
  EXPECT_TRUE(std::isnan(load(product.a(), p.a, 3, p.k)));
  EXPECT_TRUE(std::isnan(load(product.b(), p.b, p.k, 3)));
  for (std::uint64_t row = 0; row < p.m; ++row) {
    for (std::uint64_t col = 0; col < p.k; ++col) EXPECT_NE(load(product.a(), p.a, row, col), 0.0);
  }
}

// Each byte of D counts, those where no element stands included.
TEST(ExactProduct, SeesEveryByte) {
  const Problem p = small_product(DataType::f16, Layout::row_major, Layout::row_major);
  const ExactProduct product(p);
  std::vector<std::byte> d(product.expected().begin(), product.expected().end());
  for (std::byte& byte : d) {
    byte ^= std::byte{1};
    EXPECT_NE(product.why_wrong(d), std::nullopt);
    byte ^= std::byte{1};
  }
  d.pop_back();
  EXPECT_NE(product.why_wrong(d), std::nullopt);
}

// Drivers' ways to be wrong.
TEST(ExactProduct, SeesWhatDriversDo) {
  const Problem p = small_product(DataType::f16, Layout::row_major, Layout::row_major);
  const ExactProduct product(p);
  const auto is_seen = [&](const char* what, auto from_a, auto rounded) {
    EXPECT_NE(product.why_wrong(compute(p, product, from_a, rounded)), std::nullopt) << what;
  };
  const auto swapped = [](std::uint64_t x, std::uint64_t y) {
    return [x, y](std::uint64_t value) { return value == x ? y : value == y ? x : value; };
  };
  for (std::uint64_t x = 0; x + 1 < p.m; ++x) {
    const auto swap = swapped(x, x + 1);
    is_seen(
        "rows of A", [&](auto i, auto k) { return std::pair(swap(i), k); }, exactly);
  }
  for (std::uint64_t x = 0; x + 1 < p.k; ++x) {
    const auto swap = swapped(x, x + 1);
    is_seen(
        "columns of A", [&](auto i, auto k) { return std::pair(i, swap(k)); }, exactly);
  }
  is_seen(
      "blocks of 4 transposed",
      [&](std::uint64_t i, std::uint64_t k) {
        const bool whole = i / 4 * 4 + 4 <= p.m && k / 4 * 4 + 4 <= p.k;
        return whole ? std::pair(i / 4 * 4 + k % 4, k / 4 * 4 + i % 4) : std::pair(i, k);
      },
      exactly);
  // A lane that is ignored: one element of A.
  ExactProduct again = product;
  for (std::uint64_t i = 0; i < p.m; ++i) {
    for (std::uint64_t k = 0; k < p.k; ++k) {
      std::vector<std::byte> d(product.expected().begin(), product.expected().end());
      for (std::uint64_t j = 0; j < p.n; ++j) {
        float sum = 0;
        std::memcpy(&sum, &d[index_of(p.d, i, j) * sizeof(float)], sizeof(sum));
        sum -= static_cast<float>(load(product.a(), p.a, i, k) * load(product.b(), p.b, k, j));
        std::memcpy(&d[index_of(p.d, i, j) * sizeof(float)], &sum, sizeof(sum));
      }
      EXPECT_NE(again.why_wrong(d), std::nullopt);
    }
  }
  // Accumulating in f16 where f32 was asked for.
  is_seen("f16 sums", in_place, [](float sum) { return from_f16(to_f16(sum)); });
}

TEST(ExactProduct, SeesTheSumsOfRows) {
  Problem p = small_product(DataType::f16, Layout::row_major, Layout::row_major);
  p.row_reduction = RowReduction{.op = RowOp::sum};
  const ExactProduct product(p);
  std::vector<std::byte> d(product.expected().begin(), product.expected().end());
  EXPECT_EQ(product.why_wrong(d), std::nullopt);
  ASSERT_EQ(product.d_bytes(), product.row_values_offset() + p.m * sizeof(float) + 64);
  float sum = 0.0f, element = 0.0f;
  for (std::uint64_t col = 0; col < p.n; ++col) {
    std::memcpy(&element, &d[index_of(p.d, 4, col) * sizeof(float)], sizeof(float));
    sum += element;
  }
  std::byte* const stored = &d[product.row_values_offset() + 4 * sizeof(float)];
  EXPECT_EQ(std::memcmp(stored, &sum, sizeof(float)), 0);
  std::memcpy(stored, &element, sizeof(float));
  const auto wrong = product.why_wrong(d);
  ASSERT_TRUE(wrong);
  EXPECT_TRUE(wrong->starts_with("expected the sum ")) << *wrong;
  EXPECT_NE(wrong->find(" of row 4 "), std::string::npos) << *wrong;
}

TEST(ExactProduct, SaysWhereAndWhat) {
  const Problem p = small_product(DataType::f16, Layout::row_major, Layout::col_major);
  const ExactProduct product(p);
  std::vector<std::byte> d(product.expected().begin(), product.expected().end());
  const std::uint64_t at = index_of(p.d, 3, 4) * sizeof(float);
  float value = 0;
  std::memcpy(&value, &d[at], sizeof(value));
  const float wrong = value + 1;
  std::memcpy(&d[at], &wrong, sizeof(wrong));
  const auto reason = product.why_wrong(d);
  ASSERT_TRUE(reason);
  const auto number = [](float x) { return std::to_string(static_cast<int>(x)); };
  EXPECT_EQ(*reason,
            "expected " + number(value) + ", got " + number(wrong) +
                " at (3, 4), 1 of 247 elements are wrong (m 13, n 19, k 37, a row_major, b "
                "col_major)");
}

// --- verdicts

TEST(Verdicts, TakeTheirConfigurationsAway) {
  const ResolvedProblem f16 = resolved(gemm(512, 512, 512));
  const ResolvedProblem bf16 = resolved(gemm(512, 512, 512, DataType::bf16));
  DeviceCaps caps = h200();
  caps.verdicts = {{.kind = khr_kind(),
                    .outcome = Outcome::wrong_result,
                    .detail = "expected 12, got 13 at (3, 4)"}};
  EXPECT_FALSE(is_legal(khr_config, f16, caps));
  EXPECT_EQ(why_illegal(khr_config, f16, caps),
            "main loop khr, fragment 16x16x16 f16, subgroups of 32: failed the self-test on driver "
            "NVIDIA "
            "580.159.04: expected 12, got 13 at (3, 4)");
  // Others stay: another type, fragment, path.
  EXPECT_TRUE(is_legal(khr_config, bf16, caps));
  Config other = khr_config;
  test::set(other, "fragment_n", 8);
  EXPECT_TRUE(is_legal(other, f16, caps));
  EXPECT_TRUE(is_legal(test::nv_config, f16, caps));
  EXPECT_TRUE(is_legal(test::fma_config, f16, caps));
  for (const Outcome outcome :
       {Outcome::driver_error, Outcome::device_lost, Outcome::timed_out, Outcome::crashed}) {
    caps.verdicts[0].outcome = outcome;
    const auto reason = why_illegal(khr_config, f16, caps);
    ASSERT_TRUE(reason);
    EXPECT_TRUE(contains(*reason, to_string(outcome))) << *reason;
  }
  for (const Outcome outcome : {Outcome::passed, Outcome::untested}) {
    caps.verdicts[0].outcome = outcome;
    EXPECT_TRUE(is_legal(khr_config, f16, caps));
  }
}

TEST(Verdicts, HoldForASubgroupSize) {
  const ResolvedProblem f16 = resolved(gemm(512, 512, 512));
  DeviceCaps caps = test::navi31();
  caps.verdicts = {{.kind = khr_kind(), .outcome = Outcome::wrong_result}};
  *find_number(caps.verdicts[0].kind, "subgroup_size") = 64;
  const Config narrow =
      parse_config("khr:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32").value();
  EXPECT_TRUE(is_legal(narrow, f16, caps));
  Config wide = narrow;
  test::set(wide, "subgroup_size", 64);
  EXPECT_FALSE(is_legal(wide, f16, caps));
  caps.verdicts.clear();
  EXPECT_TRUE(is_legal(wide, f16, caps));
}

TEST(Verdicts, OfOtherPaths) {
  const ResolvedProblem f16 = resolved(gemm(512, 512, 512));
  DeviceCaps caps = h200();
  caps.verdicts = {
      {.kind = {.loop = MainLoop::nv, .input = DataType::f16, .numbers = {32, 32, 16, 256}},
       .outcome = Outcome::wrong_result}};
  EXPECT_FALSE(is_legal(test::nv_config, f16, caps));
  EXPECT_TRUE(is_legal(parse_config("nv:tile=64x64x32,invocations=128").value(), f16, caps));
  caps.verdicts = {{.kind = {.loop = MainLoop::skinny, .input = DataType::f16},
                    .outcome = Outcome::wrong_result}};
  EXPECT_TRUE(is_legal(test::fma_config, f16, caps));
  const Config skinny = parse_config("skinny:tile=3x16x32").value();
  EXPECT_FALSE(is_legal(skinny, f16, caps));
  caps.verdicts[0].kind.loop = MainLoop::fma;
  EXPECT_FALSE(is_legal(test::fma_config, f16, caps));
  EXPECT_TRUE(is_legal(skinny, f16, caps));
}

// Dot products are tried by fma alone.
TEST(Verdicts, OfFmaHoldForSkinnyS8) {
  Problem problem = gemm(8, 512, 512, DataType::s8);
  problem.d.type = DataType::f16;
  problem.b = {.type = DataType::s8, .packing = Packing::packed};
  problem.quantised_b = {.type = CodeType::int4, .group_k = 32};
  const ResolvedProblem s8 = resolved(problem);
  const Config skinny = parse_config("skinny:tile=3x16x32,pack=b").value();
  DeviceCaps caps = h200();
  EXPECT_TRUE(is_legal(skinny, s8, caps));
  caps.verdicts = {
      {.kind = {.loop = MainLoop::fma, .input = DataType::s8}, .outcome = Outcome::wrong_result}};
  EXPECT_FALSE(is_legal(skinny, s8, caps));
}

TEST(Denials, HoldUnlessTheSelfTestPassed) {
  const ResolvedProblem f16 = resolved(gemm(512, 512, 512));
  DeviceCaps caps = h200();
  caps.denials = {{.path = Path::khr, .reason = "known bad driver: it loses the device; source"}};
  EXPECT_EQ(why_illegal(khr_config, f16, caps),
            "path khr: known bad driver: it loses the device; source");
  EXPECT_TRUE(is_legal(test::fma_config, f16, caps));
  caps.verdicts = {{.kind = khr_kind(), .outcome = Outcome::untested}};
  EXPECT_FALSE(is_legal(khr_config, f16, caps));
  caps.verdicts[0].outcome = Outcome::passed;
  EXPECT_TRUE(is_legal(khr_config, f16, caps));
  Config other = khr_config;  // which nobody tried
  test::set(other, "fragment_n", 8);
  EXPECT_FALSE(is_legal(other, f16, caps));
  // Denials may be of some inputs or shapes.
  caps.verdicts.clear();
  caps.denials[0].input = DataType::bf16;
  EXPECT_TRUE(is_legal(khr_config, f16, caps));
  EXPECT_FALSE(is_legal(khr_config, resolved(gemm(512, 512, 512, DataType::bf16)), caps));
  caps.denials[0].input = DataType::f16;
  caps.denials[0].n = 8;
  EXPECT_TRUE(is_legal(khr_config, f16, caps));
  EXPECT_FALSE(is_legal(other, f16, caps));
}

}  // namespace
}  // namespace vkgemm
