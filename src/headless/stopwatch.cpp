#include "headless/stopwatch.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/statistics.hpp"
#include "device/vk.hpp"
#include "headless/instance.hpp"

namespace vkgemm::headless {
namespace {

constexpr std::uint32_t kMaxBatch = 64;  // timed executions in one submission …
constexpr double kMaxBatchMs = 100.0;    // … which must not look like a hang to the driver

// A GPU that waited for longer is slower for longer (an H200 after seconds at a third of its clock,
// driver 580.159.04): it warms up until executions take as long as those before.
constexpr int kMoreWarmUps = 20;
constexpr double kAsWarmAsItGets = 0.97;

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

void record_full_barrier(VkCommandBuffer commands) {
  auto barrier = make_struct<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  const VkPipelineStageFlags stages =
      VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  vkCmdPipelineBarrier(commands, stages, stages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

Stopwatch::Stopwatch(VkDevice device, std::uint32_t timestamp_bits, double ns_per_tick)
    : device_(device),
      mask_(timestamp_bits >= 64 ? UINT64_MAX : (1ULL << timestamp_bits) - 1),
      ns_per_tick_(ns_per_tick) {}

Stopwatch::~Stopwatch() { vkDestroyQueryPool(device_, queries_, nullptr); }

Result<std::unique_ptr<Stopwatch>> Stopwatch::create(VkDevice device, std::uint32_t timestamp_bits,
                                                     double ns_per_tick) {
  std::unique_ptr<Stopwatch> stopwatch(new Stopwatch(device, timestamp_bits, ns_per_tick));
  auto info = make_struct<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 2 * kMaxBatch;
  const VkResult result = vkCreateQueryPool(device, &info, nullptr, &stopwatch->queries_);
  if (result != VK_SUCCESS) return driver_error("vkCreateQueryPool", result);
  return stopwatch;
}

Result<void> Stopwatch::run_batch(const Submit& submit, const Commands& commands,
                                  const Commands& before, std::uint32_t count,
                                  std::vector<double>& times) {
  auto submitted = submit([&](VkCommandBuffer buffer) -> Result<void> {
    vkCmdResetQueryPool(buffer, queries_, 0, 2 * count);
    for (std::uint32_t i = 0; i < count; ++i) {
      record_full_barrier(buffer);
      if (before) {
        if (auto recorded = before(buffer); !recorded) return recorded;
        record_full_barrier(buffer);
      }
      // At the bottom of the pipe: when everything before it has finished.
      vkCmdWriteTimestamp(buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 2 * i);
      if (auto recorded = commands(buffer); !recorded) return recorded;
      vkCmdWriteTimestamp(buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 2 * i + 1);
    }
    return {};
  });
  if (!submitted) return submitted;
  std::array<std::uint64_t, 2 * kMaxBatch> ticks{};
  const VkResult result =
      vkGetQueryPoolResults(device_, queries_, 0, 2 * count, sizeof ticks, ticks.data(),
                            sizeof ticks[0], VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (result != VK_SUCCESS) return driver_error("vkGetQueryPoolResults", result);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t elapsed = (ticks[2 * i + 1] - ticks[2 * i]) & mask_;
    times.push_back(static_cast<double>(elapsed) * ns_per_tick_ * 1e-6);
  }
  return {};
}

Result<std::vector<double>> Stopwatch::time(const Submit& submit, const Commands& commands,
                                            std::uint32_t repeats, double warm_up_ms,
                                            const Commands& before) {
  std::vector<double> times;
  std::uint32_t batch = 1;
  const auto run_and_adapt = [&](std::uint32_t at_most) -> Result<void> {
    const std::uint32_t count = std::min(batch, at_most);
    const auto start = std::chrono::steady_clock::now();
    auto run = run_batch(submit, commands, before, count, times);
    const double each = milliseconds_since(start) / count;
    batch = static_cast<std::uint32_t>(
        std::clamp(kMaxBatchMs / std::max(each, 1e-3), 1.0, static_cast<double>(kMaxBatch)));
    return run;
  };
  // The median of executions for so long.
  const auto warm_up = [&](double ms) -> Result<double> {
    times.clear();
    const auto start = std::chrono::steady_clock::now();
    while (milliseconds_since(start) < ms) {
      if (auto run = run_and_adapt(kMaxBatch); !run) return run.error();
    }
    return times.empty() ? 0.0 : median(times);
  };
  Result<double> last = warm_up(warm_up_ms);
  for (int more = 0; last && *last > 0.0 && more < kMoreWarmUps; ++more) {
    const double before_ms = *last;
    last = warm_up(warm_up_ms / 3.0);
    if (last && *last > kAsWarmAsItGets * before_ms) break;
  }
  if (!last) return last.error();
  times.clear();
  while (times.size() < repeats) {
    const auto left = repeats - static_cast<std::uint32_t>(times.size());
    if (auto run = run_and_adapt(left); !run) return run.error();
  }
  return times;
}

}  // namespace vkgemm::headless
