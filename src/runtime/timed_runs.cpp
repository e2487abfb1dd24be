#include "runtime/timed_runs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "base/text.hpp"
#include "device/caps.hpp"
#include "problem/convert.hpp"
#include "problem/data_type.hpp"
#include "problem/row_index.hpp"
#include "runtime/plan_impl.hpp"
#include "runtime/plan_internal.hpp"

namespace vkgemm {
namespace {

constexpr std::uint32_t most_timings = 64;    // of one submission
constexpr std::uint64_t timeout_ms = 60'000;  // a driver may compile before the first execution

// The period of the random values in bytes. It is no power of two, so that rows differ.
constexpr std::uint64_t pattern_bytes = 1'000'000;
constexpr std::uint64_t sample_bytes = 4096;
constexpr std::uint64_t samples_of_operand = 3;
constexpr std::uint64_t span_unit = 16;  // whole elements of every type

void record_full_barrier(const DeviceFunctions& vk, VkCommandBuffer commands) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  constexpr VkPipelineStageFlags all =
      VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  vk.vkCmdPipelineBarrier(commands, all, all, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// Bytes of a buffer before the aligned address that an operand has in it.
std::uint64_t front_of(const Buffer& buffer) {
  return aligned_span(buffer.address()) - buffer.address();
}

// The offsets of groups, of equal size if none are given.
std::vector<std::int64_t> offsets_of(const Problem& problem,
                                     std::span<const std::uint64_t> offsets) {
  if (!problem.grouping) return {};
  const auto& groups = *problem.grouping;
  const std::uint64_t capacity = groups.along == GroupAlong::m ? problem.m : problem.k;
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i <= groups.groups; ++i) {
    const std::uint64_t at =
        offsets.empty() ? capacity * i / std::max(groups.groups, 1U) : offsets[i];
    out.push_back(static_cast<std::int64_t>(at));
  }
  return out;
}

void write_random(std::byte* to, DataType type) {
  std::minstd_rand random(1);
  const bool whole = is_integer(type);
  const DataTypeRow& row = row_of(type);
  const double middle = whole ? (row.largest + row.least + 1.0) / 2.0 : 0.0;
  for (std::uint64_t i = 0; i < pattern_bytes / size_in_bytes(type); ++i) {
    const double value = 2.0 * static_cast<double>(random()) / std::minstd_rand::max() - 1.0;
    store_element(to, type, i, whole ? std::round(middle + 100.0 * value) : value);
  }
}

}  // namespace

MaybeError check_offsets(const Problem& problem, std::span<const std::uint64_t> offsets) {
  if (offsets.empty()) return {};
  if (!problem.grouping) {
    return invalid_argument(concat("offsets has ", offsets.size(), " values, grouping is not set"));
  }
  const auto& grouping = *problem.grouping;
  if (offsets.size() != std::size_t{grouping.groups} + 1) {
    return invalid_argument(concat("offsets has ", offsets.size(), " values, grouping.groups is ",
                                   grouping.groups, ": groups + 1 are needed"));
  }
  if (grouping.bounds == GroupBounds::sizes && offsets[0] != 0) {
    return invalid_argument(
        concat("offsets[0] is ", offsets[0], " and grouping.bounds is sizes: groups begin at 0"));
  }
  const bool along_m = grouping.along == GroupAlong::m;
  const std::uint64_t capacity = along_m ? problem.m : problem.k;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] > capacity) {
      return invalid_argument(
          concat("offsets[", i, "] is ", offsets[i], ", ", along_m ? 'm' : 'k', " is ", capacity));
    }
    if (i != 0 && offsets[i] < offsets[i - 1]) {
      return invalid_argument(concat("offsets[", i, "] is ", offsets[i], ", offsets[", i - 1,
                                     "] is ", offsets[i - 1], ": offsets must not decrease"));
    }
  }
  return {};
}

TimedRuns::TimedRuns(const DeviceFunctions& functions, const SubmitInfo& device,
                     const LentQueue& queue)
    : vk_(functions), device_(device), queue_(queue) {}

