// A quantised B: every kind of codes on every loop that takes them. The reference multiplies what
// the codes stand for (oracle/quantised.hpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "base/arithmetic.hpp"
#include "direct.hpp"
#include "harness.hpp"
#include "kernels/legality.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/parts/quantised.hpp"
#include "problem/resolve.hpp"
#include "trial.hpp"
#include "trial_operands.hpp"

namespace vkgemm::test {
namespace {

constexpr CodeLayout ggml = CodeLayout::ggml_blocks;

// Every type, group, type of scales and layout at least once.
const Quantisation all_kinds[] = {
    {.type = CodeType::int8},
    {.type = CodeType::int8, .group_k = 64, .scale_type = DataType::bf16},
    {.type = CodeType::int8, .group_k = 32, .layout = ggml},
    {.type = CodeType::int4, .scale_type = DataType::f32},
    {.type = CodeType::int4, .group_k = 32, .zeros = true},
    {.type = CodeType::int4, .group_k = 64, .scale_type = DataType::f32, .zeros = true},
    {.type = CodeType::int4, .group_k = 128},
    {.type = CodeType::int4, .group_k = 32, .layout = ggml},
    {.type = CodeType::e4m3, .group_n = 0, .scale_type = DataType::f32},
    {.type = CodeType::e4m3, .group_k = 128, .group_n = 128, .scale_type = DataType::f32},
    {.type = CodeType::e5m2},
    {.type = CodeType::mxfp4},
    {.type = CodeType::mxfp4, .group_k = 32, .layout = ggml},
    {.type = CodeType::nvfp4},
    {.type = CodeType::nvfp4, .layout = ggml},
    {.type = CodeType::int4, .group_k = 16, .zeros = true, .float_zeros = true},
    {.type = CodeType::int4, .scale_type = DataType::f32, .zeros = true, .float_zeros = true},
    {.type = CodeType::int8, .group_k = 192, .scale_type = DataType::bf16},
    {.type = CodeType::int4, .group_k = 256, .zeros = true},
    {.type = CodeType::int4, .group_k = 64, .zeros = true, .layout = CodeLayout::gptq},
    {.type = CodeType::int4, .layout = CodeLayout::gptq_v2},
    {.type = CodeType::int4, .group_k = 128, .zeros = true, .layout = CodeLayout::awq},
    {.type = CodeType::q4_1},
    {.type = CodeType::q5_0},
    {.type = CodeType::q5_1},
    {.type = CodeType::q2_k},
    {.type = CodeType::q3_k},
    {.type = CodeType::q4_k},
    {.type = CodeType::q5_k},
    {.type = CodeType::q6_k},
    {.type = CodeType::iq4_nl},
    {.type = CodeType::iq4_xs},
    {.type = CodeType::q1_0},
    {.type = CodeType::q2_0},
    {.type = CodeType::tq2_0},
};

// Whether codes lie in columns, and K is of whole blocks.
bool is_ggml(const Quantisation& q) { return IS_BLOCKS(source_of(q)); }

// Whether they lie in words, of whole rows.
bool is_words(const Quantisation& q) { return !is_ggml(q) && source_of(q) != SOURCE_ARRAYS; }

Problem with_codes(Problem problem, const Quantisation& q, Layout layout) {
  problem.b.layout = is_ggml(q) ? Layout::col_major : is_words(q) ? Layout::row_major : layout;
  if (is_ggml(q) || is_words(q)) problem.k = rounded_up(problem.k, code_unit(q));
  if (is_words(q)) problem.n = rounded_up(problem.n, code_unit(q));
  return problem;
}

// Whether a configuration computes the problem with these codes.
bool takes(const Config& config, const Problem& problem, const Quantisation& q,
           headless::Runner& on) {
  return static_cast<bool>(
      on.context().plan(planned(problem, {.quantisation = q}, config), config));
}

// As it takes these codes.
Config taking(const Config& config, const Quantisation& q, DataType type) {
  Problem problem = gemm({128, 128, 128}, type);
  problem.b.packing = Packing::packed;
  problem.quantised_b = q;
  return as_given(config, resolve(problem).value(), {});
}

// Codes in rows: on a device that doesn't trust the direct loop.
class Quantised : public EachPath {
 protected:
  static void SetUpTestSuite() { untrusting() = another_runner({}, false); }
  static void TearDownTestSuite() { untrusting().reset(); }
  static std::unique_ptr<headless::Runner>& untrusting() {
    static std::unique_ptr<headless::Runner> the_runner;
    return the_runner;
  }
  static TrialOptions packing(const Quantisation& q) {
    return {.quantisation = q, .on = untrusting().get()};
  }

