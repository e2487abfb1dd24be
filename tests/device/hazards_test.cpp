// Hazards between what is recorded: those that a caller makes are found, record() makes none, and
// each of its barriers is one without which there would be some.
#include <algorithm>
#include <functional>

#include "command_watch.hpp"
#include "device/vk.hpp"
#include "harness.hpp"
#include "hazards.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using headless::Buffer;
using Lines = std::vector<std::string>;

// That the list has one line, with all of these in it.
testing::AssertionResult is_one(const Lines& found, std::initializer_list<std::string_view> parts) {
  if (found.size() != 1) {
    testing::AssertionResult result = testing::AssertionFailure();
    result << found.size() << " hazards";
    for (const std::string& line : found) result << "\n  " << line;
    return result;
  }
  for (const std::string_view part : parts) {
    if (found[0].find(part) == std::string::npos) {
      return testing::AssertionFailure() << "'" << found[0] << "' does not say '" << part << "'";
    }
  }
  return testing::AssertionSuccess();
}

// --- a caller's mistakes

// Square matrices of 16 by 16, in one buffer.
class HazardsOfCallers : public testing::Test {
 protected:
  static constexpr std::uint64_t size = 16;
  static constexpr std::uint64_t matrix_bytes = size * size * sizeof(float);

  void SetUp() override {
    VKGEMM_SKIP_IF(why_skip(Path::fma, DataType::f32));
    auto made = runner().allocate(16 * matrix_bytes);
    ASSERT_TRUE(succeeds(made));
    memory_ = std::move(*made);
  }

  static Problem problem() { return gemm({size, size, size}, DataType::f32); }
  static Plan plan(const Problem& problem, const std::function<void(Config&)>& change = {}) {
    Config config = small_configs(Path::fma, DataType::f32).front();
    if (change) change(config);
    return context().plan(problem, config).value();
  }
  DeviceSpan matrix(std::uint64_t number, std::uint64_t count = 1) const {
    return memory_.span(number * matrix_bytes, count * matrix_bytes);
  }
  Operands operands(std::uint64_t a, std::uint64_t b, std::uint64_t d) const {
    return {.a = matrix(a), .b = matrix(b), .d = matrix(d), .workspace = matrix(8, 8)};
  }
  // What is found between these commands.
  static Lines found_between(const headless::Runner::Commands& commands,
                             headless::Runner& runner = test::runner()) {
    const ExpectedHazards hazards;
    EXPECT_TRUE(succeeds(runner.submit(commands)));
    return hazards.found();
  }
  // Two recordings, with this between them.
  static Lines found_between(
      const Plan& plan, const Operands& first, const Operands& second,
      const std::function<void(VkCommandBuffer)>& between = [](VkCommandBuffer) {}) {
    return found_between([&](VkCommandBuffer commands) -> Result<void> {
      if (auto recorded = plan.record(commands, first); !recorded) return recorded;
      between(commands);
      return plan.record(commands, second);
    });
  }

  Buffer memory_;
};

TEST_F(HazardsOfCallers, TheSecondReadsDOfTheFirst) {
  const Plan product = plan(problem());
  ASSERT_EQ(product.workspace_bytes(), 0u);
  EXPECT_TRUE(is_one(found_between(product, operands(0, 1, 2), operands(2, 1, 3)),
                     {"command 2 (gemm_fma_f32) reads a", "command 1 (gemm_fma_f32) writes as d"}));
  EXPECT_TRUE(found_between(product, operands(0, 1, 2), operands(2, 1, 3), record_barrier).empty());
  EXPECT_TRUE(found_between(product, operands(0, 1, 2), operands(0, 1, 3)).empty());
}

TEST_F(HazardsOfCallers, BothWriteOneD) {
  const Plan product = plan(problem());
  EXPECT_TRUE(is_one(found_between(product, operands(0, 1, 2), operands(0, 1, 2)),
                     {"writes d", "writes as d", "no barrier makes it wait"}));
  EXPECT_TRUE(found_between(product, operands(0, 1, 2), operands(0, 1, 2), record_barrier).empty());
}

TEST_F(HazardsOfCallers, TheSecondOverwritesWhatTheFirstReads) {
  const Plan product = plan(problem());
  EXPECT_TRUE(is_one(found_between(product, operands(0, 1, 2), operands(2 + 1, 1, 0)),
                     {"writes d", "reads as a"}));
}

