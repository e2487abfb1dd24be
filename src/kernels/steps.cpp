#include "kernels/steps.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "embedded/embedded.hpp"
#include "kernels/main_loop.hpp"
#include "problem/data_type.hpp"

namespace vkgemm {

namespace {

constexpr std::string_view in_memory_suffix = "_in_memory";

// The name in static storage; empty if no module has it.
std::string_view embedded_name(std::string_view name) {
  const embedded::Module* const module = embedded::find_module(name);
  return module != nullptr ? module->name : std::string_view();
}

std::string full_name(std::string_view kernel, MainLoop loop, const Input& input) {
  return concat(kernel, '_', descriptor(loop).name, '_', input.name);
}

}  // namespace

// Legality keeps it from those that there are not.
std::string_view module_name(std::string_view kernel, MainLoop loop, const Input& input) {
  return embedded_name(full_name(kernel, loop, input));
}

const Input* input_of_module(std::string_view module) {
  module = without_in_memory(module);
  for (const LoopDescriptor* loop : main_loops()) {
    for (const Input* input : inputs()) {
      if (module.ends_with(full_name("", loop->loop, *input))) return input;
    }
  }
  return nullptr;
}

bool parameters_in_memory(const Limits& limits) {
  return limits.max_push_constant_bytes < gpu::most_parameter_bytes;
}

std::uint32_t push_constant_bytes(const Limits& limits) {
  return std::min(limits.max_push_constant_bytes, std::uint32_t{gpu::most_parameter_bytes});
}

std::string_view in_memory(std::string_view module) {
  return embedded_name(concat(module, in_memory_suffix));
}

std::string_view without_in_memory(std::string_view module) {
  if (module.ends_with(in_memory_suffix)) module.remove_suffix(in_memory_suffix.size());
  return module;
}

PipelineKey carry_key() {
  PipelineKey key{.module = "carry"};
  Constants(key.constants).set(SPEC_LOCAL_SIZE, std::uint32_t{CARRY_LOCAL_SIZE});
  return key;
}

bool has_kernels(MainLoop loop, const Input& input) {
  const auto all = inputs();
  // Looked up once: legality asks for every row of a table.
  static const std::vector<bool> known = [&all] {
    std::vector<bool> out;
    for (const LoopDescriptor* one : main_loops()) {
      for (const Input* each : all) {
        out.push_back(!module_name("gemm", one->loop, *each).empty());
      }
    }
    return out;
  }();
  const auto place = static_cast<std::size_t>(std::ranges::find(all, &input) - all.begin());
  return known[static_cast<std::size_t>(loop) * all.size() + place];
}

std::optional<std::string> why_not_built(std::string_view module) {
  if (embedded::find_module(module) != nullptr) return std::nullopt;
  const std::string_view reason = embedded::why_left_out(module);
  return reason.empty() ? concat("there is no shader module ", module)
                        : concat("not built into this library: ", reason);
}

std::optional<std::string> why_not_built(std::string_view kernel, MainLoop loop,
                                         const Input& input) {
  const std::string name = full_name(kernel, loop, input);
  auto why = why_not_built(name);
  if (why && embedded::why_left_out(name).empty()) {
    why = concat("input type ", to_string(input.multiplied), ": main loop ", to_string(loop),
                 " has no kernels for it");
  }
  return why;
}

std::uint32_t required_subgroup_size(const Config& config, const Limits& limits) {
  const auto subgroup_size = descriptor(config).subgroup_size;
  return subgroup_size != nullptr && limits.subgroup_size_control ? subgroup_size(config) : 0;
}

void set_groups(Constants& constants, const ResolvedProblem& problem) {
  const auto& grouping = *problem.grouping;
  constants.set(SPEC_GROUPED, grouping.along == GroupAlong::m ? std::uint32_t{GROUPED_ALONG_M}
                                                              : std::uint32_t{GROUPED_ALONG_K});
  // A table in the workspace has int32 numbers.
  const bool given = grouping.bounds == GroupBounds::offsets;
  constants.set(SPEC_OFFSETS_64, given && grouping.offsets == OffsetType::int64);
  constants.set(SPEC_GROUP_ENDS, grouping.bounds == GroupBounds::starts_and_sizes);
}

Step reset_step(std::uint64_t words, std::uint64_t state_bytes, const Limits& limits) {
  Step step;
  step.key.module = "reset";
  Constants(step.key.constants).set(SPEC_LOCAL_SIZE, std::uint32_t{RESET_LOCAL_SIZE});
  gpu::ResetParams params{};
  params.control_words = narrow(words);
  params.row_state_pieces = narrow(divided_up(state_bytes, RESET_PIECE_BYTES));
  step.params = params;
  const std::uint64_t most = std::max({params.control_words, params.row_state_pieces, 1U});
  step.dispatches = cut_grid(divided_up(most, RESET_LOCAL_SIZE), 1, limits);
  return step;
}

}  // namespace vkgemm
