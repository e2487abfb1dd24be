// No kernel that packs or multiplies a quantised B touches a byte outside its operands' spans.
#include "guards.hpp"

#if __has_include(<sys/mman.h>)
#include <algorithm>

#include "base/arithmetic.hpp"
#include "oracle/quantised.hpp"
#include "problem/convert.hpp"
#include "trial.hpp"
#include "trial_operands.hpp"

namespace vkgemm::test {
namespace {

class CodeGuards : public Guards {
 protected:
  // A packed B, which stands for `elements` of `plain`.
  struct PackedB {
    const std::vector<std::byte>& copy;
    const Fingerprint& fingerprint;
    const Problem& plain;
    const std::vector<std::byte>& elements;
  };
  static void expect_inside(const Config& config, const Problem& problem, Guard touched,
                            const PackedB& b);
  static void expect_codes_inside(const Problem& problem, Path path, std::size_t turn);
  static void expect_all_codes_inside(Path path);
};

// Codes in fragment order; and in rows, on a device that doesn't trust the direct loop. Path nv
// takes none.
class GuardsOfFragments : public CodeGuards {};
INSTANTIATE_TEST_SUITE_P(, GuardsOfFragments, testing::Values(Path::khr), path_name);
class GuardsOfRows : public CodeGuards {
 protected:
  static void SetUpTestSuite() { begin(false); }
};
INSTANTIATE_TEST_SUITE_P(, GuardsOfRows, testing::Values(Path::khr, Path::fma), path_name);

void CodeGuards::expect_inside(const Config& config, const Problem& problem, Guard touched,
                               const PackedB& b) {
  SCOPED_TRACE(describe(config, b.plain));
  const auto plan = own_runner_->context().plan(problem, config);
  ASSERT_TRUE(succeeds(plan));
  const std::uint64_t workspace = plan->workspace_bytes();
  const std::uint64_t values = problem.m * problem.n, inputs = problem.m * problem.k;
  running_.names = {"packed b", "a", "d", "workspace"};
  running_.text = describe(config, b.plain);
  Operands operands;
  operands.b = memories_[0]->place(b.copy.size(), 256, touched);
  std::ranges::copy(b.copy, memories_[0]->data());
  operands.b_fingerprint = b.fingerprint;
  operands.a = memories_[1]->place(inputs * sizeof(std::uint16_t), 2, touched);
  operands.d = memories_[2]->place(values * sizeof(std::uint16_t), 2, touched);
  operands.workspace = memories_[3]->place(workspace, 256, touched);
  fill(*memories_[1], problem, &Operands::a, 1);
  fill(*memories_[2], problem, &Operands::d, 2);
  ASSERT_TRUE(succeeds(own_runner_->submit(
      [&](VkCommandBuffer commands) { return plan->record(commands, operands); })));
  const oracle::VerifyReport report = oracle::verify(b.plain,
                                                     {{OperandId::a, host(operands.a)},
                                                      {OperandId::b, b.elements.data()},
                                                      {OperandId::d, host(operands.d)}},
                                                     {.threads = 1});
  EXPECT_TRUE(report.passed()) << report.first_failure;
}

// Codes, scales and zero points of B beside guards while they are packed, then what they became
// while it is multiplied, by one of the path's configurations.
void CodeGuards::expect_codes_inside(const Problem& problem, Path path, std::size_t turn) {
  oracle::CodeMatrix matrix(problem);
  matrix.quantise([](std::uint64_t of, std::uint64_t k, std::uint64_t n) {
    return fill_value(Fill::random, of, 1000 * k + n);
  });
  Problem packed = problem;
  packed.b = {.type = problem.b.type, .packing = Packing::packed};
  const Context& context = own_runner_->context();
  const auto candidates = context.candidates(packed);
  ASSERT_TRUE(succeeds(candidates));
  std::vector<Config> configs;
  for (const Candidate& candidate : *candidates) {
    if (candidate.config.path() == path) configs.push_back(candidate.config);
  }
  ASSERT_FALSE(configs.empty());
  const Config& config = configs[turn % configs.size()];
  if (is_left_out(config, packed)) return;
  // The oracle multiplies the same elements as the kernel.
  Problem plain = problem;
  plain.b = {.type = oracle::rounds_b(packed, config) ? problem.b.type : DataType::f32};
  plain.quantised_b.reset();
  const std::vector<float> exact = matrix.elements(plain);
  std::vector<std::byte> elements(exact.size() * size_in_bytes(plain.b.type));
  for (std::size_t i = 0; i < exact.size(); ++i) {
    store_element(elements.data(), plain.b.type, i, double{exact[i]});
  }
  const auto plan = context.plan_pack(problem, PackedOperand::b);
  ASSERT_TRUE(succeeds(plan));
  running_.names = {"codes", "scales", "zeros", "copy"};
  running_.text = describe(Config{}, problem);
  for (const Guard touched : {Guard::before, Guard::behind}) {
    const auto source = [&](std::size_t i, const std::vector<std::byte>& bytes,
                            std::uint64_t alignment) {
      const DeviceSpan span = memories_[i]->place(bytes.size(), alignment, touched);
      std::ranges::copy(bytes, memories_[i]->data());
      return span;
    };
    const CodeSource& lies = matrix.source();
    ASSERT_LE(plan->layout().bytes, Guarded::capacity);
    const Operands operands{
        .codes = source(0, matrix.codes, lies.codes.alignment),
        .scales = source(1, matrix.scales, lies.scales.alignment),
        .zeros = source(2, matrix.zeros, lies.zeros.alignment),
        .packed = memories_[3]->place(plan->layout().bytes, plan->layout().alignment, touched)};
    ASSERT_TRUE(succeeds(own_runner_->submit(
        [&](VkCommandBuffer commands) { return plan->record(commands, operands); })));
    const std::vector<std::byte> copied(memories_[3]->data(),
                                        memories_[3]->data() + plan->layout().bytes);
    expect_inside(config, packed, touched, {copied, plan->layout().fingerprint, plain, elements});
  }
}

void CodeGuards::expect_all_codes_inside(Path path) {
  constexpr CodeLayout ggml = CodeLayout::ggml_blocks;
  const Quantisation kinds[] = {
      {.type = CodeType::int8, .group_k = 32},
      {.type = CodeType::int8, .group_n = 0, .scale_type = DataType::f32},
      {.type = CodeType::int8, .layout = ggml},
      {.type = CodeType::int4, .group_k = 64, .zeros = true},
      {.type = CodeType::int4, .scale_type = DataType::bf16, .zeros = true},
      {.type = CodeType::int4, .layout = ggml},
      {.type = CodeType::e4m3, .group_k = 128, .group_n = 128, .scale_type = DataType::f32},
      {.type = CodeType::e5m2},
      {.type = CodeType::mxfp4},
      {.type = CodeType::mxfp4, .layout = ggml},
      {.type = CodeType::nvfp4},
      {.type = CodeType::nvfp4, .layout = ggml},
      {.type = CodeType::int4, .group_k = 16, .zeros = true, .float_zeros = true},
      {.type = CodeType::int4, .group_k = 64, .zeros = true, .layout = CodeLayout::gptq},
      {.type = CodeType::int4, .group_k = 32, .zeros = true, .layout = CodeLayout::awq},
      {.type = CodeType::q5_1},
      {.type = CodeType::q3_k},
      {.type = CodeType::q4_k},
      {.type = CodeType::q6_k},
  };
  std::size_t turn = 0;
  bool small = false;
  for (const Quantisation& q : kinds) {
    for (const Layout layout : {Layout::row_major, Layout::col_major}) {
      const std::uint32_t from = source_of(q);
      const bool in_blocks = IS_BLOCKS(from), in_words = !in_blocks && from != SOURCE_ARRAYS;
      if (in_blocks && layout == Layout::row_major) continue;
      if (in_words && layout == Layout::col_major) continue;
      small = !small;
      for (const Shape& shape : {Shape{3, 5, 33}, Shape{17, 40, 66}}) {
        // Shapes take turns on a CPU, whose driver compiles slowly.
        if (on_cpu() && !is_nightly() && (shape.m == 3) != small) continue;
        Problem problem = gemm(shape, DataType::f16);
        problem.d.type = DataType::f16;
        problem.a.alignment = problem.d.alignment = 2;
        if (in_blocks || in_words) problem.k = rounded_up(problem.k, code_unit(q));
        if (in_words) problem.n = rounded_up(problem.n, code_unit(q));
        problem.b.layout = layout;
        problem.quantised_b = q;
        expect_codes_inside(problem, path, turn++);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(GuardsOfFragments, StandBesideCodes) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  expect_all_codes_inside(GetParam());
}

TEST_P(GuardsOfRows, StandBesideCodes) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  expect_all_codes_inside(GetParam());
}

}  // namespace
}  // namespace vkgemm::test

#endif
