// No kernel touches a byte outside its operands' spans.
#include "guards.hpp"

#if __has_include(<sys/mman.h>)
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/text.hpp"
#include "oracle/groups.hpp"
#include "problem/resolve.hpp"
#include "problem/row_index.hpp"
#include "quantise_rows.hpp"
#include "runtime/operand_check.hpp"
#include "trial.hpp"

namespace vkgemm::test {

VKGEMM_ON_EACH_PATH(Guards);

void Guards::expect_inside(const Config& config, const Problem& problem,
                           std::span<const std::int64_t> offsets, bool certain) {
  if (is_left_out(config, problem)) return;
  SCOPED_TRACE(describe(config, problem));
  std::vector<std::byte> encoded;
  if (problem.grouping)
    encoded = encode_integers(offsets, size_in_bytes(problem.grouping->offsets));
  const auto plan = own_runner_->context().plan(problem, config);
  ASSERT_TRUE(succeeds(plan));
  const OperandRules rules(resolve(problem).value(), plan->workspace_bytes());
  for (const Guard touched : {Guard::before, Guard::behind}) {
    Operands operands;
    std::size_t i = 0;
    for (const Operand& rule : rules.operands()) {
      running_.names[i] = rule.name;
      ASSERT_LE(rule.bytes, Guarded::capacity);
      operands.*rule.span = memories_[i]->place(rule.bytes, rule.alignment, touched);
      fill(*memories_[i], problem, rule.span, i);
      if (rule.span == &Operands::offsets) {
        std::ranges::copy(encoded, memories_[i]->data());
      }
      ++i;
    }
    running_.text = describe(config, problem);
    EXPECT_TRUE(succeeds(own_runner_->submit(
        [&](VkCommandBuffer commands) { return plan->record(commands, operands); })));
    if (!certain) continue;
    const oracle::VerifyReport report =
        oracle::verify(problem,
                       {{OperandId::a, host(operands.a)},
                        {OperandId::b, host(operands.b)},
                        {OperandId::c, host(operands.c)},
                        {OperandId::bias, host(operands.bias)},
                        {OperandId::offsets, encoded.data()},
                        {OperandId::b_right, host(operands.b_right)},
                        {OperandId::d, host(operands.d)},
                        {OperandId::aux, host(operands.aux)}},
                       {.threads = 1});
    EXPECT_TRUE(report.passed()) << report.first_failure;
  }
}

namespace {

// The epilogue that reads and writes all that there is, in types that change from case to case.
void add_epilogue(Problem& problem, std::size_t turn) {
  constexpr DataType types[] = {DataType::f32, DataType::f16, DataType::bf16};
  problem.epilogue = {.alpha = 0.5f,
                      .beta = 0.25f,
                      .bias = turn % 2 == 0 ? Bias::along_n : Bias::along_m,
                      .bias_type = types[(turn + 2) % 3],
                      .aux = true};
  problem.c.type = types[turn % 3];
  problem.d.type = problem.aux.type = types[(turn + 1) % 3];
  const Layout layout = turn % 4 < 2 ? Layout::row_major : Layout::col_major;
  problem.c.layout = problem.d.layout = problem.aux.layout = layout;
}

}  // namespace

// Shapes around the tile and of no relation to it. All configurations together see every pair of
// layouts; in the nightly test each sees one here and its opposite where `aligned` is another: K is
// the inner and the outer direction of its A and of its B. (A column-major D swaps A and B, so D's
// layout is the same in both.)
void Guards::expect_inside(const std::vector<Config>& configs, DataType input, bool aligned) {
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const Config& config = configs[i];
    // Every second configuration has elementwise accesses, the others those of vectors; of either
    // every second one has pipelines without edges, the others pack. Other types begin elsewhere.
    const bool all = is_nightly();
    const std::size_t choice = i + static_cast<std::size_t>(input) + (aligned ? 3 : 0);
    if (!all && choice % 2 != 0) continue;
    const bool without_edges = all || choice % 4 == 0;
    const bool packs = input != DataType::f32 && (all || choice % 4 != 0);
    const std::size_t pair = !all ? choice / 2 % 4 : aligned ? 3 - i % 4 : i % 4;
    const std::size_t turn = !all ? choice / 2 : 2 * i + (aligned ? 1 : 0);
    const std::uint64_t m = config.tile_m, n = config.tile_n;
    const std::uint64_t k = k_step(config);
    std::vector<Shape> any = {{m + 1, n - 1, k + 1},
                              {m - 1, n + 1, k - 1},
                              {2 * m + 1, 2 * n + 1, 4 * k + 1},
                              {1, 1, 1},
                              {1, n + 1, k - 1},
                              {m + 1, 1, 2 * k + 1},
                              {31, 37, 41},
                              {2, 3, 5}};
    // Rows that can be loaded 16 bytes at a time.
    std::vector<Shape> multiples = {
        {m + 8, n + 8, k + 8}, {m + 8, n + 24, 8}, {8, 8, 8}, {m + 8, n + 8, 4 * k + 8}};
    // Pipelines without edges, without a tail, without both: with either kind of access.
    if (without_edges) {
      any.insert(any.end(), {{m + 1, n + 1, 2 * k}, {m, n, k + 1}, {m, n, 2 * k}});
      multiples.insert(multiples.end(), {{2 * m + 8, 8, 3 * k}, {m, n, k + 8}, {m, n, 2 * k}});
    }
    for (const Shape& shape : aligned ? multiples : any) {
      Problem problem = gemm(shape, input);
      problem.a.layout = pair / 2 == 0 ? Layout::row_major : Layout::col_major;
      problem.b.layout = pair % 2 == 0 ? Layout::row_major : Layout::col_major;
      add_epilogue(problem, turn);
      expect_inside(config, with_padding(problem, 0, aligned));
      expect_inside(config, with_padding(problem, aligned ? 8 : 1, aligned));
      if (packs) {
        Config packing = config;
        packing.pack_a = config.pack_a || i % 3 != 0;
        packing.pack_b = config.pack_b || i % 3 != 1;
        packing.slices = i % 2 == 0 ? 1 : 3;
        expect_inside(packing, with_padding(problem, aligned ? 8 : 1, aligned));
      }
      problem.batch = 3;
      expect_inside(config, with_padding(problem, aligned ? 8 : 1, aligned));
      if (HasFailure()) return;
    }
  }
}

