// test_devices.hpp: capabilities written by hand, so that no device is needed: after what NVIDIA's
// driver lists on an H200, and Mesa's drivers for lavapipe, AMD and Intel.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/main_loop.hpp"
#include "problem/operands.hpp"
#include "problem/resolve.hpp"
#include "tuning/table.hpp"
#include "vkgemm/config.hpp"
#include "vkgemm/device.hpp"

namespace vkgemm::test {

inline FragmentShape shape(DataType input, std::uint32_t m, std::uint32_t n, std::uint32_t k) {
  return {.input = input, .accumulator = input_of(input).accumulator, .m = m, .n = n, .k = k};
}

// Bytes of an operand of the caller's that kernels touch; 0: none.
inline std::uint64_t touched_bytes(const ResolvedProblem& problem, OperandId id) {
  for (const Operand& operand : operands_of(problem)) {
    if (operand.id == id) return operand.bytes;
  }
  return 0;
}

// A size that a row's ranges contain.
inline std::uint64_t size_within(const Range& range) {
  return std::clamp<std::uint64_t>(512, range.min, range.max);
}

inline DeviceCaps base_device(std::string name, std::string architecture) {
  DeviceCaps caps;
  caps.name = std::move(name);
  caps.architecture = std::move(architecture);
  caps.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  caps.limits.max_shared_memory_bytes = 65536;
  caps.limits.max_invocations = 1024;
  caps.limits.max_push_constant_bytes = 256;
  caps.limits.max_workgroup_count = {2147483647, 65535, 65535};
  caps.limits.max_subgroups_per_workgroup = 64;
  caps.limits.subgroup_size_control = true;
  caps.limits.subgroup_shuffles = true;
  caps.limits.subgroup_votes = true;
  caps.nv = {.available = false, .reason = "VK_NV_cooperative_matrix2 is not supported"};
  caps.khr = {.available = true, .reason = ""};
  caps.fma = {.available = true, .reason = ""};
  caps.device_barrier = {.available = true, .reason = ""};
  caps.int8_arithmetic = true;
  return caps;
}

inline DeviceCaps h200() {
  DeviceCaps caps = base_device("NVIDIA H200", "nvidia_sm90");
  caps.device_id = 0x2335;
  caps.limits.max_shared_memory_bytes = 49152;
  caps.limits.min_subgroup_size = 32;
  caps.limits.max_subgroup_size = 32;
  caps.limits.max_subgroups_per_workgroup = 32;
  caps.limits.compute_units = 132;
  caps.limits.nv_max_invocations = 256;
  caps.limits.nv_max_dimension = 1024;
  caps.limits.nv_reserved_shared_memory_bytes = 8192;
  caps.bf16_matrices = true;
  caps.int16_arithmetic = true;
  caps.nv = {.available = true, .reason = ""};
  caps.fragment_shapes = {shape(DataType::f16, 16, 16, 16),
                          shape(DataType::f16, 16, 8, 16),
                          shape(DataType::f16, 16, 8, 8),
                          shape(DataType::bf16, 16, 16, 16),
                          {DataType::f16, DataType::f16, 16, 16, 16},
                          shape(DataType::s8, 16, 16, 32),
                          shape(DataType::s8, 16, 8, 32)};
  for (const DataType input : {DataType::f16, DataType::bf16}) {
    caps.flexible_shapes.push_back({input, DataType::f32, MatrixScope::workgroup, 32, 16, 16, 128});
    caps.flexible_shapes.push_back({input, DataType::f32, MatrixScope::workgroup, 32, 32, 16, 256});
  }
  caps.workgroups_make_progress = true;
  return caps;
}

// Not seen: as the H200, which has the same driver, with their own numbers of SMs.
inline DeviceCaps like_h200(std::string name, std::string architecture, std::uint32_t units) {
  DeviceCaps caps = h200();
  caps.name = std::move(name);
  caps.architecture = std::move(architecture);
  caps.limits.compute_units = units;
  return caps;
}
inline DeviceCaps h100() {
  DeviceCaps caps = like_h200("NVIDIA H100 80GB HBM3", "nvidia_sm90", 132);
  caps.device_id = 0x2330;
  return caps;
}
inline DeviceCaps b200() { return like_h200("NVIDIA B200", "nvidia_sm100", 148); }
inline DeviceCaps rtx4090() { return like_h200("NVIDIA GeForce RTX 4090", "nvidia_sm89", 128); }
inline DeviceCaps rtx5090() { return like_h200("NVIDIA GeForce RTX 5090", "nvidia_sm120", 170); }

inline DeviceCaps lavapipe() {
  DeviceCaps caps = base_device("llvmpipe", "cpu");
  caps.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  caps.limits.max_shared_memory_bytes = 32768;
  caps.limits.max_workgroup_count = {65535, 65535, 65535};
  caps.limits.min_subgroup_size = 8;
  caps.limits.max_subgroup_size = 8;
  caps.limits.max_subgroups_per_workgroup = 32;
  caps.fragment_shapes = {shape(DataType::f16, 8, 8, 8), shape(DataType::s8, 8, 8, 8)};
  caps.limits.nv_max_dimension = 1024;
  caps.flexible_shapes = {{DataType::f16, DataType::f32, MatrixScope::subgroup, 8, 8, 8, 0},
                          {DataType::s8, DataType::s32, MatrixScope::subgroup, 8, 8, 8, 0}};
  return caps;
}

inline DeviceCaps navi31() {
  DeviceCaps caps = base_device("AMD Radeon RX 7900 XTX", "amd_rdna3");
  caps.limits.min_subgroup_size = 32;
  caps.limits.max_subgroup_size = 64;
  caps.limits.compute_units = 48;
  caps.fragment_shapes = {shape(DataType::f16, 16, 16, 16), shape(DataType::s8, 16, 16, 16)};
  return caps;
}

inline DeviceCaps navi48() {
  DeviceCaps caps = navi31();
  caps.name = "AMD Radeon RX 9070 XT";
  caps.architecture = "amd_rdna4";
  caps.limits.compute_units = 64;
  caps.bf16_matrices = true;
  caps.fragment_shapes.push_back(shape(DataType::bf16, 16, 16, 16));
  caps.fragment_shapes.push_back(shape(DataType::e4m3, 16, 16, 16));
  return caps;
}

inline DeviceCaps battlemage() {
  DeviceCaps caps = base_device("Intel Arc B580", "intel_xe2");
  caps.limits.min_subgroup_size = 16;
  caps.limits.max_subgroup_size = 32;
  caps.bf16_matrices = true;
  caps.fragment_shapes = {shape(DataType::f16, 8, 16, 16), shape(DataType::bf16, 8, 16, 16)};
  return caps;
}

inline DeviceCaps dg2() {
  DeviceCaps caps = base_device("Intel Arc A770", "intel_xe_hpg");
  caps.limits.min_subgroup_size = 8;
  caps.limits.max_subgroup_size = 32;
  caps.limits.max_subgroups_per_workgroup = 128;
  caps.bf16_matrices = true;
  caps.fragment_shapes = {shape(DataType::f16, 8, 8, 16), shape(DataType::bf16, 8, 8, 16)};
  return caps;
}

inline std::vector<DeviceCaps> all_devices() {
  return {h200(), lavapipe(), navi31(), battlemage(), dg2()};
}

// One of each table, and one without.
inline std::vector<DeviceCaps> tabled_devices() {
  return {h200(),   h100(),   b200(),       rtx4090(), rtx5090(),
          navi31(), navi48(), battlemage(), dg2(),     lavapipe()};
}

inline Problem gemm(std::uint64_t m, std::uint64_t n, std::uint64_t k,
                    DataType type = DataType::f16) {
  const DataType output = type == DataType::s8 ? DataType::f16 : type;
  return {.m = m, .n = n, .k = k, .a = {.type = type}, .b = {.type = type}, .d = {.type = output}};
}

// Groups of rows with a B each, and of K.
inline Problem rows_in_groups(std::uint64_t m, std::uint64_t n, std::uint64_t k,
                              std::uint32_t groups) {
  Problem p = gemm(m, n, k);
  p.grouping = Grouping{.groups = groups, .b = GroupedB::per_group};
  return p;
}

inline Problem depth_in_groups(std::uint64_t m, std::uint64_t n, std::uint64_t k,
                               std::uint32_t groups) {
  Problem p = gemm(m, n, k);
  p.grouping = Grouping{.groups = groups, .along = GroupAlong::k};
  return p;
}

// Two tiles of main loop khr.
inline constexpr const char* small_tile =
    "khr:tile=64x64x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32";
inline constexpr const char* large_tile =
    "khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4";

// For problems that a test knows to be right.
inline ResolvedProblem resolved(const Problem& problem) { return resolve(problem).value(); }
inline Config config(std::string_view text) { return parse_config(text).value(); }

// One of each path, as good tables have them.
inline const Config khr_config =
    config("khr:tile=128x128x32,fragment=16x16x16,subgroups=2x2,subgroup_size=32,subtiles=4");
inline const Config nv_config = config("nv:tile=128x256x32,invocations=256,unroll_k=8");
inline const Config fma_config = config("fma:tile=64x64x16,fragment=8x8");

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Sets a number of one of the configuration's parameters, by the name that messages give it:
// "fragment_n".
inline void set(Config& config, std::string_view field, std::uint32_t value) {
  for (const auto parameters : {common_parameters(), descriptor(config).parameters}) {
    for (const Parameter& parameter : parameters) {
      for (std::size_t i = 0; i < parameter.count; ++i) {
        if (parameter.fields[i] == field) return parameter.set(config, i, value);
      }
    }
  }
  throw std::invalid_argument(to_string(config) + " has no " + std::string(field));
}

// A configuration of any main loop, whose numbers come from anywhere. Names are among those there
// are.
template <class Any>
Config any_config(Any any) {
  const auto loops = main_loops();
  Config config = without_values(loops[any() % loops.size()]->loop);
  for (const auto parameters : {common_parameters(), descriptor(config).parameters}) {
    for (const Parameter& parameter : parameters) {
      const auto names = static_cast<std::uint32_t>(parameter.names.size());
      for (std::size_t i = 0; i < parameter.count; ++i) {
        const std::uint32_t value = any();
        parameter.set(config, i,
                      names != 0              ? value % names
                      : parameter.is_switch() ? value % 2
                                              : value);
      }
    }
  }
  return config;
}

}  // namespace vkgemm::test
