#include "kernels/operands.hpp"

#include "kernels/tiling.hpp"
#include "problem/data_type.hpp"

namespace vkgemm {
namespace {

Operand matrix_operand(std::string_view name, DeviceSpan Operands::*span,
                       std::uint64_t Addresses::*address, const ResolvedMatrix& matrix,
                       std::uint64_t batch) {
  const std::uint64_t element = matrix.element_bytes();
  std::uint64_t line_bytes = matrix.contiguous() * element;
  std::uint64_t matrix_pitch = batch > 1 ? matrix.batch_stride * element : 0;
  if (matrix_pitch != 0 && matrix_pitch < matrix.ld * element) {
    // The batch lies side by side within the lines, as attention heads do: one wider piece of line.
    line_bytes += (batch - 1) * matrix_pitch;
    matrix_pitch = 0;
  }
  if (matrix.is_packed()) {
    // Fragments stand along M or N in steps of their depth.
    const std::uint64_t step = (matrix.fragments ? matrix.fragments->k : 1) * element;
    return {.name = name,
            .span = span,
            .address = address,
            .bytes = matrix.bytes,
            .alignment = matrix.alignment,
            .row_step = step,
            .batch_step = matrix.batch_stride * element};
  }
  return {
      .name = name,
      .span = span,
      .address = address,
      .bytes = matrix.bytes,
      .alignment = matrix.alignment,
      .line_bytes = line_bytes,
      .pitch = matrix.ld * element,
      .matrix_pitch = matrix_pitch,
      .row_step = (matrix.layout == Layout::row_major ? matrix.ld : 1) * element,
      .batch_step = matrix.batch_stride * element,
  };
}

// D, C and aux.
Operand result_operand(std::string_view name, DeviceSpan Operands::*span,
                       std::uint64_t Addresses::*address, const ResolvedMatrix& matrix,
                       const ResolvedProblem& problem, bool written) {
  Operand operand = matrix_operand(name, span, address, matrix, problem.batch);
  operand.written = written;
  return operand;
}

void add_inputs(OperandList& out, const ResolvedProblem& p) {
  if (p.k == 0) return;  // neither is read
  const bool swapped = p.transposed;
  out.add(matrix_operand(swapped ? "b" : "a", swapped ? &Operands::b : &Operands::a, &Addresses::a,
                         p.a, p.a_count()));
  Operand b = matrix_operand(swapped ? "a" : "b", swapped ? &Operands::a : &Operands::b,
                             &Addresses::b, p.b, p.b_count());
  b.row_step = 0;
  out.add(b);
  if (!p.is_gated(GatedB::separate)) return;
  b.name = "b_right";
  b.span = &Operands::b_right;
  b.address = &Addresses::b_right;
  b.batch_step = 0;  // it lies as far from b everywhere
  out.add(b);
}

// A transposed problem scales the caller's columns as its rows.
void add_scales(OperandList& out, const ResolvedProblem& p) {
  const auto add = [&](std::string_view name, DeviceSpan Operands::*span,
                       std::uint64_t Addresses::*address, std::uint64_t bytes,
                       std::uint64_t row_step, std::uint64_t batch_step) {
    if (bytes == 0) return;
    out.add({.name = name,
             .span = span,
             .address = address,
             .bytes = bytes,
             .alignment = sizeof(float),
             .row_step = row_step,
             .batch_step = batch_step});
  };
  const auto step = [](Scales scales, std::uint64_t length) {
    return scales == Scales::per_matrix ? length * sizeof(float) : 0;
  };
  const bool swapped = p.transposed;
  add(swapped ? "column_scales" : "row_scales",
      swapped ? &Operands::column_scales : &Operands::row_scales, &Addresses::row_scales,
      p.row_scales_bytes(), sizeof(float), step(p.epilogue.row_scales, p.m));
  add(swapped ? "row_scales" : "column_scales",
      swapped ? &Operands::row_scales : &Operands::column_scales, &Addresses::column_scales,
      p.column_scales_bytes(), 0, step(p.epilogue.column_scales, p.product_n()));
}

void add_row_reduction(OperandList& out, const ResolvedProblem& p) {
  const RowReduction& rows = *p.rows;
  const std::uint32_t vector = size_in_bytes(rows.vector_type);
  if (rows.gamma) {
    out.add({.name = "gamma",
             .span = &Operands::gamma,
             .address = &Addresses::gamma,
             .bytes = p.n * vector,
             .alignment = vector});
  }
  if (rows.beta) {
    out.add({.name = "beta",
             .span = &Operands::beta,
             .address = &Addresses::shift,
             .bytes = p.n * vector,
             .alignment = vector});
  }
  if (is_scalar(rows.op)) {
    const std::uint32_t value = size_in_bytes(rows.value_type);
    out.add({.name = "row_values",
             .span = &Operands::row_values,
             .address = &Addresses::row_values,
             .bytes = p.m * p.batch * value,
             .alignment = value,
             .written = true,
             .row_step = value,
             .batch_step = p.m * value});
  }
}

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

std::uint32_t activation_constant(Activation activation) {
  switch (activation) {
    case Activation::none:
      return ACTIVATION_NONE;
    case Activation::relu:
      return ACTIVATION_RELU;
    case Activation::gelu_erf:
      return ACTIVATION_GELU_ERF;
    case Activation::gelu_tanh:
      return ACTIVATION_GELU_TANH;
    case Activation::silu:
      return ACTIVATION_SILU;
    case Activation::sigmoid:
      return ACTIVATION_SIGMOID;
    case Activation::tanh:
      return ACTIVATION_TANH;
  }
  return ACTIVATION_NONE;
}

bool allows_aux_vectors(const ResolvedProblem& p) {
  const bool right_half = p.gated && p.gated->b != GatedB::interleaved;
  return allows_epilogue_vectors(p.aux) && !(right_half && p.n % 4 != 0);
}

}  // namespace

OperandList operands_of(const ResolvedProblem& p) {
  OperandList out;
  if (p.is_empty()) return out;
  add_inputs(out, p);
  if (p.has_c()) out.add(result_operand("c", &Operands::c, &Addresses::c, p.c, p, false));
  if (p.has_d()) out.add(result_operand("d", &Operands::d, &Addresses::d, p.d, p, true));
  if (p.has_bias()) {
    const std::uint32_t element = size_in_bytes(p.epilogue.bias_type);
    out.add({.name = "bias",
             .span = &Operands::bias,
             .address = &Addresses::bias,
             .bytes = p.bias_bytes(),
             .alignment = element,
             .row_step = p.epilogue.bias == Bias::along_m ? element : 0,
             .batch_step = p.epilogue.bias_batch_stride * element});
  }
  add_scales(out, p);
  if (p.has_aux()) {
    out.add(result_operand("aux", &Operands::aux, &Addresses::aux, p.aux, p, true));
  }
  if (p.rows) add_row_reduction(out, p);
  if (p.grouping) {
    const std::uint32_t element = size_in_bytes(p.grouping->offsets);
    out.add({.name = "offsets",
             .span = &Operands::offsets,
             .address = &Addresses::offsets,
             .bytes = (std::uint64_t{p.grouping->groups} + 1) * element,
             .alignment = element});
  }
  return out;
}

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
    return matrix.line_scales && p.k != 0 ? std::uint32_t{SCALES_OF_PARTS} : scales_constant(given);
  };
  constants.set(SPEC_ROW_SCALES, scales(p.a, e.row_scales));
  constants.set(SPEC_COLUMN_SCALES, scales(p.b, e.column_scales));
  constants.set(SPEC_ACTIVATION, activation_constant(e.activation));
  constants.set(SPEC_CLAMP, e.clamp_min.has_value() || e.clamp_max.has_value());
}

}  // namespace vkgemm