// The barrier that a workspace brings with it keeps all else apart, too.
TEST_F(HazardsOfCallers, OneWorkspaceMayServeTwoRecordings) {
  for (const ReductionMode mode : {ReductionMode::two_dispatches, ReductionMode::last_arriver}) {
    const Plan product = plan(problem(), [&](Config& config) {
      config.slices = 2;
      config.reduction_mode = mode;
    });
    ASSERT_GT(product.workspace_bytes(), 0u);
    EXPECT_TRUE(found_between(product, operands(0, 1, 2), operands(0, 1, 3)).empty());
    EXPECT_TRUE(found_between(product, operands(0, 1, 2), operands(2, 1, 3)).empty());
  }
}

// Columns of one larger matrix.
TEST_F(HazardsOfCallers, DsSideBySideAreNone) {
  Problem narrow = gemm({size, size / 2, size}, DataType::f32);
  narrow.d.ld = size;
  const Plan product = plan(narrow);
  Operands left = operands(0, 1, 2), right = left;
  right.d.address += size / 2 * sizeof(float);
  right.d.bytes -= size / 2 * sizeof(float);
  EXPECT_TRUE(found_between(product, left, right).empty());
  // The problem promises 16 bytes.
  right.d.address -= 16;
  EXPECT_TRUE(is_one(found_between(product, left, right), {"writes d", "writes as d"}));
}

// A grouped plan that packs nothing records no barrier; its word for bad offsets may be shared.
TEST_F(HazardsOfCallers, GroupsNeedTheCallersBarrier) {
  Problem groups = problem();
  groups.grouping = Grouping{.groups = 2, .b = GroupedB::shared};
  const Plan product = plan(groups);
  ASSERT_TRUE(succeeds(runner().fill(memory_, 0)));
  Operands first = operands(0, 1, 2), second = operands(0, 1, 3);
  first.offsets = second.offsets = matrix(4);
  ASSERT_EQ(product.workspace_bytes(), 4u);
  EXPECT_TRUE(found_between(product, first, second).empty());
  second.a = first.d;
  EXPECT_TRUE(is_one(found_between(product, first, second), {"reads a", "writes as d"}));
  EXPECT_TRUE(found_between(product, first, second, record_barrier).empty());
  second = first;
  second.b = first.offsets;
  second.d = first.offsets;
  second.offsets = matrix(5);
  second.b = matrix(1);
  EXPECT_TRUE(is_one(found_between(product, first, second), {"writes d", "reads as offsets"}));
}

TEST_F(HazardsOfCallers, CopiesAndFills) {
  const Plan product = plan(problem());
  const auto fill = [&](VkCommandBuffer commands, std::uint64_t number) {
    vkCmdFillBuffer(commands, memory_.handle(), number * matrix_bytes, matrix_bytes, 0);
  };
  EXPECT_TRUE(is_one(found_between([&](VkCommandBuffer commands) {
                       fill(commands, 0);
                       return product.record(commands, operands(0, 1, 2));
                     }),
                     {"(gemm_fma_f32) reads a", "(fill) writes as buffer"}));
  EXPECT_TRUE(is_one(found_between([&](VkCommandBuffer commands) {
                       const auto recorded = product.record(commands, operands(0, 1, 2));
                       const VkBufferCopy copy{2 * matrix_bytes, 3 * matrix_bytes, matrix_bytes};
                       vkCmdCopyBuffer(commands, memory_.handle(), memory_.handle(), 1, &copy);
                       return recorded;
                     }),
                     {"(copy) reads source", "(gemm_fma_f32) writes as d"}));
  EXPECT_TRUE(found_between([&](VkCommandBuffer commands) {
                fill(commands, 3);
                return product.record(commands, operands(0, 1, 2));
              }).empty());
}

// Each instance loads Vulkan's functions anew.
TEST_F(HazardsOfCallers, AreSeenBesideAnotherDevice) {
  const Plan product = plan(problem());
  const auto both = [&](const Plan& which, headless::Runner& device, const DeviceSpan& d) {
    Operands own{.a = d, .b = d, .d = d};
    own.a.address += matrix_bytes;
    own.b.address += matrix_bytes;
    return found_between(
        [&](VkCommandBuffer commands) -> Result<void> {
          if (auto recorded = which.record(commands, own); !recorded) return recorded;
          return which.record(commands, own);
        },
        device);
  };
  const auto other = another_runner();
  auto buffer = other->allocate(4 * matrix_bytes);
  ASSERT_TRUE(succeeds(buffer));
  const auto others = other->context().plan(problem(), product.config());
  ASSERT_TRUE(succeeds(others));
  EXPECT_EQ(both(*others, *other, buffer->span(0, matrix_bytes)).size(), 1u);
  EXPECT_EQ(both(product, runner(), matrix(0)).size(), 1u);
}

