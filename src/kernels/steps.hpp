// steps.hpp: what the steps of several parts are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/constants.hpp"
#include "kernels/dispatch_plan.hpp"
#include "lib/abi.h"
#include "problem/resolved_problem.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm {

// Workspaces that no device has are at least so large.
inline constexpr std::uint64_t most_workspace_bytes = std::uint64_t{1} << 48;

// The module of a kernel that has one for each main loop and input (shaders/modules.txt).
std::string_view module_name(std::string_view kernel, MainLoop loop, const Input& input);

// The input of such a module; null: it is another one.
const Input* input_of_module(std::string_view module);

// Blocks of products stand in memory on a device that has few push constants. Path fma alone reads
// them there.
bool parameters_in_memory(const Limits& limits);

// The bytes of push constants of every pipeline's layout.
std::uint32_t push_constant_bytes(const Limits& limits);

// The module that reads its parameters in memory instead; empty if there is none. And the other way
// round: any module's name without saying so.
std::string_view in_memory(std::string_view module);
std::string_view without_in_memory(std::string_view module);

// The pipeline that brings parameters to memory.
PipelineKey carry_key();

// True if a main loop has kernels for an input.
bool has_kernels(MainLoop loop, const Input& input);

// Returns nothing if the module is built in, else the reason: "not built into this library:
// VKGEMM_PARTS lacks grouped".
std::optional<std::string> why_not_built(std::string_view module);
// Does the same for the module of a kernel that has one for each main loop and input.
std::optional<std::string> why_not_built(std::string_view kernel, MainLoop loop,
                                         const Input& input);

// The size of subgroups that a pipeline of this configuration requires; 0: any. Without size
// control the device has one size only, which needs no saying.
std::uint32_t required_subgroup_size(const Config& config, const Limits& limits);

// Sets the constants of every kernel that looks for groups.
void set_groups(Constants& constants, const ResolvedProblem& problem);

// One dispatch along x sets so many words to zero on any device.
inline constexpr std::uint64_t most_control_words = std::uint64_t{65535} * RESET_LOCAL_SIZE;

// Sets shared words and amax to 0, and marks the states of rows as unknown.
Step reset_step(std::uint64_t words, std::uint64_t state_bytes, const Limits& limits);

}  // namespace vkgemm
