// A and B of unlike types, rounded to Problem::multiply_as by loads and by copies.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "groups.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "kernels/parts/pack.hpp"
#include "problem/data_type.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

struct Types {
  DataType a, b, multiply_as;
};
constexpr DataType f16 = DataType::f16, bf16 = DataType::bf16, f32 = DataType::f32;
constexpr DataType s8 = DataType::s8, u8 = DataType::u8;
constexpr DataType e4m3 = DataType::e4m3, e5m2 = DataType::e5m2;
constexpr Types all_types[] = {{f32, f16, f16},   {f32, bf16, bf16}, {f16, f32, f16},
                               {f16, bf16, bf16}, {bf16, f16, f16},  {f32, f32, bf16},
                               {f32, f32, f16},   {e4m3, e4m3, f16}, {e4m3, e5m2, bf16},
                               {f16, e5m2, f16},  {s8, bf16, bf16},  {f32, u8, f16}};

Problem product(Shape shape, const Types& types) {
  Problem problem = gemm(shape, types.a, f32);
  problem.b.type = types.b;
  problem.multiply_as = types.multiply_as;
  return problem;
}

class UnlikeTypes : public EachPath {
 protected:
  void SetUp() override {
    VKGEMM_SKIP_IF(why_skip(GetParam()));
    const std::vector<DataType> multiplied = inputs();
    for (const Types& types : all_types) {
      const auto found = std::ranges::find(multiplied, types.multiply_as);
      if (found != multiplied.end()) types_.push_back(types);
    }
  }

  std::vector<DataType> inputs() const { return inputs_of(GetParam()); }
  // The first configuration of each main loop.
  std::vector<Config> configs(DataType input) const {
    std::vector<Config> out;
    for (const Config& config : small_configs(GetParam(), input)) {
      const auto same = [&](const Config& c) { return c.main_loop() == config.main_loop(); };
      if (std::ranges::none_of(out, same)) out.push_back(config);
    }
    return out;
  }
  // With the copies that the main loop needs, and with those of all that is converted.
  static std::vector<Config> forms(const Config& config, const Problem& problem) {
    const ResolvedProblem resolved = resolve(problem).value();
    std::vector<Config> out;
    for (const bool copied : {false, true}) {
      Config form = as_given(config, resolved, caps());
      form.pack_a = form.pack_a || (copied && resolved.converts(resolved.a));
      form.pack_b = form.pack_b || (copied && resolved.converts(resolved.b));
      if (!is_legal(form, resolved, target()) || is_left_out(form, problem)) continue;
      if (out.empty() || out.back() != form) out.push_back(form);
    }
    return out;
  }

  static void expect_exact(const Config& config, const Types& types, Layout layout,
                           const std::vector<double>& values);

  // The types that the path multiplies here.
  std::vector<Types> types_;
};
VKGEMM_ON_EACH_PATH(UnlikeTypes);

