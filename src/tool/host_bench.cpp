#include "tool/host_bench.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>

#include "support/reference.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

namespace {

// Per thread: a driver's own threads may allocate what they like.
thread_local std::uint64_t allocations = 0;

void* allocate(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The tool's own operator new, to show that record() never calls it.
void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace vkgemm::tool {
namespace {

constexpr int kPlans = 2000;
constexpr int kBatches = 50;
constexpr int kRecordings = 200;  // each batch

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Problem small_problem(std::uint64_t m) {
  Problem problem{.m = m, .n = 64, .k = 64};
  problem.epilogue = {.alpha = 1.25f,
                      .beta = 0.5f,
                      .bias = Bias::along_n,
                      .activation = Activation::gelu_erf,
                      .aux = true};
  return problem;
}

double time_plan(const Context& context, const Problem& problem) {
  const auto start = Clock::now();
  unwrap(context.plan(problem));
  return microseconds_since(start);
}

}  // namespace

HostTimes measure_host(support::Runner& runner) {
  const Context& context = runner.context();
  const Problem problem = small_problem(64);
  HostTimes times;
  times.cold_plan_us = time_plan(context, problem);
  times.other_plan_us = time_plan(context, small_problem(128));
  std::vector<double> warm;
  warm.reserve(kPlans);
  for (int i = 0; i < kPlans; ++i) warm.push_back(time_plan(context, problem));
  times.warm_plan_us = median(warm);

  const Plan plan = unwrap(context.plan(problem));
  const support::OperandBytes bytes = support::operand_bytes(problem);
  const std::uint64_t sizes[] = {
      bytes.a, bytes.b, bytes.c, bytes.d, bytes.aux, bytes.bias, plan.workspace_bytes()};
  std::vector<support::Buffer> buffers;
  for (const std::uint64_t size : sizes) {
    buffers.push_back(unwrap(runner.allocate(size)));
    unwrap(runner.fill(buffers.back(), 0));
  }
  const Operands operands{.a = buffers[0].span(),
                          .b = buffers[1].span(),
                          .c = buffers[2].span(),
                          .d = buffers[3].span(),
                          .bias = buffers[5].span(),
                          .aux = buffers[4].span(),
                          .workspace = buffers[6].span()};
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    unwrap(runner.submit([&](VkCommandBuffer commands) -> Result<void> {
      const std::uint64_t before = allocations;
      const auto start = Clock::now();
      for (int i = 0; i < kRecordings; ++i) {
        if (auto recorded = plan.record(commands, operands); !recorded) return recorded;
      }
      const double elapsed = microseconds_since(start);
      times.record_allocations += allocations - before;
      batches.push_back(elapsed / kRecordings);
      return {};
    }));
    times.recordings += kRecordings;
  }
  times.record_us = median(batches);
  times.record_max_us = *std::max_element(batches.begin(), batches.end());
  return times;
}

}  // namespace vkgemm::tool
