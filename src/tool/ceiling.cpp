#include "tool/ceiling.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "embedded.hpp"
#include "tool/planning.hpp"

namespace vkgemm::tool {
namespace {

using support::Runner;

constexpr std::uint32_t kSubgroups = 4;
constexpr std::uint32_t kFragments = 4;  // of A and of B: 16 accumulators a subgroup
constexpr std::uint32_t kRepeats = 20;
constexpr std::uint32_t kRounds = 8;
constexpr double kTargetMs = 5.0;
constexpr std::uint64_t kCopiedBytes = 1ULL << 30;

Error driver_error(const char* call, VkResult result) {
  return {Status::driver_error, std::string(call) + " returned " + std::to_string(result), result};
}

// One pipeline of the "ceiling" module. Destroys what it made, also half-way.
class CeilingKernel {
 public:
  CeilingKernel(Runner& runner, const FragmentShape& shape) : runner_(runner), shape_(shape) {}
  CeilingKernel(const CeilingKernel&) = delete;
  CeilingKernel& operator=(const CeilingKernel&) = delete;
  ~CeilingKernel() {
    destroy_pipeline();
    vkDestroyPipelineLayout(runner_.device(), layout_, nullptr);
    vkDestroyShaderModule(runner_.device(), module_, nullptr);
  }

  Result<double> measure() {
    if (auto made = make_module(); !made) return made.error();
    auto output = runner_.allocate(1 << 20);
    if (!output) return output.error();
    const VkDeviceAddress address = output->address();

    const auto record = [&](VkCommandBuffer commands) -> Result<void> {
      vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
      vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof address,
                         &address);
      vkCmdDispatch(commands, workgroups(), 1, 1);
      return {};
    };
    const auto fastest = [&](std::uint32_t repeats, double warm_up_ms) -> Result<double> {
      auto times = runner_.time(record, repeats, warm_up_ms);
      if (!times) return times.error();
      return std::max(*std::min_element(times->begin(), times->end()), 1e-6);
    };

    // Long enough for the clock and the timestamps, short enough for a CPU.
    std::uint32_t iterations = 16;
    if (auto made = make_pipeline(iterations); !made) return made.error();
    const auto probe = fastest(3, 0.0);
    if (!probe) return probe.error();
    iterations =
        static_cast<std::uint32_t>(std::clamp(iterations * kTargetMs / *probe, 16.0, 1048576.0));

    // The fastest of several rounds, not a median, and of several lengths of the loop, which is a
    // constant to the compiler: on the H200 some lengths reach 573 TFLOP/s, others 625. A ceiling
    // that is measured low flatters every kernel.
    const bool cpu = runner_.caps().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    double tflops = 0.0;
    for (std::uint32_t round = 0; round < (cpu ? 1 : kRounds); ++round) {
      if (auto made = make_pipeline(iterations + round); !made) return made.error();
      const auto ms = fastest(kRepeats, round == 0 ? 300.0 : 50.0);
      if (!ms) return ms.error();
      tflops = std::max(tflops, flops(iterations + round) / *ms * 1e-9);
    }
    return tflops;
  }

 private:
  // A few waves of workgroups on the devices that we know.
  std::uint32_t workgroups() const {
    const std::uint32_t units = runner_.caps().limits.compute_units;
    if (runner_.caps().type == VK_PHYSICAL_DEVICE_TYPE_CPU) return 16;
    return units != 0 ? units * 16 : 2048;
  }
  std::uint32_t subgroup_size() const { return runner_.caps().limits.max_subgroup_size; }

  double flops(std::uint32_t iterations) const {
    return 2.0 * shape_.m * shape_.n * shape_.k * kFragments * kFragments * kSubgroups *
           static_cast<double>(iterations) * workgroups();
  }