TEST_P(Guards, StandBesideElementwiseAccesses) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  for (const DataType input : inputs_of(GetParam())) {
    expect_inside(small_configs(GetParam(), input), input, false);
  }
}

TEST_P(Guards, StandBesideVectorAccesses) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  for (const DataType input : inputs_of(GetParam())) {
    expect_inside(small_configs(GetParam(), input), input, true);
  }
}

// Halves of B that end beside a guard, or beside the other half.
TEST_P(Guards, StandBesideGates) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(GetParam() == Path::nv ? "gated products are not built on path nv"
                                        : why_skip(GetParam()));
  const DataType input = inputs_of(GetParam()).front();
  const Config config =
      parse_config(GetParam() == Path::khr ? "khr:tile=16x16x16,fragment=8x8x8,subgroups=2x1,"
                                             "subgroup_size=8,subtiles=1,swizzle=2,peel=0"
                                           : "fma:tile=16x16x8,fragment=4x8,swizzle=2,peel=0")
          .value();
  const Config skinny = parse_config("skinny:tile=3x16x32,swizzle=2").value();
  for (const GatedB b : {GatedB::halves, GatedB::separate, GatedB::interleaved}) {
    for (const bool aligned : {false, true}) {
      const std::vector<Shape> shapes =
          aligned ? std::vector<Shape>{{24, 24, 24}, {8, 8, 8}, {40, 8, 40}}
                  : std::vector<Shape>{{17, 9, 17}, {1, 1, 1}, {15, 7, 33}, {2, 10, 5}};
      for (const Shape& shape : shapes) {
        Problem problem = gemm(shape, input);
        problem.gated = {.gate = Gate::reglu, .b = b};
        problem.epilogue = {.alpha = 0.5f, .bias = Bias::along_n, .aux = true};
        problem.b.layout = aligned == (b == GatedB::halves) ? Layout::row_major : Layout::col_major;
        expect_inside(config, with_padding(problem, 0, aligned));
        problem.batch = 2;
        problem = with_padding(problem, aligned ? 8 : 1, aligned);
        expect_inside(config, problem);
        if (GetParam() == Path::fma) expect_inside(skinny, problem);
        if (!aligned && b != GatedB::halves) continue;  // as halves, before and after the sum
        expect_inside(sliced(config, 2), problem);
      }
    }
  }
}

