// self_test.cpp: what is tried on a device: kinds of kernels, a configuration for each, its
// products.
#include "self_test.hpp"

#include <algorithm>
#include <array>

#include "../shaders/lib/gemm_params.h"
#include "legality.hpp"
#include "resolved_problem.hpp"
#include "text.hpp"
#include "tuning.hpp"

namespace vkgemm {
namespace {

constexpr std::array all_inputs = {DataType::f16, DataType::bf16, DataType::f32};
constexpr std::array both_layouts = {Layout::row_major, Layout::col_major};

constexpr std::pair<Outcome, std::string_view> outcome_names[] = {
    {Outcome::passed, "passed"},
    {Outcome::wrong_result, "wrong_result"},
    {Outcome::driver_error, "driver_error"},
    {Outcome::device_lost, "device_lost"},
    {Outcome::timed_out, "timed_out"},
    {Outcome::crashed, "crashed"},
    {Outcome::untested, "untested"},
};

void push_unique(std::vector<KernelKind>& kinds, const KernelKind& kind) {
  if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
}

void add_fragment(std::vector<KernelKind>& kinds, const FragmentShape& shape,
                  const DeviceCaps& caps) {
  const Limits& limits = caps.limits;
  const bool fixed = limits.min_subgroup_size == limits.max_subgroup_size;
  if (!fixed && !limits.subgroup_size_control) return;
  for (std::uint64_t size = limits.min_subgroup_size; size != 0 && size <= limits.max_subgroup_size;
       size *= 2) {
    push_unique(kinds, {.path = Path::khr,
                        .input = shape.input,
                        .m = shape.m,
                        .n = shape.n,
                        .k = shape.k,
                        .subgroup_size = static_cast<std::uint32_t>(size)});
  }
}

bool is_multiple(const FragmentShape& fragment, const FlexibleShape& shape) {
  return fragment.input == shape.input && fragment.m % shape.granularity_m == 0 &&
         fragment.n % shape.granularity_n == 0 && fragment.k % shape.granularity_k == 0;
}

// Any multiple is a shape, so those that anybody asks for: the smallest, and what tables propose.
void add_flexible(std::vector<KernelKind>& kinds, const FlexibleShape& shape,
                  const DeviceCaps& caps) {
  const auto add = [&](std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    const FragmentShape fragment{.input = shape.input, .m = m, .n = n, .k = k};
    if (m != 0 && is_multiple(fragment, shape)) add_fragment(kinds, fragment, caps);
  };
  add(shape.granularity_m, shape.granularity_n, shape.granularity_k);
  for (const TuningTable* table :
       {&built_in_table(caps.architecture), &built_in_table("generic")}) {
    for (const TuningRow& row : table->rows) {
      const Config& c = row.config;
      if (c.path == Path::khr) add(c.fragment_m, c.fragment_n, c.fragment_k);
    }
  }
}

// For tiles of these sizes: several tiles, the last ones cut off.
Problem product(const Config& config, DataType input, Layout a, Layout b, bool aligned) {
  // In what a 16-byte load holds of the narrowest types.
  constexpr std::uint64_t group = 8;
  const auto up = [&](std::uint64_t value) { return (value + group - 1) / group * group; };
  const std::uint64_t tile_m = config.tile_m;
  const std::uint64_t tile_n = config.tile_n;
  const std::uint64_t tile_k = config.tile_k;
  const bool odd = !aligned;
  Problem problem{.m = odd ? tile_m + tile_m / 2 + 3 : up(tile_m + group),
                  .n = odd ? 2 * tile_n + 5 : up(2 * tile_n + group),
                  .k = odd ? 3 * tile_k + 1 : up(3 * tile_k + group),
                  .a = {.type = input, .layout = a},
                  .b = {.type = input, .layout = b},
                  .d = {.type = DataType::f32},
                  .max_workspace_bytes = 0};
  const std::uint64_t step = odd ? 2 : group;
  if (problem.n == problem.m) problem.n += step;
  while (problem.k == problem.m || problem.k == problem.n) problem.k += step;
  const auto pad = [&](Matrix& matrix, std::uint64_t rows, std::uint64_t cols,
                       std::uint64_t padding) {
    matrix.ld = (matrix.layout == Layout::row_major ? cols : rows) + (odd ? padding : group);
    matrix.alignment = odd ? size_in_bytes(matrix.type) : 16;
  };
  pad(problem.a, problem.m, problem.k, 3);
  pad(problem.b, problem.k, problem.n, 5);
  pad(problem.d, problem.m, problem.n, 1);
  return problem;
}

DeviceCaps unjudged(const DeviceCaps& caps) {
  DeviceCaps copy = caps;
  copy.verdicts.clear();
  copy.denials.clear();
  return copy;
}

// Tiles of four fragments of 16x16x16 took a CPU's driver more than a minute (lavapipe 26.2.6 on
// two busy cores).
bool compiles_for_long(const KernelKind& kind, const DeviceCaps& caps) {
  return caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU && kind.m * kind.n * kind.k > 512;
}

// The first that is legal is taken.
std::vector<Config> proposals(const KernelKind& kind, const DeviceCaps& caps) {
  // Without it the code is half as long, which counts where a CPU's driver compiles it.
  const bool peel = caps.type != VK_PHYSICAL_DEVICE_TYPE_CPU;
  std::vector<Config> configs;
  switch (kind.path) {
    case Path::khr:
      // Two subgroups that hold two fragments each, if there is room.
      for (const auto& [subgroups, fragments] : {std::pair{2u, 2u}, {2u, 1u}, {1u, 1u}}) {
        if (compiles_for_long(kind, caps) && subgroups * fragments > 1) continue;
        configs.push_back({.path = Path::khr,
                           .tile_m = kind.m * subgroups,
                           .tile_n = kind.n * fragments,
                           .tile_k = kind.k * fragments,
                           .fragment_m = kind.m,
                           .fragment_n = kind.n,
                           .fragment_k = kind.k,
                           .subgroups_m = subgroups,
                           .subgroups_n = 1,
                           .subgroup_size = kind.subgroup_size,
                           .invocations = subgroups * kind.subgroup_size,
                           .swizzle = 2,
                           .peel = peel});
      }
      break;
    case Path::nv:
      for (const std::uint32_t times : {2u, 1u}) {
        configs.push_back({.path = Path::nv,
                           .tile_m = kind.m * times,
                           .tile_n = kind.n * times,
                           .tile_k = kind.k * times,
                           .invocations = kind.invocations,
                           .swizzle = 2,
                           .unroll_k = 2});
      }
      break;
    case Path::fma:
      if (kind.k == THIN_PIECE) {
        configs.push_back(parse_config("fma:tile=3x16x32,fragment=3x8x8,swizzle=2").value());
      } else {
        configs.push_back(parse_config("fma:tile=16x16x8,fragment=4x4,swizzle=2").value());
        configs.back().peel = peel;
      }
      break;
  }
  return configs;
}

}  // namespace

std::string_view to_string(Outcome outcome) noexcept {
  for (const auto& [value, name] : outcome_names) {
    if (value == outcome) return name;
  }
  return "?";
}

std::optional<Outcome> parse_outcome(std::string_view text) noexcept {
  for (const auto& [value, name] : outcome_names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

std::string to_string(const KernelKind& kind) {
  std::string shape = concat(kind.m, 'x', kind.n, 'x', kind.k, ' ', to_string(kind.input));
  switch (kind.path) {
    case Path::nv:
      return concat("path nv, granularity ", shape, ", ", kind.invocations, " invocations");
    case Path::khr:
      return concat("path khr, fragment ", shape, ", subgroups of ", kind.subgroup_size);
    case Path::fma:
      return concat("path fma, ", kind.k == THIN_PIECE ? "few rows, " : "", to_string(kind.input));
  }
  return shape;
}

std::vector<KernelKind> kernel_kinds(const DeviceCaps& caps) {
  std::vector<KernelKind> kinds;
  if (caps.fma.available) {
    for (const DataType input : all_inputs) {
      kinds.push_back({.path = Path::fma, .input = input, .k = 1});
      kinds.push_back({.path = Path::fma, .input = input, .k = THIN_PIECE});
    }
  }
  const auto multiplies = [](const auto& shape) {
    return shape.input != DataType::f32 && shape.accumulator == DataType::f32;
  };
  if (caps.khr.available) {
    for (const FragmentShape& shape : caps.fragment_shapes) {
      if (multiplies(shape)) add_fragment(kinds, shape, caps);
    }
    for (const FlexibleShape& shape : caps.flexible_shapes) {
      if (multiplies(shape) && shape.scope == MatrixScope::subgroup) {
        add_flexible(kinds, shape, caps);
      }
    }
  }
  if (caps.nv.available) {
    for (const FlexibleShape& shape : caps.flexible_shapes) {
      if (!multiplies(shape) || shape.scope != MatrixScope::workgroup) continue;
      push_unique(kinds, {.path = Path::nv,
                          .input = shape.input,
                          .m = shape.granularity_m,
                          .n = shape.granularity_n,
                          .k = shape.granularity_k,
                          .invocations = shape.invocations});
    }
  }
  return kinds;
}

Result<Config> self_test_config(const KernelKind& kind, const DeviceCaps& caps) {
  const DeviceCaps plain = unjudged(caps);
  std::string first_reason;
  for (const Config& config : proposals(kind, caps)) {
    std::optional<std::string> reason;
    for (const Layout a : both_layouts) {
      for (const Layout b : both_layouts) {
        const Result<ResolvedProblem> problem = resolve(product(config, kind.input, a, b, a == b));
        if (!problem) return problem.error();
        if (!reason) reason = why_illegal(config, *problem, plain);
      }
    }
    if (!reason) return config;
    if (first_reason.empty()) first_reason = concat(to_string(config), ": ", *reason);
  }
  return Error{Status::unsupported, first_reason};
}

std::vector<Problem> self_test_problems(const KernelKind& kind, const Config& config,
                                        const DeviceCaps& caps) {
  const bool few = caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  std::vector<Problem> problems;
  for (const Layout a : both_layouts) {
    for (const Layout b : both_layouts) {
      // The two that are left out have A and B in layouts of the others.
      if (few && a != b) continue;
      const bool aligned = few ? a == Layout::row_major : a == b;
      problems.push_back(product(config, kind.input, a, b, aligned));
    }
  }
  return problems;
}

}  // namespace vkgemm
