// legality.cpp: every reason against a configuration that can be known without the device. The
// demands of a main loop or a part of the problem stand with it (loops/, parts/).
#include "kernels/legality.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "device/caps.hpp"
#include "kernels/check.hpp"
#include "kernels/footprint.hpp"
#include "kernels/main_loop.hpp"
#include "kernels/part.hpp"
#include "kernels/parts/pack.hpp"
#include "kernels/parts/rows.hpp"
#include "kernels/steps.hpp"
#include "kernels/tiling.hpp"
#include "kernels/verdicts.hpp"
#include "lib/abi.h"
#include "problem/data_type.hpp"
#include "problem/epilogue_steps.hpp"

namespace vkgemm {

bool multiplies(MainLoop loop, const Input& input, const DeviceCaps& caps) {
  if (!has_kernels(loop, input)) return false;
  if (!loads(caps, input)) return false;
  if (takes_every_input(loop)) return true;
  switch (input.matrix_units) {
    case MatrixUnits::none:
      return false;
    case MatrixUnits::listed_bfloat16:
      return caps.bf16_matrices;
    case MatrixUnits::listed:
      return true;
  }
  return true;
}

std::string why_not_multiplied(MainLoop loop, const Input& input, const DeviceCaps& caps) {
  const std::string_view type = to_string(input.multiplied), path = to_string(path_of(loop));
  if (!takes_every_input(loop) && input.matrix_units == MatrixUnits::none) {
    return concat("input type ", type, " needs true ", type, " arithmetic, which path ", path,
                  " does not have");
  }
  if (!has_kernels(loop, input)) return *why_not_built("gemm", loop, input);
  if (!loads(caps, input)) return concat("input type ", type, " needs ", input.needs);
  return concat("input type ", type, " on path ", path, " needs ", type,
                " cooperative matrices (VK_KHR_shader_bfloat16)");
}

namespace {

// `reason`: as in Case.
bool check_range(const Config& config, const Parameter& parameter, std::string* reason) {
  const auto refuse = [&](const auto&... parts) {
    if (reason != nullptr) *reason = concat(parts...);
    return false;
  };
  for (std::size_t i = 0; i < parameter.count; ++i) {
    const std::uint32_t value = parameter.get(config, i);
    if (!parameter.names.empty()) {
      if (value < parameter.names.size()) continue;
      return refuse(parameter.name, " is ", value, ": no such enumerator");
    }
    if (value >= parameter.min && value <= parameter.max) continue;
    return refuse(parameter.fields[i], " is ", value, ": main loop ", to_string(config.main_loop()),
                  " takes ", parameter.min, " to ", parameter.max);
  }
  return true;
}

// Parameters that a kernel has no use for have one value, so that equal kernels have equal
// configurations.
bool check_unused(const Case& s) {
  const Config& c = s.config;
  const bool barrier = c.reduction_mode == ReductionMode::device_barrier;
  if (c.spin_limit != default_spin_limit && !barrier && c.rows != RowStrategy::panel) {
    return s.refuse("spin_limit is ", c.spin_limit, ": nobody waits, so it must be ",
                    default_spin_limit);
  }
  if (c.workgroups != 0 && !barrier && c.schedule != Schedule::persistent) {
    return s.refuse("workgroups is ", c.workgroups, ": only reduction_mode device_barrier and ",
                    "schedule persistent have a number of their own");
  }
  return true;
}

bool check_input(const Case& s) {
  const MainLoop loop = s.config.main_loop();
  const ResolvedProblem& p = *s.problem;
  if (p.input->is_converted()) {
    const auto refuse = [&](const auto&... why) {
      return s.refuse("f32_arithmetic is ", p.input->arithmetic_name, ": ", why...);
    };
    if (!descriptor(loop).takes_fragments()) {
      return refuse("main loop ", to_string(loop), " doesn't have it, khr_direct does");
    }
    if (!p.a.is_packed() || !p.b.is_packed()) {
      return refuse("A and B become parts where they are packed, pack has to be ab");
    }
  }
  for (const ResolvedMatrix* const operand : {&p.a, &p.b}) {
    if (descriptor(loop).converts || !p.converts(*operand)) continue;
    const std::string_view name = (operand == &p.a) != p.transposed ? "a" : "b";
    return s.refuse(name, ".type is ", to_string(operand->type), " and multiply_as is ",
                    to_string(p.input_type()), ": main loop ", to_string(loop),
                    " doesn't convert, pack has to name it");
  }
  return multiplies(loop, *p.input, s.caps) ||
         s.refuse([&] { return why_not_multiplied(loop, *p.input, s.caps); });
}

// Sums over a batch: the kernels add the products of whole matrices, as they lie in memory.
bool check_sum(const Case& s) {
  const ResolvedProblem& p = *s.problem;
  if (p.summed == 1) return true;
  if (s.config.slices > 1)
    return s.refuse("slices is ", s.config.slices, ": with sum_batch it must be 1");
  if (p.a.is_packed() || p.b.is_packed())
    return s.refuse("pack is not none: with sum_batch A and B are loaded as they are");
  return true;
}

// Operands of 8 bits, but for s8 that is multiplied as s8.
bool check_bytes(const Case& s) {
  if (s.caps.int8_arithmetic) return true;
  const auto refuse = [&](std::string_view name, DataType type) {
    return s.refuse(name, ".type is ", to_string(type), ": it needs ", byte_features);
  };
  const ResolvedProblem& p = *s.problem;
  // Copies convert what the product then takes as it is.
  const ResolvedProblem& asked = s.computation.asked();
  if (asked.converts_bytes(asked.a)) return refuse(asked.transposed ? "b" : "a", asked.a.type);
  if (asked.converts_bytes(asked.b)) return refuse(asked.transposed ? "a" : "b", asked.b.type);
  if (p.has_d() && is_byte(p.d.type)) return refuse("d", p.d.type);
  if (p.has_c() && is_byte(p.c.type)) return refuse("c", p.c.type);
  if (p.has_aux() && is_byte(p.aux.type)) return refuse("aux", p.aux.type);
  for (std::size_t i = 0; i < most_tensors; ++i) {
    const DataType type = p.tensors[i].type;
    const bool is_mask = p.epilogue.tensors[i] == TensorShape::mask;  // loaded by words
    if (has_tensor(p.epilogue, i) && !is_mask && is_byte(type))
      return refuse(tensor_names[i], type);
  }
  return true;
}

bool check_registers(const Case& s) {
  const Config& c = s.config;
  const std::uint32_t accumulators = accumulator_count(c);
  const std::uint32_t most = descriptor(c).most_accumulators;
  if (accumulators <= most) return true;
  return s.refuse("tile ", tile_of(c), " needs ", accumulators, " accumulators in each of ",
                  invocations(c), " invocations, at most ", most,
                  " stay in registers of main loop ", to_string(c.main_loop()));
}

bool check_limits(const Case& s) {
  const Config& c = s.config;
  const Limits& limits = s.caps.limits;
  if (invocations(c) > limits.max_invocations) {
    return s.refuse("invocations is ", invocations(c), ", the device has at most ",
                    limits.max_invocations);
  }
  const std::uint64_t shared = shared_memory_bytes(c, *s.problem, s.caps);
  if (shared > limits.max_shared_memory_bytes) {
    return s.refuse("tile ", tile_of(c), " needs ", shared,
                    " bytes of shared memory, the device has ", limits.max_shared_memory_bytes);
  }
  if (parameters_in_memory(limits) && c.path() != Path::fma) {
    return s.refuse("parameters take ", gpu::most_parameter_bytes,
                    " bytes of push constants, the device has ", limits.max_push_constant_bytes,
                    "; path ", to_string(c.path()), " doesn't read them in memory");
  }
  return true;
}

bool check_grid(const Case& s) {
  const Config& c = s.config;
  const ResolvedProblem& p = *s.problem;
  const std::uint64_t tiles = tile_count(c, p);
  constexpr std::uint64_t most_tiles = std::numeric_limits<std::int32_t>::max();
  if (tiles > most_tiles) {
    return s.refuse("tile ", tile_of(c), " cuts D into ", tiles, " tiles, at most ", most_tiles,
                    " can be numbered");
  }
  // The band that a tile belongs to is found by division in 32 bits.
  const std::uint64_t band = (p.n + d_tile_n(c, p) - 1) / d_tile_n(c, p) * c.swizzle;
  if (band > std::numeric_limits<std::uint32_t>::max()) {
    return s.refuse("swizzle is ", c.swizzle, ": a band of ", band,
                    " tiles cannot be numbered in 32 bits");
  }
  const std::uint64_t dispatches =
      c.schedule == Schedule::persistent ? 1 : dispatch_count(tiles, p.batch, s.caps.limits);
  if (dispatches > most_dispatches / p.repeats) {
    return s.refuse("tile ", tile_of(c), " needs ", dispatches, " dispatches",
                    p.repeats > 1 ? concat(", ", p.repeats, " times") : std::string(), ", at most ",
                    most_dispatches, " are recorded");
  }
  return true;
}

bool check_product(const Case& s) {
  return check_input(s) && check_sum(s) && descriptor(s.config).check(s) && check_registers(s) &&
         check_limits(s) && check_grid(s) && check_verdicts(s);
}

// The checks of a configuration with legal ranges, without which they are not safe.
bool check_in_range(const Case& s) {
  if (!check_unused(s) || !check_bytes(s)) return false;
  for (const Part* part : parts()) {
    if (!part->check(s)) return false;
  }
  Case product = s;
  product.problem = s.computation.product();
  return check_product(product);
}

}  // namespace

bool is_legal(const Config& config, const ResolvedProblem& problem, const Target& target) {
  return has_legal_ranges(config) && is_legal_row(config, problem, target);
}

bool is_legal_row(const Config& config, const ResolvedProblem& problem, const Target& target) {
  return may_be_legal(config, problem, target.caps) &&
         is_legal(Computation(problem, config), target);
}

bool may_be_legal(const Config& config, const ResolvedProblem& problem, const DeviceCaps& caps) {
  return caps.path(config.path()).available && takes_given(config, problem) &&
         (config.rows != RowStrategy::none) == problem.rows.has_value() &&
         invocations(config) != 0 && d_tile_n(config, problem) != 0 &&
         (!descriptor(config).needs_verdict || has_passed(config, inputs_of(problem), caps));
}

bool is_legal(const Computation& computation, const Target& target) {
  const DeviceCaps& caps = target.caps;
  return check_in_range({computation, computation.chunk(), caps}) &&
         !why_refused(target.refused, computation.config(), computation.asked(), caps.architecture);
}

bool has_legal_ranges(const Config& config, std::string* reason) {
  const auto in_range = [&](const Parameter& parameter) {
    return check_range(config, parameter, reason);
  };
  return std::ranges::all_of(common_parameters(), in_range) &&
         std::ranges::all_of(descriptor(config).parameters, in_range);
}

std::optional<std::string> why_illegal(const Config& config, const ResolvedProblem& problem,
                                       const Target& target) {
  const PathSupport& path = target.caps.path(config.path());
  if (!path.available) return concat("path ", to_string(config.path()), " is off: ", path.reason);
  std::string reason;
  if (!has_legal_ranges(config, &reason)) return reason;
  const Computation computation(problem, config);
  if (!check_in_range({computation, computation.chunk(), target.caps, &reason})) return reason;
  return why_refused(target.refused, config, problem, target.caps.architecture);
}

}  // namespace vkgemm
