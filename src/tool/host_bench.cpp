#include "tool/host_bench.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/statistics.hpp"
#include "headless/allocation_count.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "problem/operands.hpp"
#include "tool/packing.hpp"
#include "tool/planning.hpp"
#include "tool/tool.hpp"

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
  return {.m = m, .n = 64, .k = 64, .epilogue = oracle::heavy_epilogue()};
}

double time_plan(const Context& context, const Problem& problem) {
  const auto start = Clock::now();
  unwrap(context.plan(problem));
  return microseconds_since(start);
}

}  // namespace

void bench_host(headless::Runner& runner) {
  const Context& context = runner.context();
  const Problem problem = small_problem(64);
  std::printf("plan(), cold             %10.2f us\n", time_plan(context, problem));
  std::printf("plan(), same pipeline    %10.2f us\n", time_plan(context, small_problem(128)));
  std::vector<double> warm;
  warm.reserve(kPlans);
  for (int i = 0; i < kPlans; ++i) warm.push_back(time_plan(context, problem));
  std::printf("plan(), warm             %10.3f us (median)\n", median(warm));

  const Plan plan = unwrap(context.plan(problem));
  const PerOperand<std::uint64_t> bytes = operand_bytes(problem);
  DeviceOperands device;
  for (const OperandRow& row : operand_rows()) {
    device.plain[row.id] = unwrap(runner.allocate(bytes[row.id]));
    unwrap(runner.fill(device.plain[row.id], 0));
  }
  device.workspace = unwrap(runner.allocate(plan.workspace_bytes()));
  const Operands operands = device.operands();
  std::vector<double> batches;
  std::uint64_t allocations = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    unwrap(runner.submit([&](VkCommandBuffer commands) -> Result<void> {
      const auto before = headless::allocation_count();
      const auto start = Clock::now();
      for (int i = 0; i < kRecordings; ++i) {
        if (auto recorded = plan.record(commands, operands); !recorded) return recorded;
      }
      const double elapsed = microseconds_since(start);
      if (before) allocations += *headless::allocation_count() - *before;
      batches.push_back(elapsed / kRecordings);
      return {};
    }));
  }
  std::printf("record()                 %10.3f us (median; slowest batch %.3f)\n", median(batches),
              *std::max_element(batches.begin(), batches.end()));
  if (headless::allocation_count()) {
    std::printf("allocations in record()  %10llu in %d recordings\n",
                static_cast<unsigned long long>(allocations), kBatches * kRecordings);
  } else {
    std::printf("allocations in record()  not counted (sanitizer)\n");
  }
}

}  // namespace vkgemm::tool