  void SetUp() override {
    VKGEMM_SKIP_IF(why_skip(GetParam()));
    if (GetParam() == Path::nv) GTEST_SKIP() << "path nv takes no codes";
  }

  // The path's loops that take codes in rows, for these inputs.
  static std::vector<Config> configs(DataType type) {
    std::vector<Config> out;
    for (const Config& config : small_configs(GetParam(), type)) {
      const LoopDescriptor& loop = descriptor(config);
      if (!loop.takes_fragments()) out.push_back(config);
    }
    if (GetParam() == Path::fma) {
      out.push_back(parse_config("skinny:tile=2x16x32").value());
    }
    for (Config& config : out) config.pack_b = true;
    return out;
  }
  // On a CPU, which computes slowly, the first and the last.
  static std::vector<Config> few_configs(DataType type) {
    const std::vector<Config> all = configs(type);
    return on_cpu() ? std::vector<Config>{all.front(), all.back()} : all;
  }
  static std::vector<DataType> types() {
    std::vector<DataType> out;
    for (const DataType type : inputs_of(GetParam())) {
      if (size_in_bytes(type) == 2) out.push_back(type);
    }
    return out;
  }
};
VKGEMM_ON_EACH_PATH(Quantised);

TEST_P(Quantised, EveryKindOfCodes) {
  for (const DataType type : types()) {
    const Config config = configs(type).front();
    for (const Quantisation& q : all_kinds) {
      for (const Layout layout : {Layout::row_major, Layout::col_major}) {
        if (is_ggml(q) && layout == Layout::row_major) continue;
        if (is_words(q) && layout == Layout::col_major) continue;
        EXPECT_TRUE(
            passes_gates(config, with_codes(gemm({19, 37, 203}, type), q, layout), packing(q)))
            << to_string(q) << ", " << to_string(layout);
      }
    }
  }
}

TEST_P(Quantised, EveryConfiguration) {
  for (const DataType type : types()) {
    std::set<MainLoop> done;
    for (const Config& config : configs(type)) {
      // Where compiling is slow, one of each loop.
      if (on_cpu() && GetParam() == Path::khr && !done.insert(config.main_loop()).second) continue;
      for (const std::size_t kind : {std::size_t{0}, std::size_t{4}, std::size_t{8}}) {
        if (on_cpu() && kind != 4) continue;
        const Quantisation& q = all_kinds[kind];
        EXPECT_TRUE(passes_gates(config, gemm({35, 70, 150}, type), packing(q))) << to_string(q);
      }
    }
  }
}

TEST_P(Quantised, AnyShape) {
  for (const Config& config : configs(types().front())) {
    for (const Shape& shape :
         {Shape{1, 1, 1}, {3, 64, 64}, {2, 65, 129}, {17, 130, 31}, {9, 7, 0}}) {
      EXPECT_TRUE(passes_gates(config, gemm(shape, types().front()), packing(all_kinds[4])));
      if (on_cpu() && GetParam() == Path::khr) break;
    }
  }
}

TEST_P(Quantised, BatchesSlicesAndColumnMajorD) {
  const DataType type = types().front();
  for (const Config& config : few_configs(type)) {
    Problem problem = gemm({21, 40, 190}, type);
    problem.batch = 3;
    problem.d.layout = Layout::col_major;
    problem.epilogue = {.bias = Bias::along_n, .activation = Activation::relu, .aux = true};
    problem.aux.layout = Layout::col_major;
    const TrialOptions options = packing(all_kinds[5]);
    EXPECT_TRUE(passes_gates(config, problem, options));
    problem.b.batch_stride = 0;
    EXPECT_TRUE(passes_gates(sliced(config, 3), problem, options));
    if (on_cpu() && GetParam() == Path::khr) break;
    problem.d.layout = problem.aux.layout = Layout::row_major;
    EXPECT_TRUE(passes_gates(sliced(config, 3, ReductionMode::last_arriver), problem, options));
  }
}

TEST_P(Quantised, GatesGroupsAndRows) {
  const DataType type = types().front();
  std::size_t gates = 0, reductions = 0;
  for (const Config& config : few_configs(type)) {
    const TrialOptions options = packing(all_kinds[4]);
    for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
      Problem problem = gemm({19, 21, 100}, type);
      problem.gated = Gated{.gate = Gate::reglu, .b = b};
      if (!takes(config, problem, all_kinds[4], *untrusting())) continue;
      ++gates;
      EXPECT_TRUE(passes_gates(config, problem, options));
    }
    for (const GroupedB b : {GroupedB::shared, GroupedB::per_group}) {
      Problem problem = gemm({50, 40, 70}, type);
      problem.grouping = Grouping{.groups = 4, .b = b};
      TrialOptions groups = options;
      groups.offsets = {0, 17, 17, 40, 50};
      EXPECT_TRUE(passes_gates(config, problem, groups));
    }
    if (!descriptor(config).keeps_values) continue;
    Problem problem = gemm({33, 40, 70}, type);
    problem.row_reduction = RowReduction{.op = RowOp::softmax};
    Config rows = config;
    rows.rows = RowStrategy::recompute;
    rows.tile_n = 32;
    if (takes(rows, problem, all_kinds[4], *untrusting())) {
      ++reductions;
      EXPECT_TRUE(passes_gates(rows, problem, options));
    }
    if (on_cpu() && GetParam() == Path::khr) break;
  }
  EXPECT_GT(gates, 0u);
  EXPECT_GT(reductions, 0u);
}

// The product with the elements that codes stand for has the same bits.
void expect_bits_of_elements(Trial& codes, const Config& config, const Problem& problem) {
  Trial elements(problem, Fill::random);
  for (std::uint64_t k = 0; k < problem.k; ++k) {
    for (std::uint64_t n = 0; n < problem.n; ++n) {
      elements.set(OperandId::b, k, n, static_cast<double>(codes.codes().element(0, k, n)));
    }
  }
  Config same = config;  // ahead=2 is of codes
  if (auto* const direct = std::get_if<KhrDirectLoop>(&same.loop)) {
    direct->ahead = std::min(direct->ahead, 1u);
  }
  ASSERT_TRUE(elements.run(same));
  for (std::uint64_t i = 0; i < problem.m; ++i) {
    for (std::uint64_t j = 0; j < problem.n; ++j) {
      ASSERT_EQ(codes.d(i, j), elements.d(i, j)) << to_string(config) << ", " << i << ", " << j;
    }
  }
}

TEST_P(Quantised, SameBitsAsElements) {
  for (const DataType type : types()) {
    const Config config = configs(type).front();
    for (const Quantisation& q : all_kinds) {
      const Problem problem = with_codes(gemm({19, 37, 192}, type), q, Layout::row_major);
      if (is_left_out(config, planned(problem, packing(q)))) continue;
      Trial codes(problem, Fill::random, packing(q));
      ASSERT_TRUE(codes.run(config));
      Config plain = config;
      plain.pack_b = false;
      expect_bits_of_elements(codes, plain, problem);
      if (on_cpu() && GetParam() == Path::khr && &q - all_kinds > 4) break;
    }
  }
}

// Row i of D is row i of B where A is the identity.
void expect_every_code(const Config& config, DataType type, headless::Runner& on) {
  for (const CodeType codes :
       {CodeType::int8, CodeType::int4, CodeType::e4m3, CodeType::e5m2, CodeType::mxfp4}) {
    for (const bool zeros : {false, true}) {
      if (zeros && codes != CodeType::int4) continue;
      const Quantisation q{.type = codes, .zeros = zeros};
      Problem problem = gemm({32, oracle::code_count(codes), 128}, type);
      Trial trial(problem, Fill::integers,
                  {.poison = std::byte{0x3a}, .quantisation = q, .on = &on});
      for (std::uint64_t i = 0; i < problem.m; ++i) {
        for (std::uint64_t k = 0; k < problem.k; ++k)
          trial.set(OperandId::a, i, k, i == k ? 1.0 : 0.0);
      }
      oracle::CodeMatrix& b = trial.codes();
      for (std::uint64_t n = 0; n < problem.n; ++n) {
        for (std::uint64_t k = 0; k < problem.k; ++k) {
          b.set_code(0, k, n, 0);
          b.set_scale(0, k, n, 0.5);
          if (zeros) b.set_zero(0, k, n, 5);
        }
        b.set_code(0, 7, n, static_cast<std::uint32_t>(n));
      }
      trial.store_elements();
      ASSERT_TRUE(trial.run(taking(config, q, type)));
      for (std::uint64_t n = 0; n < problem.n; ++n) {
        const double wanted = static_cast<double>(b.element(0, 7, n)), got = trial.d(7, n);
        if (std::isfinite(wanted)) {
          EXPECT_EQ(got, wanted) << to_string(q) << ": " << n;
        } else {
          EXPECT_EQ(std::isnan(got), std::isnan(wanted)) << to_string(q) << ": " << n;
        }
      }
    }
  }
}

TEST_P(Quantised, EveryCode) {
  for (const DataType type : types()) {
    expect_every_code(configs(type).front(), type, *untrusting());
  }
}

void expect_scales_that_are_no_numbers(const Config& config, DataType type, headless::Runner& on) {
  for (const DataType scales : {DataType::f16, DataType::bf16, DataType::f32}) {
    const Quantisation q{.type = CodeType::int4, .group_k = 32, .scale_type = scales};
    Trial trial(gemm({5, 10, 128}, type), Fill::integers,
                {.poison = std::byte{0x3a}, .quantisation = q, .on = &on});
    trial.codes().set_scale(0, 40, 3, nan);
    trial.codes().set_scale(0, 64, 6, infinity);
    trial.store_elements();
    ASSERT_TRUE(trial.run(taking(config, q, type)));
    for (std::uint64_t i = 0; i < 5; ++i) {
      for (std::uint64_t j = 0; j < 10; ++j) {
        const double d = trial.d(i, j);
        EXPECT_EQ(std::isfinite(d), j != 3 && j != 6) << i << ", " << j << ": " << d;
        if (j == 3) {
          EXPECT_TRUE(std::isnan(d)) << i;
        }
      }
    }
  }
}

TEST_P(Quantised, ScalesThatAreNoNumbers) {
  for (const DataType type : types()) {
    expect_scales_that_are_no_numbers(configs(type).front(), type, *untrusting());
  }
}

// What lies behind K is no number times 0: its codes are those of 0 whatever the zero point.
void expect_padding_of_zero(const Config& config, DataType type, headless::Runner& on) {
  const Quantisation q{.type = CodeType::int4, .scale_type = DataType::bf16, .zeros = true};
  Trial trial(gemm({5, 10, 37}, type), Fill::integers, {.quantisation = q, .on = &on});
  for (std::uint64_t n = 0; n < 10; ++n) {
    trial.codes().set_zero(0, 0, n, 0);
    trial.codes().set_scale(0, 0, n, type == DataType::f16 ? 9984.0 : 0x1p125);
    for (std::uint64_t k = 0; k < 37; ++k) trial.codes().set_code(0, k, n, k == n ? 1 : 0);
  }
  trial.store_elements();
  ASSERT_TRUE(trial.run(taking(config, q, type)));
  for (std::uint64_t i = 0; i < 5; ++i) {
    for (std::uint64_t j = 0; j < 10; ++j) EXPECT_TRUE(std::isfinite(trial.d(i, j))) << i << j;
  }
}

TEST_P(Quantised, PaddingOfZero) {
  for (const DataType type : types()) {
    expect_padding_of_zero(configs(type).front(), type, *untrusting());
  }
}

TEST_P(Quantised, TheConfigurationThatIsChosen) {
  Problem problem = gemm({5, 96, 256}, types().front());
  const Quantisation q{.type = CodeType::int4, .group_k = 64};
  Problem packed = problem;
  packed.b = {.type = problem.b.type, .packing = Packing::packed};
  packed.quantised_b = q;
  const auto candidates = untrusting()->context().candidates(packed);
  ASSERT_TRUE(succeeds(candidates));
  ASSERT_FALSE(candidates->empty());
  EXPECT_TRUE(passes_gates(candidates->front().config, problem, packing(q)));
  const auto plan = untrusting()->context().plan(packed);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_NE(plan->explain().find("scales multiply codes"), std::string::npos) << plan->explain();
  EXPECT_NE(plan->explain().find("quantised: b is int4:group=64"), std::string::npos)
      << plan->explain();
}

// In fragment order, by configurations that take the device's.
class QuantisedDirect : public Direct {
 protected:
  void SetUp() override {
    Direct::SetUp();
    // In every run of columns that the device has, and with A a unit ahead where that can be.
    std::vector<Case> all;
    const auto add = [&](const Case& c) {
      const bool taken = takes(taking(c.config, all_kinds[4], c.input),
                               gemm({128, 128, 128}, c.input), all_kinds[4], runner());
      if (taken) all.push_back(c);
      return taken;
    };
    bool with_units_of_a = false;
    for (Case c : configs_) {
      auto& loop = std::get<KhrDirectLoop>(c.config.loop);
      for (const std::uint32_t run : {1u, 2u, 4u, 8u}) {
        loop.code_run = run;
        add(c);
      }
      loop.ahead = 2;
      for (const std::uint32_t run : {4u, 1u}) {
        loop.code_run = run;
        if (!add(c)) continue;
        with_units_of_a = true;
        break;
      }
    }
    configs_ = all;
    if (!IsSkipped()) {
      ASSERT_FALSE(configs_.empty());
      EXPECT_TRUE(with_units_of_a);
    }
  }
};

TEST_F(QuantisedDirect, EveryKindOfCodes) {
  for (const Case& c : configs_) {
    std::size_t taken = 0;
    for (const Quantisation& q : all_kinds) {
      const Problem problem =
          with_codes(gemm({c.config.pack_a ? 35u : 64u, 70, 256}, c.input), q, Layout::row_major);
      // Groups of 16 with code_run 1 need another order than the tables'.
      if (!takes(taking(c.config, q, c.input), problem, q, runner())) {
        EXPECT_EQ(with_group(q).group_k, 16u) << to_string(q);
        continue;
      }
      ++taken;
      EXPECT_TRUE(passes_gates(taking(c.config, q, c.input), problem, {.quantisation = q}))
          << to_string(q);
      if (on_cpu() && c.config != configs_.front().config) break;
    }
    EXPECT_GT(taken, 0u);
  }
}

// One to four units in an iteration: as many places of what is loaded ahead, but one for three,
// whose depth neither divides groups of K nor is a multiple of them. Scales of all of K, of codes
// and of sums.
TEST_F(QuantisedDirect, EveryDepth) {
  for (const Case& c : configs_) {
    if (!c.config.pack_a) continue;
    for (const std::size_t kind : {0u, 4u, 5u, 9u}) {
      const Quantisation& q = all_kinds[kind];
      for (const std::uint32_t units : {1u, 2u, 3u, 4u}) {
        Config config = taking(c.config, q, c.input);
        // An invocation loads 16 bytes of codes at once, and 16 bytes of a fragment's elements.
        const std::uint32_t steps = 16 / bits_of(q.type);
        config.tile_k = units * steps * descriptor(config).fragment_order(config, false).k;
        for (const std::uint64_t k : {0u, 1u, 63u, 64u, 65u, 128u, 200u, 321u}) {
          // Not read behind the end of what is packed.
          if (rounded_up(k, config.tile_k) > rounded_up(k, packed_depth)) continue;
          EXPECT_TRUE(passes_gates(config, gemm({9, 40, k}, c.input), {.quantisation = q}));
        }
      }
      if (on_cpu() && c.config != configs_.front().config) break;
    }
  }
}

// Scales of codes, of sums and in two levels, codes from words, and groups of 16.
class QuantisedFamilies : public QuantisedDirect,
                          public testing::WithParamInterface<std::size_t> {};

TEST_P(QuantisedFamilies, Pass) {
  std::size_t gates = 0, reductions = 0;
  for (const Case& c : configs_) {
    if (!c.config.pack_a) continue;
    const Quantisation& q = all_kinds[GetParam()];
    const Config config = taking(c.config, q, c.input);
    const TrialOptions options{.quantisation = q};
    Problem batched = with_codes(gemm({21, 140, 190}, c.input), q, Layout::row_major);
    batched.batch = 2;
    batched.epilogue = {.bias = Bias::along_n, .activation = Activation::relu, .aux = true};
    EXPECT_TRUE(passes_gates(config, batched, options));
    batched.d.layout = batched.aux.layout = Layout::col_major;
    EXPECT_TRUE(passes_gates(sliced(config, 3), batched, options));
    if (config.slices == 1) {
      EXPECT_TRUE(passes_gates(sliced(config, 2, ReductionMode::last_arriver),
                               with_codes(gemm({21, 40, 190}, c.input), q, Layout::row_major),
                               options));
    }
    for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
      Problem gated = with_codes(gemm({19, 37, 100}, c.input), q, Layout::row_major);
      gated.gated = Gated{.gate = Gate::reglu, .b = b};
      if (!takes(config, gated, q, runner())) continue;
      ++gates;
      EXPECT_TRUE(passes_gates(config, gated, options));
    }
    for (const GroupedB b : {GroupedB::shared, GroupedB::per_group}) {
      Problem grouped = with_codes(gemm({50, 40, 70}, c.input), q, Layout::row_major);
      grouped.grouping = Grouping{.groups = 4, .b = b};
      TrialOptions groups = options;
      groups.offsets = {0, 17, 17, 40, 50};
      EXPECT_TRUE(passes_gates(config, grouped, groups));
    }
    Problem rows = with_codes(gemm({33, 40, 70}, c.input), q, Layout::row_major);
    rows.row_reduction = RowReduction{.op = RowOp::softmax};
    Config reducing = config;
    reducing.rows = RowStrategy::recompute;
    reducing.tile_n = 32;
    if (takes(reducing, rows, q, runner())) {
      ++reductions;
      EXPECT_TRUE(passes_gates(reducing, rows, options));
    }
  }
  EXPECT_GT(gates, 0u);
  EXPECT_GT(reductions, 0u);
}
INSTANTIATE_TEST_SUITE_P(Kinds, QuantisedFamilies, testing::Values(4u, 5u, 21u, 27u, 29u));

