// pipeline_cache.hpp: the pipelines of one context, each built once, and what is kept on disk.
#pragma once

#include <vulkan/vulkan_core.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/cache_file.hpp"
#include "base/log.hpp"
#include "device/vk.hpp"
#include "kernels/dispatch_plan.hpp"
#include "runtime/functions.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

struct PipelineCacheInfo {
  VkDevice device = VK_NULL_HANDLE;
  VkPipelineCache application_cache = VK_NULL_HANDLE;  // used instead of `file`, never destroyed
  std::filesystem::path file;                          // empty: none
  CacheIdentity identity;
  // Registers, spills … can be asked of every pipeline: the application enabled
  // pipelineExecutableInfo, which nobody does but to ask.
  bool capture_statistics = false;
  std::uint32_t push_constant_bytes = 0;                                 // of the layout
  std::shared_ptr<Functions> functions = std::make_shared<Functions>();  // siblings share them
  PFN_vkSetDebugUtilsObjectNameEXT set_name = nullptr;  // null: VK_EXT_debug_utils is off
};

// The name of a pipeline for people, in messages and debuggers: the configuration it was built for,
// or its module if that is of no configuration in particular.
std::string pipeline_name(const PipelineKey& key, const Config& config);

// All members may be called from several threads at once. Different pipelines are built at the
// same time; threads that want the same one wait for the first of them.
class PipelineCache {
 public:
  // `functions` and `log` must outlive the cache. init() first, once.
  PipelineCache(const DeviceFunctions& functions, const Log& log, PipelineCacheInfo info);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  Result<void> init();

  // The pipelines of several keys, in their order, or the first error. Building missing ones is the
  // only slow step of the library. They are built side by side, on threads that end before this
  // returns; with application_cache one by one, for that cache may be externally synchronised.
  // `config` names them for debuggers. A failure is not kept: the next call tries again.
  Result<std::vector<VkPipeline>> get_all(std::span<const PipelineKey> keys, const Config& config);

  // Push constants and nothing else: every pipeline's layout.
  VkPipelineLayout layout() const noexcept { return layout_; }

  // The functions that pipelines may have linked.
  Functions& functions_of_steps() const noexcept { return *info_.functions; }

  // Writes the file if there is one and pipelines were built since it was read or written.
  Result<void> save();

 private:
  struct Entry {
    std::mutex building;
    std::atomic<VkPipeline> pipeline = VK_NULL_HANDLE;
  };

  Entry& entry_of(const PipelineKey& key);
  Result<VkPipeline> get(const PipelineKey& key, const Config& config);
  Result<void> load_file();
  Result<VkPipeline> build(const PipelineKey& key, const Config& config);

  const DeviceFunctions& functions_;
  const Log& log_;
  const PipelineCacheInfo info_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache own_cache_ = VK_NULL_HANDLE;
  std::atomic<bool> unsaved_ = false;
  std::mutex saving_;

  std::shared_mutex mutex_;  // guards the map, not the entries: those never move or go
  std::unordered_map<PipelineKey, Entry, PipelineKeyHash> entries_;
};

}  // namespace vkgemm