  Result<void> make_module() {
    const auto modules = embedded::modules();
    const auto found = std::find_if(modules.begin(), modules.end(),
                                    [](const auto& module) { return module.name == "ceiling"; });
    if (found == modules.end())
      return Error{Status::unsupported, "no module 'ceiling' is embedded"};
    VkShaderModuleCreateInfo module{};
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = found->words.size_bytes();
    module.pCode = found->words.data();
    VkResult result = vkCreateShaderModule(runner_.device(), &module, nullptr, &module_);
    if (result != VK_SUCCESS) return driver_error("vkCreateShaderModule", result);

    VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(VkDeviceAddress)};
    VkPipelineLayoutCreateInfo layout{};
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &range;
    result = vkCreatePipelineLayout(runner_.device(), &layout, nullptr, &layout_);
    if (result != VK_SUCCESS) return driver_error("vkCreatePipelineLayout", result);
    return {};
  }

  Result<void> make_pipeline(std::uint32_t iterations) {
    destroy_pipeline();
    // By specialization constant id: see shaders/ceiling.comp.
    const std::array<std::uint32_t, 7> constants = {kSubgroups * subgroup_size(),
                                                    shape_.m,
                                                    shape_.n,
                                                    shape_.k,
                                                    iterations,
                                                    kFragments,
                                                    kFragments};
    std::array<VkSpecializationMapEntry, constants.size()> entries{};
    for (std::uint32_t i = 0; i < entries.size(); ++i) entries[i] = {i, i * 4, 4};
    const VkSpecializationInfo specialization{static_cast<std::uint32_t>(entries.size()),
                                              entries.data(), sizeof constants, constants.data()};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{};
    size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
    size.requiredSubgroupSize = subgroup_size();
    VkComputePipelineCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    if (runner_.caps().limits.subgroup_size_control) {
      info.stage.pNext = &size;
      info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module_;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = &specialization;
    info.layout = layout_;
    const VkResult result =
        vkCreateComputePipelines(runner_.device(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
    if (result != VK_SUCCESS) return driver_error("vkCreateComputePipelines", result);
    return {};
  }

  void destroy_pipeline() {
    vkDestroyPipeline(runner_.device(), pipeline_, nullptr);
    pipeline_ = VK_NULL_HANDLE;
  }

  Runner& runner_;
  FragmentShape shape_;
  VkShaderModule module_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

}  // namespace

Result<double> measure_ceiling(Runner& runner) {
  if (!runner.caps().khr.available) {
    return Error{Status::unsupported, runner.caps().khr.reason};
  }
  double best = 0.0;
  for (const FragmentShape& shape : runner.caps().fragment_shapes) {
    if (shape.input != DataType::f16 || shape.accumulator != DataType::f32) continue;
    auto measured = CeilingKernel(runner, shape).measure();
    if (!measured) return measured.error();
    best = std::max(best, *measured);
  }
  if (best == 0.0) return Error{Status::unsupported, "no f16->f32 fragment shape"};
  return best;
}

Result<double> measure_bandwidth(Runner& runner) {
  const bool cpu = runner.caps().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const std::uint64_t bytes = cpu ? kCopiedBytes / 16 : kCopiedBytes;
  auto from = runner.allocate(bytes);
  if (!from) return from.error();
  auto to = runner.allocate(bytes);
  if (!to) return to.error();
  if (auto filled = runner.fill(*from, 0x3c003c00U); !filled) return filled.error();
  const auto times = runner.time(
      [&](VkCommandBuffer commands) -> Result<void> {
        const VkBufferCopy region{0, 0, bytes};
        vkCmdCopyBuffer(commands, from->handle(), to->handle(), 1, &region);
        return {};
      },
      cpu ? 3 : kRepeats, cpu ? 0.0 : 100.0);
  if (!times) return times.error();
  const double ms = std::max(*std::min_element(times->begin(), times->end()), 1e-6);
  return 2.0 * static_cast<double>(bytes) / ms * 1e-6;
}

}  // namespace vkgemm::tool
