#include "command_watch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "embedded/embedded.hpp"
#include "headless/instance.hpp"
#include "kernel_accesses.hpp"
#include "kernels/steps.hpp"

namespace vkgemm::test {
namespace {

// The functions that hooks:: stands in for.
#define VKGEMM_WATCHED_FUNCTIONS(X) \
  X(vkGetInstanceProcAddr);         \
  X(vkGetDeviceProcAddr);           \
  X(vkCreateComputePipelines);      \
  X(vkCreateBuffer);                \
  X(vkGetBufferDeviceAddress);      \
  X(vkGetDeviceQueue);              \
  X(vkBeginCommandBuffer);          \
  X(vkCmdBindPipeline);             \
  X(vkCmdPushConstants);            \
  X(vkCmdDispatch);                 \
  X(vkCmdPipelineBarrier);          \
  X(vkCmdCopyBuffer);               \
  X(vkCmdFillBuffer);               \
  X(vkCmdExecuteCommands);          \
  X(vkQueueSubmit);                 \
  X(vkWaitForFences);

// A pipeline, as its dispatches are to be understood.
struct Pipeline {
  std::string_view module;
  std::array<std::uint32_t, SPEC_COUNT> constants{};
};

struct BufferBytes {
  VkDeviceAddress address = 0;  // 0: nobody has asked for it
  VkDeviceSize size = 0;
};

struct Recording {
  std::vector<Event> events;
  VkPipeline bound = VK_NULL_HANDLE;
  ParameterWords pushed{};
  std::map<VkDeviceAddress, std::uint32_t> carried;  // words of parameters in memory
};

struct Place {
  VkQueue queue;
  std::uint64_t submissions;
};

struct Watch {
  std::function<void(const std::string&)> on_hazard;
  ModuleForm form;
  std::atomic<int> unwatched = 0;

  // The functions that were replaced.
#define VKGEMM_DECLARE(function) PFN_##function function = nullptr
  VKGEMM_WATCHED_FUNCTIONS(VKGEMM_DECLARE)
#undef VKGEMM_DECLARE

  std::mutex mutex;  // of all below
  std::map<VkPipeline, Pipeline> pipelines;
  std::map<VkBuffer, BufferBytes> buffers;
  std::map<VkCommandBuffer, Recording> recordings;
  std::map<VkQueue, HazardChecker> queues;
  std::map<VkFence, Place> fences;
};

Watch& watch() {
  static Watch the_watch;
  return the_watch;
}

// Reports without the lock, since whoever is told may look at Vulkan.
void report(const std::vector<std::string>& found) {
  for (const std::string& text : found) watch().on_hazard(text);
}

// The recording that a hook adds to; null as long as nobody looks.
class Locked {
 public:
  Locked() : lock_(watch().mutex) {}
  Recording* recording(VkCommandBuffer commands) {
    return watch().unwatched == 0 ? &watch().recordings[commands] : nullptr;
  }

