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

#include "hazards.hpp"

namespace vkgemm::test {

// From the next instance on, to the end of the process. Contexts and devices that are older are not
// seen. The thread that submits or waits calls `on_hazard` with a line for each hazard.
void watch_commands(std::function<void(const std::string&)> on_hazard);

// Returns the words of a module in another form. It may set the constants, given by SpecId, or
// leave them to Vulkan.
using ModuleForm = std::function<std::vector<std::uint32_t>(
    std::string_view module, std::span<const std::uint32_t> constants)>;
// Sets the form of pipelines that are created from now on. An empty function means the library's
// form. Not to be called while another thread creates pipelines.
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

}  // namespace vkgemm::test