TimedRuns::~TimedRuns() {
  if (!in_flight_) {
    if (queries_ != VK_NULL_HANDLE) vk_.vkDestroyQueryPool(queue_.device, queries_, nullptr);
    return;
  }
  for (const Own& own : own_) own.buffer->abandon();
  for (const auto& buffer : {&workspace_, &flush_, &staging_}) {
    if (*buffer) (*buffer)->abandon();
  }
}

Result<std::unique_ptr<Buffer>> TimedRuns::allocate(std::uint64_t bytes, Placement placement) {
  auto buffer = std::make_unique<Buffer>(vk_, queue_.device);
  auto allocated = buffer->allocate(device_.memory, bytes + span_alignment, placement);
  if (!allocated) return allocated.error();
  return buffer;
}

Result<void> TimedRuns::run(const std::function<Result<void>(VkCommandBuffer)>& record) {
  Submission submission(vk_, queue_);
  const Result<bool> done = submission.run(timeout_ms, record);
  in_flight_ = in_flight_ || submission.in_flight();
  if (!done) return done.error();
  if (*done) return {};
  return Error{Status::driver_error, concat("an execution did not end after ", timeout_ms, " ms")};
}

Result<void> TimedRuns::clear_results() {
  return run([&](VkCommandBuffer commands) -> Result<void> {
    for (const Own& own : own_) {
      if (!own.written) continue;
      const bool has_nan = !is_integer(own.type) || size_in_bytes(own.type) != 1;
      vk_.vkCmdFillBuffer(commands, own.buffer->handle(), 0, VK_WHOLE_SIZE,
                          has_nan ? UINT32_MAX : 0x80808080u);
    }
    return {};
  });
}

Result<void> TimedRuns::fill(const Own& operand) {
  write_random(staging_->mapped(), operand.type);
  std::vector<VkBufferCopy> copies;
  const std::uint64_t front = front_of(*operand.buffer);
  for (std::uint64_t at = 0; at < operand.bytes; at += pattern_bytes) {
    copies.push_back({0, front + at, std::min(pattern_bytes, operand.bytes - at)});
  }
  return run([&](VkCommandBuffer commands) -> Result<void> {
    vk_.vkCmdCopyBuffer(commands, staging_->handle(), operand.buffer->handle(),
                        static_cast<std::uint32_t>(copies.size()), copies.data());
    return {};
  });
}

Result<void> TimedRuns::prepare(const Plan& plan, std::span<const std::uint64_t> offsets,
                                bool flushes) {
  VkQueryPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = 2 * most_timings;
  const VkResult result = vk_.vkCreateQueryPool(queue_.device, &info, nullptr, &queries_);
  if (result != VK_SUCCESS) return driver_error("vkCreateQueryPool", result);
  auto staging = allocate(pattern_bytes, Placement::mapped);
  if (!staging) return staging.error();
  staging_ = *std::move(staging);
  if (flushes) {
    auto flush = allocate(flush_bytes(*InternalAccess::impl(plan).caps), Placement::device);
    if (!flush) return flush.error();
    flush_ = *std::move(flush);
  }
  operands_ = plan.operands();
  for (const OperandRow& row : operand_rows()) {
    DeviceSpan& span = operands_.*row.span;
    if (span.bytes == 0) continue;
    auto buffer = allocate(span.bytes, row.is_integer ? Placement::mapped : Placement::device);
    if (!buffer) return buffer.error();
    span.address = aligned_span((*buffer)->address());
    const bool written = row.is_written(plan.problem());
    own_.push_back(
        {written, row.shape(plan.problem()).matrix.type, span.bytes, *std::move(buffer)});
    Own& own = own_.back();
    if (row.is_integer) {
      const Problem& problem = plan.problem();
      const auto numbers = integers_of(row.id, problem, offsets_of(problem, offsets));
      std::memcpy(own.buffer->mapped() + front_of(*own.buffer), numbers.data(), numbers.size());
    } else if (!written) {
      if (auto filled = fill(own); !filled) return filled;
    }
  }
  const Fingerprints& fingerprints = InternalAccess::impl(plan).fingerprints;
  if (fingerprints.a) operands_.a_fingerprint = *fingerprints.a;
  if (fingerprints.b) operands_.b_fingerprint = operands_.b_right_fingerprint = *fingerprints.b;
  return {};
}

