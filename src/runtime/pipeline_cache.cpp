#include "runtime/pipeline_cache.hpp"

#include <array>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "kernels/kernel_words.hpp"
#include "kernels/steps.hpp"

namespace vkgemm {

namespace {

// Destroys what a failed or finished build leaves behind.
class ShaderModule {
 public:
  ShaderModule(const DeviceFunctions& functions, VkDevice device)
      : functions_(functions), device_(device) {}
  ~ShaderModule() { functions_.vkDestroyShaderModule(device_, handle_, nullptr); }
  ShaderModule(const ShaderModule&) = delete;
  ShaderModule& operator=(const ShaderModule&) = delete;

  VkResult create(std::span<const std::uint32_t> words) {
    const VkShaderModuleCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .pNext = nullptr,
        .flags = 0,
        .codeSize = words.size_bytes(),
        .pCode = words.data(),
    };
    return functions_.vkCreateShaderModule(device_, &info, nullptr, &handle_);
  }
  VkShaderModule handle() const noexcept { return handle_; }

 private:
  const DeviceFunctions& functions_;
  VkDevice device_;
  VkShaderModule handle_ = VK_NULL_HANDLE;
};

constexpr std::array<VkSpecializationMapEntry, SPEC_COUNT> specialization_map() noexcept {
  std::array<VkSpecializationMapEntry, SPEC_COUNT> map{};
  for (std::uint32_t id = 0; id < SPEC_COUNT; ++id) {
    map[id] = {.constantID = id,
               .offset = static_cast<std::uint32_t>(id * sizeof(std::uint32_t)),
               .size = sizeof(std::uint32_t)};
  }
  return map;
}

}  // namespace

std::string pipeline_name(const PipelineKey& key, const Config& config) {
  // Configurations share the others: what a pipeline of theirs does, none of them says.
  if (input_of_module(key.module) == nullptr) return std::string(key.module);
  return key.module.starts_with("pack") ? concat(key.module, " ", to_string(config))
                                        : to_string(config);
}

PipelineCache::PipelineCache(const DeviceFunctions& functions, const Log& log,
                             PipelineCacheInfo info)
    : functions_(functions), log_(log), info_(std::move(info)) {}

PipelineCache::~PipelineCache() {
  for (auto& [key, entry] : entries_) {
    functions_.vkDestroyPipeline(info_.device, entry.pipeline.load(), nullptr);
  }
  functions_.vkDestroyPipelineCache(info_.device, own_cache_, nullptr);
  functions_.vkDestroyPipelineLayout(info_.device, layout_, nullptr);
}

Result<void> PipelineCache::init() {
  const VkPushConstantRange range{
      .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = info_.push_constant_bytes};
  const VkPipelineLayoutCreateInfo layout_info{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .pNext = nullptr,
      .flags = 0,
      .setLayoutCount = 0,
      .pSetLayouts = nullptr,
      .pushConstantRangeCount = 1,
      .pPushConstantRanges = &range,
  };
  const VkResult result =
      functions_.vkCreatePipelineLayout(info_.device, &layout_info, nullptr, &layout_);
  if (result < VK_SUCCESS) return driver_error("vkCreatePipelineLayout", result);
  if (info_.application_cache == VK_NULL_HANDLE && !info_.file.empty()) return load_file();
  return {};
}

Result<void> PipelineCache::load_file() {
  std::span<const std::byte> payload;
  const auto discard = [&](const Error& error) {
    log_.write(LogLevel::warning, "pipeline cache " + utf8(info_.file) +
                                      " is discarded and rebuilt: " + error.message);
  };
  Result<std::vector<std::byte>> file =
      read_file(info_.file, cache_file_max_bytes, os::Links::refuse);
  if (!file) {
    discard(file.error());
  } else if (!file->empty()) {
    const auto parsed = parse_cache_file(*file, info_.identity);
    if (parsed) {
      payload = *parsed;
    } else {
      discard(parsed.error());
    }
  }
  VkPipelineCacheCreateInfo cache_info{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
      .pNext = nullptr,
      .flags = 0,
      .initialDataSize = payload.size(),
      .pInitialData = payload.data(),
  };
  const VkResult result =
      functions_.vkCreatePipelineCache(info_.device, &cache_info, nullptr, &own_cache_);
  if (result < VK_SUCCESS) return driver_error("vkCreatePipelineCache", result);
  return {};
}

PipelineCache::Entry& PipelineCache::entry_of(const PipelineKey& key) {
  {
    const std::shared_lock lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) return found->second;
  }
  const std::unique_lock lock(mutex_);
  return entries_.try_emplace(key).first->second;
}

Result<VkPipeline> PipelineCache::get(const PipelineKey& key, const Config& config) {
  Entry& entry = entry_of(key);
  if (const VkPipeline pipeline = entry.pipeline.load(std::memory_order_acquire)) return pipeline;

  const std::scoped_lock lock(entry.building);
  if (const VkPipeline pipeline = entry.pipeline.load(std::memory_order_acquire)) return pipeline;
  Result<VkPipeline> built = build(key, config);
  if (built) {
    entry.pipeline.store(*built, std::memory_order_release);
    unsaved_ = true;
  }
  return built;
}

