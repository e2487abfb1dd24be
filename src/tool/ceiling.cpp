#include "tool/yardstick.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "device/caps.hpp"

namespace vkgemm::tool {
namespace {

using headless::Runner;

constexpr std::uint32_t kSubgroups = 4;
constexpr std::uint32_t kFragments = 4;  // of A and of B: 16 accumulators a subgroup
constexpr std::uint32_t kRepeats = 20;
constexpr std::uint32_t kRounds = 8;
constexpr double kTargetMs = 5.0;
constexpr std::uint64_t kCopiedBytes = 1ULL << 30;
constexpr std::uint64_t kBlockBytes = 8 * 256 * 16;  // of a workgroup: shaders/bandwidth.comp

// A loop of products in registers.
struct Loop {
  std::string_view module;
  // Its constants by id, all but this one, which counts the iterations.
  std::vector<std::uint32_t> constants;
  std::size_t iterations_id;
  std::uint32_t subgroup_size;  // required; 0: any
  double flops;                 // of one iteration of a workgroup
};

Result<double> measure(Runner& runner, Loop loop) {
  Yardstick yardstick(runner, loop.module, sizeof(VkDeviceAddress));
  if (auto made = yardstick.make_layout(); !made) return made.error();
  auto output = runner.allocate(1 << 20);
  if (!output) return output.error();
  const VkDeviceAddress address = output->address();
  const std::uint32_t workgroups = yardstick_workgroups(runner.caps());
  const auto make_pipeline = [&](std::uint32_t iterations) {
    loop.constants[loop.iterations_id] = iterations;
    return yardstick.make_pipeline(loop.constants, loop.subgroup_size);
  };

  // Long enough for the clock and the timestamps, short enough for a CPU.
  std::uint32_t iterations = 16;
  if (auto made = make_pipeline(iterations); !made) return made.error();
  const auto probe = yardstick.fastest(&address, workgroups, 3, 0.0);
  if (!probe) return probe.error();
  const double wanted = std::clamp(iterations * kTargetMs / *probe, 16.0, 1048576.0);
  iterations = static_cast<std::uint32_t>(wanted) / 2 * 2;  // ceiling_fma.comp takes two at a time

  // The fastest of several rounds, not a median, and of several lengths of the loop, which is a
  // constant to the compiler: on the H200 some lengths reach 573 TFLOP/s, others 625. A ceiling
  // that is measured low flatters every kernel.
  double tflops = 0.0;
  for (std::uint32_t round = 0; round < (is_cpu(runner.caps()) ? 1 : kRounds); ++round) {
    if (auto made = make_pipeline(iterations + 2 * round); !made) return made.error();
    const auto ms = yardstick.fastest(&address, workgroups, kRepeats, round == 0 ? 300.0 : 50.0);
    if (!ms) return ms.error();
    tflops = std::max(tflops, loop.flops * (iterations + 2 * round) * workgroups / *ms * 1e-9);
  }
  return tflops;
}

// By specialization constant id: see shaders/ceiling.comp.
Loop matrix_loop(const FragmentShape& shape, std::uint32_t subgroup_size) {
  return {.module = "ceiling",
          .constants = {kSubgroups * subgroup_size, shape.m, shape.n, shape.k, 0, kFragments,
                        kFragments},
          .iterations_id = 4,
          .subgroup_size = subgroup_size,
          .flops = 2.0 * shape.m * shape.n * shape.k * kFragments * kFragments * kSubgroups};
}

}  // namespace

Result<double> measure_matrix_ceiling(Runner& runner) {
  if (!runner.caps().khr.available) {
    return Error{Status::unsupported, runner.caps().khr.reason};
  }
  double best = 0.0;
  for (const FragmentShape& shape : runner.caps().fragment_shapes) {
    if (shape.input != DataType::f16 || shape.accumulator != DataType::f32) continue;
    auto measured = measure(runner, matrix_loop(shape, runner.caps().limits.max_subgroup_size));
    if (!measured) return measured.error();
    best = std::max(best, *measured);
  }
  if (best == 0.0) return Error{Status::unsupported, "no f16->f32 fragment shape"};
  return best;
}

Result<double> measure_fma_ceiling(Runner& runner) {
  // 128 invocations: shaders/ceiling_fma.comp.
  return measure(runner, {.module = "ceiling_fma",
                          .constants = {0},
                          .iterations_id = 0,
                          .subgroup_size = 0,
                          .flops = 2.0 * 65.0 * 128.0});
}

Result<double> measure_bandwidth(Runner& runner) {
  const bool cpu = is_cpu(runner.caps());
  const std::uint64_t bytes = cpu ? kCopiedBytes / 16 : kCopiedBytes;
  auto from = runner.allocate(bytes);
  if (!from) return from.error();
  auto to = runner.allocate(bytes);
  if (!to) return to.error();
  if (auto filled = runner.fill(*from, 0x3c003c00U); !filled) return filled.error();
  Yardstick yardstick(runner, "bandwidth", 2 * sizeof(VkDeviceAddress));
  if (auto made = yardstick.make_layout(); !made) return made.error();
  if (auto made = yardstick.make_pipeline({}, 0); !made) return made.error();
  const VkDeviceAddress addresses[] = {from->address(), to->address()};
  const auto ms = yardstick.fastest(addresses, static_cast<std::uint32_t>(bytes / kBlockBytes),
                                    cpu ? 3 : kRepeats, cpu ? 0.0 : 100.0);
  if (!ms) return ms.error();
  return 2.0 * static_cast<double>(bytes) / *ms * 1e-6;
}

}  // namespace vkgemm::tool