// Rows, their codes and scales beside guards.
void Guards::expect_rows_inside(DataType type) {
  running_.names = {"source", "codes", "scales"};
  for (const std::uint64_t columns : {1u, 8u, 9u, 40u, 257u, 9000u}) {
    for (const bool aligned : {false, true}) {
      RowQuantisation q{.rows = 3, .columns = columns, .batch = 2, .source = {.type = type}};
      q = with_padding(q, aligned ? 16 - columns % 16 : 1, aligned);
      const auto plan = own_runner_->context().plan_quantise_rows(q);
      ASSERT_TRUE(succeeds(plan));
      running_.text = concat(columns, " columns of ", to_string(type));
      for (const Guard touched : {Guard::before, Guard::behind}) {
        QuantisedRows rows(q);
        rows.fill(1);
        Operands spans = plan->operands();
        spans.source = memories_[0]->place(spans.source.bytes, q.source.alignment, touched);
        spans.codes = memories_[1]->place(spans.codes.bytes, q.codes.alignment, touched);
        spans.scales = memories_[2]->place(spans.scales.bytes, sizeof(float), touched);
        std::memcpy(memories_[0]->data(), rows.source_bytes().data(), spans.source.bytes);
        std::memset(memories_[1]->data(), 0xff, spans.codes.bytes);
        EXPECT_TRUE(succeeds(own_runner_->submit(
            [&](VkCommandBuffer commands) { return plan->record(commands, spans); })));
        ASSERT_TRUE(rows.run());  // elsewhere, the same bytes
        EXPECT_EQ(std::memcmp(memories_[1]->data(), rows.codes_bytes().data(), spans.codes.bytes),
                  0);
        EXPECT_EQ(std::memcmp(memories_[2]->data(), rows.scales_bytes().data(), spans.scales.bytes),
                  0);
      }
    }
  }
}

// No path has a part in it: once.
TEST_P(Guards, StandBesideQuantisedRows) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_not_quantised());
  VKGEMM_SKIP_IF(GetParam() == Path::fma ? "" : "rows are quantised alike on all paths");
  for (const DataType type : {DataType::f16, DataType::bf16, DataType::f32}) {
    expect_rows_inside(type);
  }
}

// Groups whose offsets say all sorts of things.
TEST_P(Guards, StandBesideGroups) {
  VKGEMM_SKIP_IF(why_not());
  VKGEMM_SKIP_IF(why_skip(GetParam()));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  struct Groups {
    std::array<std::int64_t, 4> offsets;
    bool certain;
  };
  constexpr Groups cases[] = {
      {{0, 19, 19, 41}, true},    {{5, 6, 39, 40}, true},        {{-7, 20, 30, 60}, true},
      {{50, 60, 70, 80}, true},   {{-most, -3, 41, most}, true}, {{most, -most, most, 0}, false},
      {{41, 20, 30, -20}, false},
  };
  const DataType input = inputs_of(GetParam()).front();
  // Rings and the skinny loop first, among those that compile quickly.
  std::vector<Config> configs = small_configs(GetParam(), input);
  std::erase_if(configs, [](const Config& c) {
    return c.path() == Path::khr && (peels(c) || c.main_loop() == MainLoop::khr_direct);
  });
  const auto is_special = [](const Config& c) {
    return is_ring(c) || c.main_loop() == MainLoop::skinny;
  };
  std::ranges::stable_partition(configs, is_special);
  configs.resize(std::min<std::size_t>(configs.size(), 3));
  for (const Config& one : small_configs(GetParam(), input)) {  // copies by slots
    if (one.main_loop() == MainLoop::khr_direct) configs.push_back(one);
  }
  for (std::size_t i = 0; i < configs.size(); ++i) {
    for (const GroupAlong along : {GroupAlong::m, GroupAlong::k}) {
      const bool rows = along == GroupAlong::m;
      Problem problem = gemm(rows ? Shape{41, 24, 40} : Shape{24, 40, 41}, input);
      problem.grouping = {.groups = 3, .offsets = OffsetType::int64, .along = along};
      if (rows) problem.grouping->b = GroupedB::per_group;
      problem.a.layout = i % 2 == 0 ? Layout::row_major : Layout::col_major;
      problem.b.layout = i / 2 == 0 ? Layout::row_major : Layout::col_major;
      add_epilogue(problem, 2 * i);
      if (rows) problem.c.layout = problem.d.layout = problem.aux.layout = Layout::row_major;
      if (GetParam() == Path::nv) problem.d.type = problem.aux.type = DataType::f32;
      problem.epilogue.bias_batch_stride = 48;
      configs[i].schedule = i % 2 == 0 ? Schedule::simple : Schedule::persistent;
      for (const Groups& groups : cases) {
        expect_inside(configs[i], with_padding(problem, 8, true), groups.offsets, groups.certain);
      }
    }
  }
}

}  // namespace vkgemm::test

#endif
