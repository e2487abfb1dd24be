// Plans, self-tests and recordings from several threads at once; record() without a single
// allocation; the line that a plan logs.
#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "base/parallel.hpp"
#include "c/handles.hpp"
#include "command_watch.hpp"
#include "harness.hpp"
#include "headless/allocation_count.hpp"
#include "self_tests.hpp"
#include "trial.hpp"

namespace vkgemm::test {
namespace {

using headless::Buffer;

// A command buffer of a thread's own.
class Recording {
 public:
  Recording() {
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    EXPECT_EQ(vkCreateCommandPool(runner().device(), &pool, nullptr, &pool_), VK_SUCCESS);
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
    info.commandBufferCount = 1;
    EXPECT_EQ(vkAllocateCommandBuffers(runner().device(), &info, &commands_), VK_SUCCESS);
    VkCommandBufferInheritanceInfo inheritance{};
    inheritance.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO;
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin.pInheritanceInfo = &inheritance;
    EXPECT_EQ(vkBeginCommandBuffer(commands_, &begin), VK_SUCCESS);
  }
  ~Recording() { vkDestroyCommandPool(runner().device(), pool_, nullptr); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  VkCommandBuffer commands() const { return commands_; }
  void end() { EXPECT_EQ(vkEndCommandBuffer(commands_), VK_SUCCESS); }

 private:
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

constexpr std::uint64_t size = 16;
constexpr std::uint64_t matrix_bytes = size * size * sizeof(float);

// D = alpha * ones · ones: `size` times alpha everywhere.
Problem ones_problem(float alpha) {
  Problem problem = gemm({size, size, size}, DataType::f32);
  problem.epilogue.alpha = alpha;
  return problem;
}

// Four threads plan the same problem and one of their own, again and again, and each records both.
TEST(Concurrency, PlansAndRecordsFromFourThreads) {
  constexpr int threads = 4;
  constexpr int rounds = 20;
  // A context without pipelines, so that threads meet while they are built.
  const auto own_runner = another_runner();
  const Context& shared = own_runner->context();
  std::atomic<int> failures = 0;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (int round = 0; round < rounds; ++round) {
        const Problem common = gemm({64, 64, 64}, DataType::f16);
        Problem own = gemm({33, 34, 35}, DataType::f32);
        own.epilogue.activation = static_cast<Activation>(t);
        own.a.layout = round % 2 == 0 ? Layout::row_major : Layout::col_major;
        for (const Problem& problem : {common, own}) {
          const auto plan = shared.plan(problem);
          if (!plan || plan->explain().empty() || plan->command_line().empty()) ++failures;
          const auto candidates = shared.candidates(problem);
          if (!candidates || candidates->empty()) ++failures;
          if (plan && !shared.plan(problem, plan->config())) ++failures;
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(failures, 0);
}

// Threads that plan at the same time share a lent queue.
TEST_F(SelfTests, PlansOfSeveralThreadsTakeTurns) {
  auto made = create(lent());
  ASSERT_TRUE(succeeds(made));
  std::array<std::optional<Result<Plan>>, 4> plans;
  on_threads(plans.size(), [&](std::uint64_t i) {
    plans[i] = made->plan(gemm({64, 64, 64}, i % 2 == 0 ? DataType::f32 : DataType::s8));
  });
  for (const auto& plan : plans) EXPECT_TRUE(succeeds(*plan));
  EXPECT_EQ(made->verdicts().size(), 2u);
}

// One plan recorded by four threads into four command buffers; all of them compute.
TEST(Concurrency, OnePlanRecordedByFourThreads) {
  constexpr std::size_t threads = 4;
  const auto plan =
      context().plan(ones_problem(0.5f), small_configs(Path::fma, DataType::f32).front());
  ASSERT_TRUE(succeeds(plan));
  auto input = runner().allocate(matrix_bytes);
  auto output = runner().allocate(threads * matrix_bytes);
  ASSERT_TRUE(succeeds(input));
  ASSERT_TRUE(succeeds(output));
  ASSERT_TRUE(succeeds(runner().fill(*input, 0x3f800000)));  // 1.0f
  Recording recordings[threads];
  std::atomic<int> failures = 0;
  std::vector<std::thread> workers;
  for (std::size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const Plan copy = *plan;
      const Operands operands{.a = input->span(),
                              .b = input->span(),
                              .d = output->span(t * matrix_bytes, matrix_bytes)};
      for (int repeat = 0; repeat < 50; ++repeat) {
        // Refused ones in between leave no trace.
        Operands bad = operands;
        bad.d.bytes -= 1;
        if (copy.record(recordings[t].commands(), bad)) ++failures;
      }
      if (!copy.record(recordings[t].commands(), operands)) ++failures;
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(failures, 0);
  ASSERT_TRUE(succeeds(runner().submit([&](VkCommandBuffer commands) -> Result<void> {
    for (Recording& recording : recordings) {
      recording.end();
      const VkCommandBuffer secondary = recording.commands();
      vkCmdExecuteCommands(commands, 1, &secondary);
    }
    return {};
  })));
  std::vector<float> values(threads * size * size);
  ASSERT_TRUE(succeeds(runner().download(*output, 0, values.data(), threads * matrix_bytes)));
  for (const float value : values) ASSERT_EQ(value, 0.5f * size);
}

TEST(Allocations, RecordMakesNone) {
  if (!headless::allocation_count()) GTEST_SKIP() << "a sanitizer has taken operator new";
  const auto plan =
      context().plan(ones_problem(1.0f), small_configs(Path::fma, DataType::f32).front());
  ASSERT_TRUE(succeeds(plan));
  auto buffer = runner().allocate(3 * matrix_bytes);
  ASSERT_TRUE(succeeds(buffer));
  const Operands operands{.a = buffer->span(0, matrix_bytes),
                          .b = buffer->span(matrix_bytes, matrix_bytes),
                          .d = buffer->span(2 * matrix_bytes, matrix_bytes)};
  // The driver and the layers may allocate from C++ as well: what they do for the same three
  // commands without vkgemm is not counted against it.
  Recording recording;
  ASSERT_TRUE(succeeds(plan->record(recording.commands(), operands)));  // first-use allocations
  const VkgemmPlan c_plan{Plan(*plan)};
  const auto c_operands = c::ToC::structure<VkgemmOperands>(operands);
  const bool validation = std::getenv("VKGEMM_VALIDATION") != nullptr;
  const Unwatched unwatched;  // whoever looks on allocates, too
  const std::uint64_t before = *headless::allocation_count();
  for (int repeat = 0; repeat < 100; ++repeat) {
    if (!plan->record(recording.commands(), operands)) FAIL();
    ASSERT_EQ(vkgemm_plan_record(&c_plan, recording.commands(), &c_operands, nullptr, nullptr),
              VKGEMM_SUCCESS);
  }
  const std::uint64_t made = *headless::allocation_count() - before;
  recording.end();
  if (validation) GTEST_SKIP() << "the validation layers allocate: " << made << " times";
  EXPECT_EQ(made, 0u);
}

// One line per plan that plans the same thing again, and nothing without a callback.
TEST(Logging, OneLinePerPlan) {
  std::vector<std::string> lines;
  headless::RunnerOptions options;
  options.log = [&](LogLevel level, std::string_view message) {
    EXPECT_EQ(level, LogLevel::info);
    lines.emplace_back(message);
  };
  const auto other = another_runner(std::move(options));
  Problem problem = with_padding(gemm({9, 10, 11}, DataType::f16, DataType::bf16));
  problem.epilogue = {.alpha = 1.25f,
                      .beta = 0.5f,
                      .bias = Bias::along_m,
                      .activation = Activation::gelu_erf,
                      .aux = true,
                      .clamp_max = 6.0f};
  const auto plan = other->context().plan(problem);
  ASSERT_TRUE(succeeds(plan));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], plan->command_line());
  EXPECT_EQ(lines[0],
            "vkgemm run " + to_command_line(problem) + " --config " + to_string(plan->config()));
}

}  // namespace
}  // namespace vkgemm::test