TEST_F(QuantisedDirect, SameBitsAsElements) {
  for (const Case& c : configs_) {
    if (!c.config.pack_a) continue;
    for (const Quantisation& q : all_kinds) {
      const Problem problem = with_codes(gemm({19, 37, 192}, c.input), q, Layout::row_major);
      Config config = taking(c.config, q, c.input);
      if (!rounds_elements(config, q, input_of(c.input))) continue;
      // Groups of 16 with code_run 1 need another order than the tables'.
      if (!takes(config, problem, q, runner())) continue;
      if (is_left_out(config, planned(problem, {.quantisation = q}, config))) continue;
      Trial codes(problem, Fill::random, {.quantisation = q});
      ASSERT_TRUE(codes.run(config));
      std::get<KhrDirectLoop>(config.loop).code_run = 1;
      expect_bits_of_elements(codes, config, problem);
    }
    if (on_cpu()) break;
  }
}

TEST_F(QuantisedDirect, EveryCodeAndScale) {
  for (const Case& c : configs_) {
    if (!c.config.pack_a) continue;
    expect_every_code(c.config, c.input, runner());
    expect_scales_that_are_no_numbers(c.config, c.input, runner());
    expect_padding_of_zero(c.config, c.input, runner());
    if (on_cpu()) break;
  }
}

}  // namespace
}  // namespace vkgemm::test