// Commands that pass unseen would be taken for none. Those of queries access no buffer.
TEST(HazardsOfRecord, EveryCommandOfTheLibraryIsSeen) {
#define VKGEMM_NAME(function) std::string_view(#function),
  constexpr std::string_view functions[] = {VKGEMM_DEVICE_FUNCTIONS(VKGEMM_NAME)};
#undef VKGEMM_NAME
  for (const std::string_view function : functions) {
    if (!function.starts_with("vkCmd") && !function.starts_with("vkQueue")) continue;
    if (function == "vkCmdResetQueryPool" || function == "vkCmdWriteTimestamp") continue;
    EXPECT_TRUE(is_watched(function)) << function;
  }
  EXPECT_FALSE(is_watched("vkCmdDispatchIndirect"));
}

// --- record()'s own barriers

// A plan that records some.
struct Kind {
  std::string name;
  Problem problem;
  Config config;
  std::size_t barriers;  // of one recording
};

std::vector<Kind> kinds() {
  const DataType f16 = DataType::f16;
  const Config tiles = parse_config("fma:tile=16x32x8,fragment=4x4,swizzle=1,peel=0").value();
  const Config gate = parse_config("fma:tile=16x16x8,fragment=4x8,swizzle=2,peel=0").value();
  const auto with_rows = [](Config config, RowStrategy strategy) {
    config.rows = strategy;
    if (strategy == RowStrategy::panel) config.spin_limit = patient_spin_limit();
    return config;
  };
  const auto packing = [](Config config, bool a, bool b) {
    config.pack_a = a;
    config.pack_b = b;
    return config;
  };
  const Problem plain = gemm({40, 50, 64}, f16);
  const auto reduced = [&](RowOp op, DataType output) {
    Problem problem = gemm({40, 50, 24}, f16, output);
    problem.row_reduction = RowReduction{.op = op};
    return problem;
  };
  Problem gated = plain, parts = reduced(RowOp::layer_norm, f16);
  gated.gated = Gated{};
  parts.max_workspace_bytes = std::uint64_t{16} * 52 * sizeof(float);
  const auto two = ReductionMode::two_dispatches, last = ReductionMode::last_arriver,
             barrier = ReductionMode::device_barrier;
  const RowStrategy two_pass = RowStrategy::two_pass;
  std::vector<Kind> all{
      {"slices in two dispatches", plain, sliced(tiles, 3, two), 2},
      {"slices by the last arriver", plain, sliced(tiles, 3, last), 2},
      {"slices behind a barrier", plain, sliced(tiles, 3, barrier), 3},
      {"packed a", plain, packing(tiles, true, false), 2},
      {"packed a and b, slices", plain, packing(sliced(tiles, 3, two), true, true), 3},
      {"rows, values in D", reduced(RowOp::softmax, DataType::f32), with_rows(tiles, two_pass), 1},
      {"rows, values in the workspace", reduced(RowOp::max, f16), with_rows(tiles, two_pass), 2},
      {"rows in three parts", parts, with_rows(tiles, two_pass), 1 + 3 + 2},
      {"rows after slices", reduced(RowOp::softmax, f16),
       with_rows(sliced(tiles, 3, two), two_pass), 3},
      {"rows after slices behind a barrier", reduced(RowOp::softmax, f16),
       with_rows(sliced(tiles, 3, barrier), two_pass), 4},
      {"rows in panels", reduced(RowOp::rms_norm, f16), with_rows(tiles, RowStrategy::panel), 3},
      {"numbers of rows in panels", reduced(RowOp::max, f16), with_rows(tiles, RowStrategy::panel),
       2},
      {"rows computed twice", reduced(RowOp::softmax, f16),
       with_rows(tiles, RowStrategy::recompute), 2},
      {"gated slices", gated, sliced(gate, 3, two), 2},
      {"gated slices by the last arriver", gated, sliced(gate, 3, last), 2},
      {"gated, packed a", gated, packing(gate, true, false), 2},
  };
  Problem groups = plain;
  groups.grouping = Grouping{.groups = 2};
  for (const Config& config : small_configs(Path::khr, f16)) {
    if (config.main_loop() != MainLoop::khr_direct) continue;
    all.push_back({"groups, packed a and b", groups, config, 2});
    break;
  }
  return all;
}