Result<std::vector<VkPipeline>> PipelineCache::get_all(std::span<const PipelineKey> keys,
                                                       const Config& config) {
  std::vector<VkPipeline> pipelines(keys.size(), VK_NULL_HANDLE);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    pipelines[i] = entry_of(keys[i]).pipeline.load(std::memory_order_acquire);
    if (pipelines[i] == VK_NULL_HANDLE) missing.push_back(i);
  }
  if (missing.empty()) return pipelines;

  // The application's cache may be one that only one thread at a time must use. The first pipeline
  // is this thread's, and so is one that no thread can be had for.
  const bool alone = info_.application_cache != VK_NULL_HANDLE;
  const auto build_one = [&](std::size_t i) { return get(keys[i], config); };
  std::vector<std::future<Result<VkPipeline>>> built;
  for (const std::size_t i : missing) {
    const auto policy = alone || built.empty() ? std::launch::deferred : std::launch::async;
    try {
      built.push_back(std::async(policy, build_one, i));
    } catch (const std::system_error&) {
      built.push_back(std::async(std::launch::deferred, build_one, i));
    }
  }
  std::optional<Error> error;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const Result<VkPipeline> pipeline = built[i].get();
    if (pipeline) {
      pipelines[missing[i]] = *pipeline;
    } else if (!error) {
      error = pipeline.error();
    }
  }
  if (error) return *error;
  return pipelines;
}

Result<VkPipeline> PipelineCache::build(const PipelineKey& key, const Config& config) {
  const LinkedFunction* const function =
      info_.functions->find(key.constants[SPEC_EPILOGUE_FUNCTION]);
  const Result<std::vector<std::uint32_t>> words =
      kernel_words(key.module, key.constants, specialises_modules(), function);
  if (!words) return words.error();
  ShaderModule module(functions_, info_.device);
  if (const VkResult result = module.create(*words); result < VK_SUCCESS) {
    return driver_error("vkCreateShaderModule", result);
  }

  // Drivers ignore constants that a specialised module no longer has. Layers and tests read them.
  static constexpr auto map = specialization_map();
  const VkSpecializationInfo specialization{
      .mapEntryCount = static_cast<std::uint32_t>(map.size()),
      .pMapEntries = map.data(),
      .dataSize = sizeof(key.constants),
      .pData = key.constants.data(),
  };
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup_size{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
      .pNext = nullptr,
      .requiredSubgroupSize = key.required_subgroup_size,
  };
  // Kernels that require a size count on full subgroups, too: each computes a part of the tile.
  const bool sized = key.required_subgroup_size != 0;
  const VkPipelineShaderStageCreateFlags full =
      VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  const VkPipelineCreateFlags capture = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  const VkComputePipelineCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .pNext = nullptr,
      .flags = info_.capture_statistics ? capture : 0,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = sized ? &subgroup_size : nullptr,
                .flags = sized ? full : 0,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module.handle(),
                .pName = key.module.data(),  // zero-terminated
                .pSpecializationInfo = &specialization},
      .layout = layout_,
      .basePipelineHandle = VK_NULL_HANDLE,
      .basePipelineIndex = -1,
  };
  const VkPipelineCache cache =
      info_.application_cache != VK_NULL_HANDLE ? info_.application_cache : own_cache_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result =
      functions_.vkCreateComputePipelines(info_.device, cache, 1, &info, nullptr, &pipeline);
  if (result != VK_SUCCESS) {
    Error error = driver_error("vkCreateComputePipelines", result);
    error.message += " for " + pipeline_name(key, config);
    return error;
  }
  if (pipeline == VK_NULL_HANDLE) {  // some drivers hide a failure of their compiler so
    return Error{Status::driver_error,
                 "vkCreateComputePipelines gave VK_SUCCESS and no pipeline for " +
                     pipeline_name(key, config)};
  }

  if (info_.set_name != nullptr) {
    const std::string name = "vkgemm " + pipeline_name(key, config);
    const VkDebugUtilsObjectNameInfoEXT name_info{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .pNext = nullptr,
        .objectType = VK_OBJECT_TYPE_PIPELINE,
        .objectHandle = (std::uint64_t)pipeline,  // a pointer or an integer, by the platform
        .pObjectName = name.c_str(),
    };
    info_.set_name(info_.device, &name_info);  // a name more or less is no reason to fail
  }
  return pipeline;
}

Result<void> PipelineCache::save() {
  if (own_cache_ == VK_NULL_HANDLE) return {};
  const std::scoped_lock lock(saving_);
  if (!unsaved_.exchange(false)) return {};

  std::vector<std::byte> payload;
  const VkResult result = until_complete([&] {
    std::size_t bytes = 0;
    VkResult read = functions_.vkGetPipelineCacheData(info_.device, own_cache_, &bytes, nullptr);
    if (read < VK_SUCCESS) return read;
    payload.resize(bytes);
    read = functions_.vkGetPipelineCacheData(info_.device, own_cache_, &bytes, payload.data());
    payload.resize(bytes);
    return read;
  });
  // Nothing that would be discarded is kept; the file then says that there is nothing.
  if (!is_pipeline_cache_data(payload, info_.identity)) payload.clear();
  Result<void> saved;
  if (result != VK_SUCCESS) {
    saved = driver_error("vkGetPipelineCacheData", result);
  } else {
    saved = write_file(info_.file, make_cache_file(payload, info_.identity), os::Links::refuse);
  }
  if (!saved) unsaved_ = true;
  return saved;
}

}  // namespace vkgemm
