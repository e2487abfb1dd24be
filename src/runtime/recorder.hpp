// recorder.hpp: puts dispatches, push constants and barriers into a command buffer. Never
// allocates.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/addresses.hpp"
#include "kernels/dispatch_plan.hpp"
#include "runtime/context_impl.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// Commands of one recording. Commands of dispatches that are not in the range are left out.
class Recorder {
 public:
  Recorder(const Context::Impl& context, VkCommandBuffer commands, DispatchRange range)
      : vk_(context.functions),
        layout_(context.pipelines.layout()),
        commands_(commands),
        range_(range) {}

  // Dispatches so far, whether or not in the range.
  std::uint32_t count() const noexcept { return count_; }

  // `params`: a parameter block.
  template <class Block>
  void dispatch(VkPipeline pipeline, const std::vector<Dispatch>& dispatches, Block params) {
    bool bound = false;
    for (const Dispatch& dispatch : dispatches) {
      const bool waits = std::exchange(waits_, false);
      const bool host_reads = std::exchange(host_reads_, false);
      const std::uint32_t number = count_++;
      if (number < range_.first || number - range_.first >= range_.count) continue;
      if (waits) record_barrier(host_reads);
      if (!bound) vk_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
      bound = true;
      head_of(params).first_tile = dispatch.first_tile;
      head_of(params).first_batch = dispatch.first_batch;
      push(std::bit_cast<std::array<std::uint32_t, sizeof(Block) / sizeof(std::uint32_t)>>(params));
      vk_.vkCmdDispatch(commands_, dispatch.tiles, dispatch.batches, dispatch.slices);
    }
  }

  // The next dispatch, and all after it, begin when earlier ones have ended, and see what those
  // wrote; so does the host if it reads.
  void wait(bool host_reads = false) noexcept {
    waits_ = true;
    host_reads_ = host_reads_ || host_reads;
  }

 private:
  void record_barrier(bool host_reads) {
    const VkMemoryBarrier barrier{
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .pNext = nullptr,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                         (host_reads ? VkAccessFlags{VK_ACCESS_HOST_READ_BIT} : 0),
    };
    const VkPipelineStageFlags readers =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
        (host_reads ? VkPipelineStageFlags{VK_PIPELINE_STAGE_HOST_BIT} : 0);
    vk_.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, readers, 0, 1,
                             &barrier, 0, nullptr, 0, nullptr);
  }

  // Pushes the words that differ from those that stand there: of the chunks of a grid the first
  // two, of a product and of what adds its slices none.
  void push(std::span<const std::uint32_t> words) {
    const auto stands = [&](std::size_t i) { return i < pushed_count_ && words[i] == pushed_[i]; };
    std::size_t first = 0, end = words.size();
    while (first < end && stands(first)) ++first;
    while (first < end && stands(end - 1)) --end;
    if (first == end) return;
    const std::span<const std::uint32_t> changed = words.subspan(first, end - first);
    vk_.vkCmdPushConstants(commands_, layout_, VK_SHADER_STAGE_COMPUTE_BIT,
                           static_cast<std::uint32_t>(first * sizeof(std::uint32_t)),
                           static_cast<std::uint32_t>(changed.size_bytes()), changed.data());
    std::ranges::copy(changed, pushed_.begin() + static_cast<std::ptrdiff_t>(first));
    pushed_count_ = std::max(pushed_count_, end);
  }

  const DeviceFunctions& vk_;
  VkPipelineLayout layout_;
  VkCommandBuffer commands_;
  DispatchRange range_;
  std::array<std::uint32_t, gpu::most_parameter_bytes / sizeof(std::uint32_t)> pushed_{};
  std::size_t pushed_count_ = 0;
  std::uint32_t count_ = 0;
  bool waits_ = false;
  bool host_reads_ = false;
};

// The part of a problem that a step is recorded for (RowChunks), or all of it.
struct RowPart {
  std::uint64_t rows = 0;  // 0: all
  std::uint64_t first_row = 0;
  bool is_smaller = false;  // than the parts before
  bool is_last = true;
};

inline RowPart part_at(const RowChunks& chunks, std::uint64_t row, std::uint64_t batch) noexcept {
  const std::uint64_t rows = std::min(chunks.rows, chunks.all_rows - row);
  const std::uint64_t batches = std::min(chunks.batches, chunks.all_batches - batch);
  return {.rows = rows,
          .first_row = row,
          .is_smaller = rows < chunks.rows || batches < chunks.batches,
          .is_last = row + rows == chunks.all_rows && batch + batches == chunks.all_batches};
}

inline void record_step(Recorder& recorder, const Step& step, VkPipeline pipeline,
                        const Addresses& at, const RowPart& part = {}) {
  const auto record_block = [&](auto params) {
    bind(params, at);
    if (part.rows != 0) {
      const auto rows = static_cast<std::uint32_t>(part.rows);
      if constexpr (requires { head_of(params).m; }) head_of(params).m = rows;
      if constexpr (requires { params.copy_ld; }) {
        if (step.copied == &Addresses::a) params.width = rows;
      }
      if constexpr (requires { params.first_row; }) {
        params.first_row = static_cast<std::uint32_t>(part.first_row);
      }
    }
    recorder.dispatch(pipeline, part.is_smaller ? step.last_dispatches : step.dispatches, params);
  };
  std::visit(record_block, step.params);
}

}  // namespace vkgemm
