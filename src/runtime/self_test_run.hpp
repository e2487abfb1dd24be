// self_test_run.hpp: the self-test on a device: the one place that submits and waits.
#pragma once

#include <vector>

#include "device/vk.hpp"
#include "runtime/pipeline_cache.hpp"
#include "vkgemm/context.hpp"

namespace vkgemm {

// The parts that a context is about to be made of.
struct SelfTestDevice {
  const InstanceFunctions& instance_functions;
  const DeviceFunctions& functions;
  const VkPhysicalDeviceMemoryProperties& memory;
  const DeviceCaps& caps;
  const PipelineCacheInfo& pipelines;
};

// The verdicts that info.self_test gives, reads and finds, and keeps what it found. Errors as
// Context::create() has them.
Result<std::vector<Verdict>> collect_verdicts(const ContextCreateInfo& info,
                                              const SelfTestDevice& device);

}  // namespace vkgemm