 private:
  std::scoped_lock<std::mutex> lock_;
};

Region buffer_region(VkBuffer buffer, VkDeviceSize offset, VkDeviceSize bytes) {
  const BufferBytes& whole = watch().buffers[buffer];
  if (whole.address == 0) return {};
  return {.address = whole.address + offset,
          .bytes = bytes == VK_WHOLE_SIZE ? whole.size - offset : bytes};
}

template <class Block>
Block pushed_block(const Recording& recording) {
  Block block;
  std::memcpy(&block, recording.pushed.data(), sizeof block);
  return block;
}

// The words that a dispatch brings to memory.
void carry(Recording& recording) {
  const auto params = pushed_block<gpu::CarryParams>(recording);
  for (std::uint32_t i = 0; i < params.count; ++i) {
    recording.carried[params.parameters + i * sizeof(std::uint32_t)] = params.words[i];
  }
}

// The parameters of a kernel that reads them in memory.
ParameterWords carried_words(const Recording& recording) {
  const auto params = pushed_block<gpu::InMemoryParams>(recording);
  ParameterWords words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto word = recording.carried.find(params.parameters + i * sizeof(std::uint32_t));
    if (word != recording.carried.end()) words[i] = word->second;
  }
  words[0] = params.first_tile;
  words[1] = params.first_batch;
  return words;
}

// Nothing if its accesses are not known.
std::optional<Command> dispatch_of(Recording& recording, std::uint32_t x, std::uint32_t y) {
  const Pipeline& pipeline = watch().pipelines[recording.bound];
  if (pipeline.module == "carry") carry(recording);
  const bool in_memory = without_in_memory(pipeline.module) != pipeline.module;
  const ParameterWords words = in_memory ? carried_words(recording) : recording.pushed;
  auto accesses = kernel_accesses({.module = pipeline.module,
                                   .constants = pipeline.constants,
                                   .parameters = words,
                                   .x = x,
                                   .y = y});
  if (!accesses) return std::nullopt;
  if (in_memory) {
    const auto params = pushed_block<gpu::InMemoryParams>(recording);
    accesses->push_back({.what = "parameters",
                         .region = {.address = params.parameters, .bytes = sizeof words},
                         .reads = true});
  }
  // Parameter blocks begin with what tells the parts of a grid from one another.
  GridPart part{.first_tile = words[0], .tiles = x, .first_batch = words[1], .batches = y};
  part.grid.assign(words.begin() + 2, words.end());
  part.grid.insert(part.grid.end(), pipeline.constants.begin(), pipeline.constants.end());
  part.grid.insert(part.grid.end(), pipeline.module.begin(), pipeline.module.end());
  return Command{.name = std::string(pipeline.module),
                 .accesses = std::move(*accesses),
                 .part = std::move(part)};
}

namespace hooks {

PFN_vkVoidFunction hook_of(std::string_view name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                               const char* name) {
  const PFN_vkVoidFunction hook = hook_of(name);
  return hook != nullptr ? hook : watch().vkGetInstanceProcAddr(instance, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice device, const char* name) {
  const PFN_vkVoidFunction hook = hook_of(name);
  return hook != nullptr ? hook : watch().vkGetDeviceProcAddr(device, name);
}

// Reads the module, whose name the entry point has, and the constants of a pipeline. The module of
// other pipelines than the library's is empty.
Pipeline read_pipeline(const VkComputePipelineCreateInfo& info) {
  Pipeline pipeline;
  const embedded::Module* const module = embedded::find_module(info.stage.pName);
  if (module != nullptr) pipeline.module = module->name;
  const VkSpecializationInfo* const values = info.stage.pSpecializationInfo;
  for (std::uint32_t e = 0; values != nullptr && e < values->mapEntryCount; ++e) {
    const VkSpecializationMapEntry& entry = values->pMapEntries[e];
    if (entry.constantID >= SPEC_COUNT || entry.size != sizeof(std::uint32_t)) continue;
    std::memcpy(&pipeline.constants[entry.constantID],
                static_cast<const std::byte*>(values->pData) + entry.offset, entry.size);
  }
  return pipeline;
}

// Creates a pipeline, of the form that set_module_form() asks for.
VkResult create_pipeline(VkDevice device, VkPipelineCache cache, VkComputePipelineCreateInfo info,
                         const VkAllocationCallbacks* allocator, const Pipeline& what,
                         VkPipeline* pipeline) {
  const auto create = watch().vkCreateComputePipelines;
  if (!watch().form || what.module.empty()) {
    return create(device, cache, 1, &info, allocator, pipeline);
  }
  const std::vector<std::uint32_t> words = watch().form(what.module, what.constants);
  VkShaderModuleCreateInfo module{};
  module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module.codeSize = words.size() * sizeof(std::uint32_t);
  module.pCode = words.data();
  VkResult result = vkCreateShaderModule(device, &module, nullptr, &info.stage.module);
  if (result != VK_SUCCESS) return result;
  result = create(device, cache, 1, &info, allocator, pipeline);
  vkDestroyShaderModule(device, info.stage.module, nullptr);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateComputePipelines(VkDevice device, VkPipelineCache cache,
                                                        std::uint32_t count,
                                                        const VkComputePipelineCreateInfo* infos,
                                                        const VkAllocationCallbacks* allocator,
                                                        VkPipeline* pipelines) {
  VkResult result = VK_SUCCESS;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Pipeline what = read_pipeline(infos[i]);
    pipelines[i] = VK_NULL_HANDLE;
    const VkResult one = create_pipeline(device, cache, infos[i], allocator, what, &pipelines[i]);
    if (one != VK_SUCCESS) result = one;
    if (pipelines[i] == VK_NULL_HANDLE) continue;
    const Locked locked;
    watch().pipelines[pipelines[i]] = what;
  }
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateBuffer(VkDevice device, const VkBufferCreateInfo* info,
                                              const VkAllocationCallbacks* allocator,
                                              VkBuffer* buffer) {
  const VkResult result = watch().vkCreateBuffer(device, info, allocator, buffer);
  if (result != VK_SUCCESS) return result;
  const Locked locked;
  watch().buffers[*buffer] = {.address = 0, .size = info->size};
  return result;
}

VKAPI_ATTR VkDeviceAddress VKAPI_CALL
vkGetBufferDeviceAddress(VkDevice device, const VkBufferDeviceAddressInfo* info) {
  const VkDeviceAddress address = watch().vkGetBufferDeviceAddress(device, info);
  const Locked locked;
  watch().buffers[info->buffer].address = address;
  return address;
}

// A queue of a new device may have the handle of one that is gone.
VKAPI_ATTR void VKAPI_CALL vkGetDeviceQueue(VkDevice device, std::uint32_t family,
                                            std::uint32_t index, VkQueue* queue) {
  watch().vkGetDeviceQueue(device, family, index, queue);
  const Locked locked;
  watch().queues.erase(*queue);
}

VKAPI_ATTR VkResult VKAPI_CALL vkBeginCommandBuffer(VkCommandBuffer commands,
                                                    const VkCommandBufferBeginInfo* info) {
  const VkResult result = watch().vkBeginCommandBuffer(commands, info);
  Locked locked;
  if (Recording* const recording = locked.recording(commands)) *recording = {};
  return result;
}

VKAPI_ATTR void VKAPI_CALL vkCmdBindPipeline(VkCommandBuffer commands, VkPipelineBindPoint point,
                                             VkPipeline pipeline) {
  watch().vkCmdBindPipeline(commands, point, pipeline);
  Locked locked;
  if (Recording* const recording = locked.recording(commands)) recording->bound = pipeline;
}

VKAPI_ATTR void VKAPI_CALL vkCmdPushConstants(VkCommandBuffer commands, VkPipelineLayout layout,
                                              VkShaderStageFlags stages, std::uint32_t offset,
                                              std::uint32_t size, const void* values) {
  watch().vkCmdPushConstants(commands, layout, stages, offset, size, values);
  Locked locked;
  Recording* const recording = locked.recording(commands);
  if (recording == nullptr || offset + size > sizeof recording->pushed) return;
  std::memcpy(reinterpret_cast<std::byte*>(recording->pushed.data()) + offset, values, size);
}

VKAPI_ATTR void VKAPI_CALL vkCmdDispatch(VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                                         std::uint32_t z) {
  watch().vkCmdDispatch(commands, x, y, z);
  if (x == 0 || y == 0 || z == 0) return;  // no workgroup accesses anything
  std::vector<std::string> found;
  {
    Locked locked;
    Recording* const recording = locked.recording(commands);
    if (recording == nullptr) return;
    if (std::optional<Command> command = dispatch_of(*recording, x, y)) {
      recording->events.emplace_back(std::move(*command));
    } else {
      found.emplace_back("a dispatch of a pipeline whose accesses nobody has declared");
    }
  }
  report(found);
}

VKAPI_ATTR void VKAPI_CALL vkCmdPipelineBarrier(
    VkCommandBuffer commands, VkPipelineStageFlags src_stages, VkPipelineStageFlags dst_stages,
    VkDependencyFlags flags, std::uint32_t memory_count, const VkMemoryBarrier* memory,
    std::uint32_t buffer_count, const VkBufferMemoryBarrier* buffers, std::uint32_t image_count,
    const VkImageMemoryBarrier* images) {
  watch().vkCmdPipelineBarrier(commands, src_stages, dst_stages, flags, memory_count, memory,
                               buffer_count, buffers, image_count, images);
  Locked locked;
  Recording* const recording = locked.recording(commands);
  if (recording == nullptr) return;
  for (const VkMemoryBarrier& barrier : std::span(memory, memory_count)) {
    recording->events.emplace_back(
        Barrier{src_stages, dst_stages, barrier.srcAccessMask, barrier.dstAccessMask});
  }
  for (const VkBufferMemoryBarrier& barrier : std::span(buffers, buffer_count)) {
    recording->events.emplace_back(
        Barrier{src_stages, dst_stages, barrier.srcAccessMask, barrier.dstAccessMask,
                buffer_region(barrier.buffer, barrier.offset, barrier.size)});
  }
  if (memory_count + buffer_count == 0) {
    recording->events.emplace_back(Barrier{src_stages, dst_stages});
  }
}

VKAPI_ATTR void VKAPI_CALL vkCmdCopyBuffer(VkCommandBuffer commands, VkBuffer from, VkBuffer to,
                                           std::uint32_t count, const VkBufferCopy* copies) {
  watch().vkCmdCopyBuffer(commands, from, to, count, copies);
  Locked locked;
  Recording* const recording = locked.recording(commands);
  if (recording == nullptr) return;
  Command command{.name = "copy", .stage = VK_PIPELINE_STAGE_TRANSFER_BIT, .accesses = {}};
  for (const VkBufferCopy& copy : std::span(copies, count)) {
    command.accesses.push_back({.what = "source",
                                .region = buffer_region(from, copy.srcOffset, copy.size),
                                .reads = true});
    command.accesses.push_back(
        {.what = "copy", .region = buffer_region(to, copy.dstOffset, copy.size), .writes = true});
  }
  recording->events.emplace_back(std::move(command));
}

VKAPI_ATTR void VKAPI_CALL vkCmdFillBuffer(VkCommandBuffer commands, VkBuffer buffer,
                                           VkDeviceSize offset, VkDeviceSize size,
                                           std::uint32_t word) {
  watch().vkCmdFillBuffer(commands, buffer, offset, size, word);
  Locked locked;
  Recording* const recording = locked.recording(commands);
  if (recording == nullptr) return;
  recording->events.emplace_back(Command{
      .name = "fill",
      .stage = VK_PIPELINE_STAGE_TRANSFER_BIT,
      .accesses = {{.what = "buffer",
                    .region = buffer_region(buffer, offset, size),
                    .writes = true}},
  });
}

VKAPI_ATTR void VKAPI_CALL vkCmdExecuteCommands(VkCommandBuffer commands, std::uint32_t count,
                                                const VkCommandBuffer* others) {
  watch().vkCmdExecuteCommands(commands, count, others);
  Locked locked;
  Recording* const recording = locked.recording(commands);
  if (recording == nullptr) return;
  for (const VkCommandBuffer other : std::span(others, count)) {
    const std::vector<Event>& events = locked.recording(other)->events;
    recording->events.insert(recording->events.end(), events.begin(), events.end());
  }
}

VKAPI_ATTR VkResult VKAPI_CALL vkQueueSubmit(VkQueue queue, std::uint32_t count,
                                             const VkSubmitInfo* submits, VkFence fence) {
  const VkResult result = watch().vkQueueSubmit(queue, count, submits, fence);
  if (result != VK_SUCCESS) return result;
  std::vector<std::string> found;
  {
    Locked locked;
    HazardChecker& checker = watch().queues[queue];
    checker.add(Submission{});
    for (const VkSubmitInfo& submit : std::span(submits, count)) {
      for (const VkCommandBuffer commands :
           std::span(submit.pCommandBuffers, submit.commandBufferCount)) {
        const Recording* const recording = locked.recording(commands);
        if (recording == nullptr) continue;
        for (const Event& event : recording->events) checker.add(event);
      }
    }
    if (fence != VK_NULL_HANDLE) watch().fences[fence] = {queue, checker.submissions()};
    found = checker.take();
  }
  report(found);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL vkWaitForFences(VkDevice device, std::uint32_t count,
                                               const VkFence* fences, VkBool32 all,
                                               std::uint64_t timeout) {
  const VkResult result = watch().vkWaitForFences(device, count, fences, all, timeout);
  if (result != VK_SUCCESS || (all == VK_FALSE && count > 1)) return result;
  std::vector<std::string> found;
  {
    const Locked locked;
    for (const VkFence fence : std::span(fences, count)) {
      const auto place = watch().fences.find(fence);
      if (place == watch().fences.end()) continue;
      HazardChecker& checker = watch().queues[place->second.queue];
      checker.add(HostWait{place->second.submissions});
      std::ranges::move(checker.take(), std::back_inserter(found));
    }
  }
  report(found);
  return result;
}

PFN_vkVoidFunction hook_of(std::string_view name) {
#define VKGEMM_HOOK(function) \
  if (name == #function) return reinterpret_cast<PFN_vkVoidFunction>(hooks::function)
  VKGEMM_WATCHED_FUNCTIONS(VKGEMM_HOOK)
#undef VKGEMM_HOOK
  return nullptr;
}

}  // namespace hooks

// Replaces volk's pointers, which have just been loaded.
void stand_in() {
#define VKGEMM_REPLACE(function) \
  watch().function = ::function; \
  ::function = hooks::function
  VKGEMM_WATCHED_FUNCTIONS(VKGEMM_REPLACE)
#undef VKGEMM_REPLACE
}

}  // namespace

void watch_commands(std::function<void(const std::string&)> on_hazard) {
  watch().on_hazard = std::move(on_hazard);
  headless::on_functions_loaded() = stand_in;
}

void set_module_form(ModuleForm form) { watch().form = std::move(form); }

bool is_watched(std::string_view function) { return hooks::hook_of(function) != nullptr; }

std::vector<Event> recorded_events(VkCommandBuffer commands) {
  Locked locked;
  const Recording* const recording = locked.recording(commands);
  return recording != nullptr ? recording->events : std::vector<Event>{};
}

Unwatched::Unwatched() { ++watch().unwatched; }
Unwatched::~Unwatched() { --watch().unwatched; }

}  // namespace vkgemm::test
