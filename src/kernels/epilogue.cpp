#include "kernels/epilogue.hpp"

#include "kernels/tiling.hpp"
#include "lib/epilogue/activation.h"
#include "problem/data_type.hpp"
#include "problem/operands.hpp"

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

#define VKGEMM_SAME_VALUE(name, NAME, value) \
  static_assert(static_cast<std::uint32_t>(Activation::name) == (value));
static_assert(static_cast<std::uint32_t>(Activation::none) == ACTIVATION_NONE);
VKGEMM_ACTIVATIONS(VKGEMM_SAME_VALUE)
#undef VKGEMM_SAME_VALUE

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
  // An empty sum has no scales: nothing is packed.
  const auto scales = [&](const ResolvedMatrix& matrix, Scales given) {
    return matrix.line_scales() && p.k != 0 ? std::uint32_t{SCALES_OF_PARTS}
                                            : scales_constant(given);
  };
  constants.set(SPEC_ROW_SCALES, scales(p.a, e.row_scales));
  constants.set(SPEC_COLUMN_SCALES, scales(p.b, e.column_scales));
  constants.set(SPEC_ACTIVATION, static_cast<std::uint32_t>(e.activation));
  constants.set(SPEC_CLAMP, e.clamp_min.has_value() || e.clamp_max.has_value());
}

}  // namespace vkgemm