Result<std::vector<double>> TimedRuns::time(const Plan& plan, std::uint32_t count) {
  count = std::min(count, most_timings);
  if (plan.workspace_bytes() > workspace_bytes_) {
    workspace_.reset();
    workspace_bytes_ = 0;
    auto workspace = allocate(plan.workspace_bytes(), Placement::device);
    if (!workspace) return workspace.error();
    workspace_ = *std::move(workspace);
    workspace_bytes_ = plan.workspace_bytes();
  }
  operands_.workspace = {};
  if (workspace_) operands_.workspace = {aligned_span(workspace_->address()), workspace_bytes_};
  const auto execute = [&](VkCommandBuffer commands, std::optional<std::uint32_t> index) {
    record_full_barrier(vk_, commands);
    if (flush_) {
      vk_.vkCmdFillBuffer(commands, flush_->handle(), 0, VK_WHOLE_SIZE, 0);
      record_full_barrier(vk_, commands);
    }
    const auto stamp = [&](std::uint32_t query) {
      if (!index) return;
      vk_.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                              2 * *index + query);
    };
    stamp(0);
    auto recorded = plan.record(commands, operands_);
    stamp(1);
    return recorded;
  };
  auto done = run([&](VkCommandBuffer commands) -> Result<void> {
    vk_.vkCmdResetQueryPool(commands, queries_, 0, 2 * count);
    auto recorded = execute(commands, std::nullopt);
    for (std::uint32_t i = 0; i < count && recorded; ++i) recorded = execute(commands, i);
    return recorded;
  });
  if (!done) return done.error();
  std::array<std::uint64_t, 2 * most_timings> ticks{};
  const VkResult result =
      vk_.vkGetQueryPoolResults(queue_.device, queries_, 0, 2 * count, sizeof ticks, ticks.data(),
                                sizeof ticks[0], VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (result != VK_SUCCESS) return driver_error("vkGetQueryPoolResults", result);
  const std::uint32_t bits = device_.families[queue_.family].timestampValidBits;
  const std::uint64_t mask = bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
  std::vector<double> times;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t elapsed = (ticks[2 * i + 1] - ticks[2 * i]) & mask;
    times.push_back(static_cast<double>(elapsed) * device_.ns_per_tick / 1000.0);
  }
  return times;
}

Result<std::vector<std::vector<double>>> TimedRuns::samples() {
  struct Sample {
    const Own* own;
    VkBufferCopy copy;
  };
  std::vector<Sample> all;
  std::uint64_t used = 0;
  for (const Own& own : own_) {
    if (!own.written) continue;
    const std::uint64_t front = front_of(*own.buffer);
    const std::uint64_t bytes = std::min(own.bytes, sample_bytes);
    for (std::uint64_t i = 0; i < samples_of_operand; ++i) {
      const std::uint64_t at =
          (own.bytes - bytes) * i / (samples_of_operand - 1) / span_unit * span_unit;
      all.push_back({&own, {front + at, used, bytes}});
      used += sample_bytes;
    }
  }
  auto done = run([&](VkCommandBuffer commands) -> Result<void> {
    for (const Sample& sample : all) {
      vk_.vkCmdCopyBuffer(commands, sample.own->buffer->handle(), staging_->handle(), 1,
                          &sample.copy);
    }
    record_full_barrier(vk_, commands);
    return {};
  });
  if (!done) return done.error();
  std::vector<std::vector<double>> values;
  const Own* last = nullptr;
  for (const Sample& sample : all) {
    if (std::exchange(last, sample.own) != sample.own) values.emplace_back();
    for (std::uint64_t i = 0; i < sample.copy.size / size_in_bytes(sample.own->type); ++i) {
      values.back().push_back(
          load_element(staging_->mapped() + sample.copy.dstOffset, sample.own->type, i));
    }
  }
  return values;
}

}  // namespace vkgemm
