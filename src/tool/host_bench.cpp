#include "tool/host_bench.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "headless/allocation_count.hpp"
#include "oracle/heavy_epilogue.hpp"
#include "problem/operands.hpp"
#include "report/statistics.hpp"
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

HostTimes measure_host(headless::Runner& runner) {
  const Context& context = runner.context();
  const Problem problem = small_problem(64);
  HostTimes times;
  if (headless::allocation_count()) times.record_allocations = 0;
  times.cold_plan_us = time_plan(context, problem);
  times.other_plan_us = time_plan(context, small_problem(128));
  std::vector<double> warm;
  warm.reserve(kPlans);
  for (int i = 0; i < kPlans; ++i) warm.push_back(time_plan(context, problem));
  times.warm_plan_us = report::median(warm);

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
  for (int batch = 0; batch < kBatches; ++batch) {
    unwrap(runner.submit([&](VkCommandBuffer commands) -> Result<void> {
      const auto before = headless::allocation_count();
      const auto start = Clock::now();
      for (int i = 0; i < kRecordings; ++i) {
        if (auto recorded = plan.record(commands, operands); !recorded) return recorded;
      }
      const double elapsed = microseconds_since(start);
      if (before) *times.record_allocations += *headless::allocation_count() - *before;
      batches.push_back(elapsed / kRecordings);
      return {};
    }));
    times.recordings += kRecordings;
  }
  times.record_us = report::median(batches);
  times.record_max_us = *std::max_element(batches.begin(), batches.end());
  return times;
}

void print_host_times(const HostTimes& times) {
  std::printf("plan(), cold             %10.2f us\n", times.cold_plan_us);
  std::printf("plan(), same pipeline    %10.2f us\n", times.other_plan_us);
  std::printf("plan(), warm             %10.3f us (median)\n", times.warm_plan_us);
  std::printf("record()                 %10.3f us (median; slowest batch %.3f)\n", times.record_us,
              times.record_max_us);
  if (times.record_allocations) {
    std::printf("allocations in record()  %10llu in %llu recordings\n",
                static_cast<unsigned long long>(*times.record_allocations),
                static_cast<unsigned long long>(times.recordings));
  } else {
    std::printf("allocations in record()  not counted (sanitizer)\n");
  }
}

}  // namespace vkgemm::tool
