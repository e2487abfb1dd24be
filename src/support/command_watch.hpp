// command_watch.hpp: what this process records and submits, looked at for hazards. It stands in for
// Vulkan's functions: in volk's pointers, and so in what a context gets from vkGetInstanceProcAddr.
// What is checked are the very commands and barriers that reach the driver.
//
// Known are the functions that the library and the runner call. Accesses by the host, other than
// those that hazards.hpp knows of, and between two queues are not looked at.
#pragma once

#include <volk.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/hazards.hpp"

namespace vkgemm::support {

struct CommandWatchOptions {
  // The name of a shader module, in static storage; empty for one that is not the library's.
  std::function<std::string_view(std::span<const std::uint32_t> words)> module_of;
  // Called by the thread that submits or waits, with a line for each hazard.
  std::function<void(const std::string&)> on_hazard;
};

// From the next instance on, to the end of the process. Contexts and devices that are older are not
// seen.
void watch_commands(CommandWatchOptions options);

// The words of a module in another form, for pipelines that are made from then on. It may use the
// constants, by SpecId, or leave them to Vulkan. An empty function: the form that the library
// gives.
using ModuleForm = std::function<std::vector<std::uint32_t>(
    std::string_view module, std::span<const std::uint32_t> constants)>;
void set_module_form(ModuleForm form);

// True if it is one of the functions that are stood in for.
bool is_watched(std::string_view function);

// What was recorded into a command buffer since it was begun.
std::vector<Event> recorded_events(VkCommandBuffer commands);

// Nothing is looked at as long as one exists: what is recorded meanwhile leaves no trace.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

}  // namespace vkgemm::support