TEST_P(UnlikeTypes, EveryPairAndLayout) {
  std::size_t tried = 0, turn = 0;
  for (const Types& types : types_) {
    if (on_cpu() && !is_nightly() && turn++ % 3 != 0) continue;
    for (const Config& config : configs(types.multiply_as)) {
      for (const bool a_in_columns : {false, true}) {
        for (const bool b_in_columns : {false, true}) {
          for (const bool aligned : {false, true}) {
            Problem problem = product({37, 72, 75}, types);
            if (aligned) problem.k = 72;
            problem.a.layout = a_in_columns ? Layout::col_major : Layout::row_major;
            problem.b.layout = b_in_columns ? Layout::col_major : Layout::row_major;
            if (aligned && a_in_columns) problem.m = 40;
            problem = with_padding(problem, aligned ? 8 : 1, aligned);
            for (const Config& form : forms(config, problem)) {
              EXPECT_TRUE(passes_gates(form, problem, {.shift = aligned ? 0u : 1u}));
              ++tried;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 0u);
}

// Loads, copies in the call and copies before it make the same numbers as a caller who rounds.
TEST_P(UnlikeTypes, HaveTheBitsOfRoundedOperands) {
  for (const Types& types : types_) {
    const Problem problem = product({40, 72, 104}, types);
    Problem rounded = problem;
    rounded.a.type = rounded.b.type = types.multiply_as;
    rounded.multiply_as.reset();
    for (const Config& config : configs(types.multiply_as)) {
      for (const Config& form : forms(config, problem)) {
        Trial given(problem, Fill::random), expected(rounded, Fill::integers);
        for (const auto& [id, rows, cols] : {std::tuple{OperandId::a, problem.m, problem.k},
                                             {OperandId::b, problem.k, problem.n}}) {
          for (std::uint64_t i = 0; i < rows; ++i) {
            for (std::uint64_t j = 0; j < cols; ++j) expected.set(id, i, j, given.get(id, i, j));
          }
        }
        ASSERT_TRUE(given.run(form));
        ASSERT_TRUE(expected.run(form));
        EXPECT_TRUE(given.has_bits_of(expected));
      }
    }
  }
}

// A column of values times 1, in every form.
void UnlikeTypes::expect_exact(const Config& config, const Types& types, Layout layout,
                               const std::vector<double>& values) {
  Problem problem = product({values.size(), 8, 1}, types);
  problem.a.layout = layout;
  for (const Config& form : forms(config, problem)) {
    Trial trial(problem, Fill::integers);
    for (std::size_t i = 0; i < values.size(); ++i) trial.set(OperandId::a, i, 0, values[i]);
    for (std::uint64_t j = 0; j < 8; ++j) trial.set(OperandId::b, 0, j, 1.0);
    ASSERT_TRUE(trial.run(form));
    EXPECT_TRUE(trial.is_exact());
    if (is_integer(types.a)) continue;
    Trial with_nan(problem, Fill::integers, {.poison = std::byte{0}});
    with_nan.set(OperandId::a, 3, 0, nan);
    ASSERT_TRUE(with_nan.run(form));
    EXPECT_TRUE(std::isnan(with_nan.d(3, 5)));
    EXPECT_FALSE(std::isnan(with_nan.d(2, 5)));
  }
}

// Ties, the last numbers before infinity, infinities and NaN. The sum has one product.
TEST_P(UnlikeTypes, RoundToNearestEven) {
  for (const Types& types : types_) {
    if (types.a != f32 || types.b != types.multiply_as) continue;
    std::vector<double> values = {0.0, -0.0, infinity, -infinity, 1.0, -3.0};
    const int bits = types.multiply_as == f16 ? 11 : 8;
    const double least_step = types.multiply_as == f16 ? 0x1p-24 : 0x1p-133;
    for (const double unit : {1.0, 0.25, 4096.0, 0x1p-10, 0x1p-16, 0x1p-21}) {
      const double ulp = std::max(std::ldexp(unit, 1 - bits), least_step);
      for (int i = 0; i < 8; ++i) {
        for (const double part : {0.0, 0.25, 0.5, 0.50390625, 0.75})
          values.push_back((i % 2 == 0 ? 1.0 : -1.0) * (unit + (i + part) * ulp));
      }
    }
    const double largest = types.multiply_as == f16 ? 65504.0 : 0x1.fep127;
    const double step = std::ldexp(largest, -bits);
    for (const double part : {0.0, 0.25, 0.5, 0.75}) values.push_back(largest + part * step);
    for (const double large : {0x1p17, 0x1p110, 0x1p115, 0x1.fffffep127}) values.push_back(-large);
    values.resize((values.size() + 7) / 8 * 8, 0x1p-26);
    for (const Config& config : configs(types.multiply_as)) {
      for (const Layout layout : {Layout::row_major, Layout::col_major})  // loaded as vectors
        expect_exact(config, types, layout, values);
    }
  }
}

// Both 16-bit types have all numbers of 8-bit types.
TEST_P(UnlikeTypes, BytesAreExact) {
  for (const DataType type : {s8, u8, e4m3, e5m2}) {
    std::vector<double> values;
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      const auto byte = static_cast<std::uint8_t>(bits);
      const double value = load_element(&byte, type, 0);
      values.push_back(std::isnan(value) ? 0.0 : value);
    }
    for (const DataType multiplied : inputs()) {
      if (!is_multiplied_as(multiplied)) continue;
      for (const Config& config : configs(multiplied)) {
        for (const Layout layout : {Layout::row_major, Layout::col_major})
          expect_exact(config, {type, multiplied, multiplied}, layout, values);
      }
    }
  }
}

TEST_P(UnlikeTypes, ComposeWithOtherParts) {
  std::size_t computed = 0;
  for (const Types& types : types_) {
    if (types.a == types.b) continue;
    const Config config = configs(types.multiply_as).front();
    std::vector<std::pair<Problem, TrialOptions>> cases;
    const Problem plain = product({40, 48, 80}, types);
    const auto add = [&](Problem problem, TrialOptions options = {}) {
      cases.emplace_back(std::move(problem), std::move(options));
    };
    for (const GatedB b : {GatedB::halves, GatedB::interleaved, GatedB::separate}) {
      Problem gated = plain;
      gated.gated = Gated{.gate = Gate::reglu, .b = b};
      add(gated);
      gated.b.layout = Layout::col_major;
      gated.n = 44;  // a half that begins within a load
      add(gated);
    }
    Problem turned = plain;
    turned.d.layout = Layout::col_major;
    add(turned);
    Problem batch = plain;
    batch.batch = 3;
    batch.b.batch_stride = 0;
    add(with_padding(batch, 8, true));
    add(with_padding(batch));
    Problem sum = batch;
    sum.sum_batch = true;
    sum.d.batch_stride.reset();
    add(sum);
    Problem outer = batch;
    outer.outer_batch = 2;
    add(outer);
    Problem rows = plain;
    rows.row_reduction = RowReduction{.op = RowOp::max};
    add(rows);
    for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
      Problem grouped = plain;
      grouped.grouping = Grouping{.groups = 3, .along = along};
      const std::int64_t all = along == GroupAlong::m ? 40 : 80;
      add(grouped, {.offsets = {0, 13, 13, all}});
    }
    for (const auto& [problem, options] : cases) {
      Config form = config;
      const ResolvedProblem resolved = resolve(problem).value();
      if (problem.row_reduction) form.rows = RowStrategy::two_pass;
      form = as_given(form, resolved, caps());
      if (!is_legal(form, resolved, target())) continue;
      EXPECT_TRUE(passes_gates(form, problem, options)) << context().plan(problem, form)->explain();
      ++computed;
    }
  }
  EXPECT_GT(computed, 0u);
}

// Products of slices, and those of other kernels, load elements one by one and at once.
TEST_P(UnlikeTypes, SlicesOfK) {
  std::size_t computed = 0;
  for (const Types& types : types_) {
    if (!is_byte(types.a) && !is_byte(types.b)) continue;
    for (Config config : configs(types.multiply_as)) {
      for (const std::uint64_t k : {std::uint64_t{config.tile_k} * 3 + 8, std::uint64_t{137}}) {
        Problem problem = product({5, 40, k}, types);
        problem.b.layout = Layout::col_major;
        config.slices = 2;
        for (const ReductionMode mode :
             {ReductionMode::two_dispatches, ReductionMode::last_arriver}) {
          config.reduction_mode = mode;
          for (const Config& form : forms(config, problem)) {
            EXPECT_TRUE(passes_gates(form, problem));
            ++computed;
          }
        }
      }
    }
  }
  if (computed == 0) GTEST_SKIP() << "the path has no slices of these";
}

// A of f32 beside codes, which are multiplied as 16-bit elements.
TEST_P(UnlikeTypes, CodesAndF32) {
  std::size_t computed = 0;
  for (const DataType type : inputs()) {
    if (size_in_bytes(type) != 2) continue;
    const Problem problem = product({5, 72, 96}, {f32, type, type});
    for (const CodeType code : {CodeType::int4, CodeType::int8}) {
      const TrialOptions options{.quantisation = Quantisation{.type = code, .group_k = 32}};
      const Problem asked = planned(problem, options);
      const Result<Plan> plan = plan_on(GetParam(), asked);
      if (!plan) continue;
      Trial trial(problem, Fill::random, options);
      ASSERT_TRUE(trial.run(*plan)) << plan->explain();
      EXPECT_TRUE(trial.is_within_bound()) << plan->explain();
      ++computed;
    }
  }
  if (computed == 0) GTEST_SKIP() << "the path takes no codes";
}

// Weights that are converted once.
TEST_P(UnlikeTypes, PackedBefore) {
  std::size_t computed = 0;
  for (const Types& types : types_) {
    const Problem problem = product({24, 72, 96}, types);
    const TrialOptions options{.packs_a = true, .packs_b = true};
    if (context().packed_layout(problem, PackedOperand::b)->bytes == 0) continue;
    const Result<Plan> plan = plan_on(GetParam(), planned(problem, options));
    if (!plan) continue;
    Trial trial(problem, Fill::random, options);
    ASSERT_TRUE(trial.run(*plan));
    EXPECT_TRUE(trial.is_within_bound());
    ++computed;
  }
  if (computed == 0) GTEST_SKIP() << "nothing is packed on this path";
}

}  // namespace
}  // namespace vkgemm::test
