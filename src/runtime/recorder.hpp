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

#include "kernels/dispatch_plan.hpp"
#include "problem/addresses.hpp"
#include "runtime/context_impl.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// Commands of one recording. Commands of dispatches that are not in the range are left out.
class Recorder {
 public:
  // `carry`: the pipeline that brings parameters to memory, if a step has them there.
  Recorder(const Context::Impl& context, VkCommandBuffer commands, DispatchRange range,
           VkPipeline carry = VK_NULL_HANDLE)
      : vk_(context.functions),
        layout_(context.pipelines.layout()),
        commands_(commands),
        range_(range),
        carry_(carry) {}

  // Dispatches so far, whether or not in the range.
  std::uint32_t count() const noexcept { return count_; }

  // `params`: a parameter block. `in_memory`: where the pipeline reads it; 0: in push constants.
  template <class Block>
  void dispatch(VkPipeline pipeline, const std::vector<Dispatch>& dispatches, Block params,
                std::uint64_t in_memory = 0) {
    bool bound = false;
    for (const Dispatch& dispatch : dispatches) {
      const bool waits = std::exchange(waits_, false);
      const bool host_reads = std::exchange(host_reads_, false);
      const std::uint32_t number = count_++;
      if (number < range_.first || number - range_.first >= range_.count) continue;
      // An earlier dispatch may still read what stood in memory.
      const bool carries = in_memory != 0 && !bound;
      if (waits || carries) record_barrier(host_reads);
      if (carries) carry(words_of(params), in_memory);
      if (!bound) vk_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
      bound = true;
      if (in_memory != 0) {
        push(words_of(gpu::InMemoryParams{.first_tile = dispatch.first_tile,
                                          .first_batch = dispatch.first_batch,
                                          .parameters = in_memory}));
      } else {
        head_of(params).first_tile = dispatch.first_tile;
        head_of(params).first_batch = dispatch.first_batch;
        push(words_of(params));
      }
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
  template <class Block>
  using WordsOf = std::array<std::uint32_t, sizeof(Block) / sizeof(std::uint32_t)>;
  template <class Block>
  static WordsOf<Block> words_of(const Block& params) {
    return std::bit_cast<WordsOf<Block>>(params);
  }

  // Brings a block to memory, for what is recorded behind.
  void carry(std::span<const std::uint32_t> words, std::uint64_t to) {
    vk_.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, carry_);
    for (std::size_t first = 0; first < words.size(); first += CARRY_WORDS) {
      const auto part =
          words.subspan(first, std::min<std::size_t>(CARRY_WORDS, words.size() - first));
      gpu::CarryParams params{};
      params.parameters = to + first * sizeof(std::uint32_t);
      params.count = static_cast<std::uint32_t>(part.size());
      std::ranges::copy(part, params.words);
      push(words_of(params));
      vk_.vkCmdDispatch(commands_, 1, 1, 1);
    }
    record_barrier(false);
  }

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
  VkPipeline carry_;
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
    recorder.dispatch(pipeline, part.is_smaller ? step.last_dispatches : step.dispatches, params,
                      step.in_memory ? at.parameters : 0);
  };
  std::visit(record_block, step.params);
}

}  // namespace vkgemm
