#include "kernels/epilogue.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "kernels/tiling.hpp"
#include "lib/epilogue/activation.h"
#include "problem/data_type.hpp"
#include "problem/epilogue_steps.hpp"
#include "problem/operands.hpp"
#include "problem/tensor_places.hpp"

namespace vkgemm {
namespace {

std::uint32_t bias_constant(Bias bias) {
  switch (bias) {
    case Bias::none:
      return BIAS_NONE;
    case Bias::along_n:
      return BIAS_ALONG_N;
    case Bias::along_m:
      return BIAS_ALONG_M;
  }
  return BIAS_NONE;
}

std::uint32_t scales_constant(Scales scales) {
  switch (scales) {
    case Scales::none:
      return SCALES_NONE;
    case Scales::shared:
      return SCALES_SHARED;
    case Scales::per_matrix:
      return SCALES_PER_MATRIX;
  }
  return SCALES_NONE;
}

// An empty sum has no scales: nothing is packed.
std::uint32_t scales_constant(const ResolvedProblem& p, const ResolvedMatrix& matrix,
                              Scales given) {
  return matrix.line_scales() && p.k != 0 ? std::uint32_t{SCALES_OF_PARTS} : scales_constant(given);
}

#define VKGEMM_SAME_VALUE(name, NAME, value) \
  static_assert(static_cast<std::uint32_t>(Activation::name) == (value));
static_assert(static_cast<std::uint32_t>(Activation::none) == ACTIVATION_NONE);
VKGEMM_ACTIVATIONS(VKGEMM_SAME_VALUE)
#undef VKGEMM_SAME_VALUE

// A step as a constant. argument: the number of those before it that no function has taken.
std::uint32_t step_word(const EpilogueStep& step, const ResolvedProblem& p,
                        std::span<const std::uint32_t, most_tensors> places, std::uint32_t argument,
                        bool x4) {
  std::uint32_t word = static_cast<std::uint32_t>(step.op) |
                       static_cast<std::uint32_t>(step.activation) << STEP_ACTIVATION_SHIFT;
  if (step.op == StepOp::argument) word |= argument << STEP_ACTIVATION_SHIFT;
  if (step.op == StepOp::function && p.transposed) word |= 1u << STEP_COL_MAJOR_SHIFT;
  const auto tensor = tensor_of(step);
  if (!tensor) return word;
  const ResolvedMatrix& matrix = p.tensors[*tensor];
  const TensorShape shape = p.epilogue.tensors[*tensor];
  const bool is_matrix = shape == TensorShape::matrix;
  const bool vector = is_matrix && allows_epilogue_vectors(matrix);
  word |= static_cast<std::uint32_t>(shape) << STEP_OPERAND_SHIFT;
  word |= row_of(matrix.type).constant << STEP_TYPE_SHIFT;
  word |= places[*tensor] << STEP_PLACE_SHIFT;
  word |= (is_matrix && matrix.layout == Layout::col_major ? 1u : 0u) << STEP_COL_MAJOR_SHIFT;
  word |= (x4 && vector ? 1u : 0u) << STEP_VECTOR_SHIFT;
  return word;
}

void set_steps(Constants& constants, const ResolvedProblem& p, bool x4) {
  const auto steps = steps_of(p.epilogue);
  const auto places = places_of(p);
  constants.set(SPEC_STEP_COUNT, std::uint64_t{steps.size()});
  constants.set(SPEC_HAS_COLUMN_SUMS, sums_columns(p.epilogue));
  constants.set(SPEC_HAS_AMAX, amax_tensor(p.epilogue).has_value());
  constants.set(SPEC_EPILOGUE_FUNCTION, p.epilogue.function);
  std::uint32_t argument = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    constants.set(SPEC_STEP0 + i, step_word(steps[i], p, places, argument, x4));
    argument = steps[i].op == StepOp::argument   ? argument + 1
               : steps[i].op == StepOp::function ? 0
                                                 : argument;
    constants.set(SPEC_STEP_NUMBER0 + i, std::bit_cast<std::uint32_t>(steps[i].number));
  }
  const auto ahead = tensor_in_place_of_c(p);
  if (!ahead) return;
  const auto reads = [&](const EpilogueStep& step) { return tensor_of(step) == ahead; };
  constants.set(SPEC_C_STEP, std::uint64_t(std::ranges::find_if(steps, reads) - steps.begin() + 1));
  const bool is_mask = p.epilogue.tensors[*ahead] == TensorShape::mask;
  constants.set(SPEC_C_VECTOR, x4 && (is_mask || allows_epilogue_vectors(p.tensors[*ahead])));
}

#define VKGEMM_SAME_STEP(name, NAME) \
  static_assert(static_cast<std::uint32_t>(StepOp::name) == (STEP_##NAME));
VKGEMM_SAME_STEP(none, NONE)
VKGEMM_STEP_OPS(VKGEMM_SAME_STEP)
#undef VKGEMM_SAME_STEP
#define VKGEMM_SAME_OPERAND(name, NAME) \
  static_assert(static_cast<std::uint32_t>(TensorShape::name) == (OPERAND_##NAME));
VKGEMM_SAME_OPERAND(none, NUMBER)
VKGEMM_SAME_OPERAND(scalar, SCALAR)
VKGEMM_SAME_OPERAND(along_n, ALONG_N)
VKGEMM_SAME_OPERAND(along_m, ALONG_M)
VKGEMM_SAME_OPERAND(matrix, MATRIX)
VKGEMM_SAME_OPERAND(mask, MASK)
#undef VKGEMM_SAME_OPERAND

bool allows_aux_vectors(const ResolvedProblem& p) {
  const bool right_half = p.gated && p.gated->b != GatedB::interleaved;
  return allows_epilogue_vectors(p.aux) && !(right_half && p.n % 4 != 0);
}

}  // namespace

void set_strides(gpu::GemmParams& params, const ResolvedProblem& p) {
  Addresses steps;
  for (const Operand& operand : operands_of(p)) steps.*operand.address = operand.batch_step;
  set_batch_strides(params, steps);
  params.lda = narrow(p.a.ld);
  params.ldb = narrow(p.ld_b());
  params.ldd = narrow(p.d.ld);
  if (p.has_c()) params.ldc = narrow(p.c.ld);
  if (p.has_aux()) params.ld_aux = narrow(p.aux.ld);
  const auto places = places_of(p);
  for (std::size_t i = 0; i < most_tensors; ++i) {
    if (!has_tensor(p.epilogue, i)) continue;
    std::uint32_t gpu::GemmParams::*const lds[PLACE_COUNT] = {
        &gpu::GemmParams::ldc, &gpu::GemmParams::ld_aux, &gpu::GemmParams::ld_bias,
        &gpu::GemmParams::ld_extra};
    params.*lds[places[i]] = narrow(p.tensors[i].ld);
  }
}

void set_group_scales(Constants& constants, const ResolvedProblem& p) {
  constants.set(SPEC_ROW_SCALES, scales_constant(p.epilogue.row_scales));
  constants.set(SPEC_A_GROUP_K, p.a_group_k);
}

void set_epilogue(Constants& constants, const ResolvedProblem& p, bool x4) {
  const Epilogue& e = p.epilogue;
  constants.set(SPEC_C_VECTOR, x4 && p.has_c() && allows_epilogue_vectors(p.c));
  constants.set(SPEC_D_VECTOR, x4 && p.has_d() && allows_epilogue_vectors(p.d));
  constants.set(SPEC_AUX_VECTOR, x4 && p.has_aux() && allows_aux_vectors(p));
  constants.set(SPEC_C_TYPE, p.has_c() ? row_of(p.c.type).constant : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_D_TYPE, p.has_d() ? row_of(p.d.type).constant : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_AUX_TYPE,
                p.has_aux() ? row_of(p.aux.type).constant : std::uint32_t{TYPE_NONE});
  constants.set(SPEC_BIAS_TYPE,
                p.has_bias() ? row_of(e.bias_type).constant : std::uint32_t{TYPE_NONE});
  const auto stands_in_columns = [](const ResolvedMatrix& matrix) {
    return matrix.layout == Layout::col_major;
  };
  constants.set(SPEC_C_COL_MAJOR,
                (p.has_c() && stands_in_columns(p.c)) || (p.has_aux() && stands_in_columns(p.aux)));
  constants.set(SPEC_D_COL_MAJOR, p.has_d() && stands_in_columns(p.d));
  constants.set(SPEC_BIAS, bias_constant(e.bias));
  constants.set(SPEC_ROW_SCALES, p.a_group_k != 0 ? std::uint32_t{SCALES_NONE}
                                                  : scales_constant(p, p.a, e.row_scales));
  constants.set(SPEC_COLUMN_SCALES, scales_constant(p, p.b, e.column_scales));
  constants.set(SPEC_ACTIVATION, static_cast<std::uint32_t>(e.activation));
  constants.set(SPEC_CLAMP, e.clamp_min.has_value() || e.clamp_max.has_value());
  bool bytes = (p.has_c() && is_byte(p.c.type)) || (p.has_d() && is_byte(p.d.type)) ||
               (p.has_aux() && is_byte(p.aux.type));
  for (std::size_t i = 0; i < most_tensors; ++i) {
    const bool is_mask = e.tensors[i] == TensorShape::mask;
    bytes = bytes || (has_tensor(e, i) && !is_mask && is_byte(p.tensors[i].type));
  }
  if (bytes) constants.set(SPEC_BYTE_TYPES, true);  // A and B may have set it
  constants.set(SPEC_ZERO_POINT, std::bit_cast<std::uint32_t>(e.zero_point));
  set_steps(constants, p, x4);
}

}  // namespace vkgemm