// Memory for all that a plan may want, but the workspace.
class OperandMemory {
 public:
  OperandMemory(const Plan& plan, const DeviceSpan& workspace) {
    const PerOperand<std::uint64_t> bytes = operand_bytes(plan.problem());
    operands_.workspace = workspace;
    for (const OperandRow& row : operand_rows()) {
      if (bytes[row.id] != 0) operands_.*row.span = add(bytes[row.id]);
    }
  }
  const Operands& operands() const { return operands_; }

 private:
  DeviceSpan add(std::uint64_t bytes) {
    auto made = runner().allocate(bytes);
    EXPECT_TRUE(succeeds(made));
    EXPECT_TRUE(succeeds(runner().fill(*made, 0)));
    buffers_.push_back(std::move(*made));
    return buffers_.back().span();
  }

  std::vector<Buffer> buffers_;
  Operands operands_;
};

// What a plan leaves in a command buffer, behind another one whose last dispatch reads the whole
// of the same workspace.
struct Recorded {
  std::vector<Event> events;
  std::size_t first = 0;  // of the plan's own
};
Recorded recorded(const Plan& plan) {
  Config config = kinds().front().config;
  config.slices = 8;
  const Plan before = context().plan(kinds().front().problem, config).value();
  auto workspace = runner().allocate(before.workspace_bytes());
  EXPECT_TRUE(succeeds(workspace));
  EXPECT_LE(plan.workspace_bytes(), before.workspace_bytes());
  const OperandMemory others(before, workspace->span()), own(plan, workspace->span());
  Recorded out;
  EXPECT_TRUE(succeeds(runner().submit([&](VkCommandBuffer commands) -> Result<void> {
    if (auto done = before.record(commands, others.operands()); !done) return done;
    out.first = recorded_events(commands).size();
    auto done = plan.record(commands, own.operands());
    out.events = recorded_events(commands);
    return done;
  })));
  return out;
}

TEST(HazardsOfRecord, EachBarrierIsNeeded) {
  VKGEMM_SKIP_IF(why_skip(Path::fma));
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const auto plan = context().plan(kind.problem, kind.config);
    if (!plan && !caps().device_barrier.available) continue;
    ASSERT_TRUE(succeeds(plan));
    const auto [events, first] = recorded(*plan);
    EXPECT_EQ(find_hazards(events), Lines{});
    std::size_t barriers = 0;
    for (std::size_t i = first; i < events.size(); ++i) {
      if (!std::holds_alternative<Barrier>(events[i])) continue;
      ++barriers;
      std::vector<Event> without = events;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_NE(find_hazards(without), Lines{}) << "barrier " << barriers;
    }
    EXPECT_EQ(barriers, kind.barriers);
  }
}

// Those who count barriers that were given up tell the host.
TEST(HazardsOfRecord, AbortsAreMadeVisibleToTheHost) {
  VKGEMM_SKIP_IF(why_skip(Path::fma));
  if (!caps().device_barrier.available) GTEST_SKIP() << caps().device_barrier.reason;
  std::size_t kinds_that_count = 0;
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const auto plan = context().plan(kind.problem, kind.config);
    ASSERT_TRUE(succeeds(plan));
    std::vector<Event> events = recorded(*plan).events;
    events.emplace_back(HostWait{});
    EXPECT_EQ(find_hazards(events), Lines{});
    // The runner has begun with one for all.
    events.erase(events.begin());
    bool counts = false;
    for (Event& event : events) {
      auto* const barrier = std::get_if<Barrier>(&event);
      if (barrier == nullptr || (barrier->dst_stages & VK_PIPELINE_STAGE_HOST_BIT) == 0) continue;
      barrier->dst_stages &= ~VkPipelineStageFlags{VK_PIPELINE_STAGE_HOST_BIT};
      counts = true;
    }
    if (!counts) continue;
    ++kinds_that_count;
    EXPECT_TRUE(is_one(find_hazards(events), {"the host reads aborts"}));
  }
  EXPECT_EQ(kinds_that_count, 3u);
}

}  // namespace
}  // namespace vkgemm::test
