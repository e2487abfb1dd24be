// vkgemm/epilogue.hpp: the functions of a product's elements: the epilogue and the gates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vkgemm/export.h"
#include "vkgemm/matrix.hpp"
#include "vkgemm/result.hpp"

namespace vkgemm {

// The function that is applied to each element of the result, by its name in PyTorch. gelu uses
// erf, or its approximation by tanh.
enum class Activation : std::uint8_t {
  none,
  relu,
  gelu_erf,
  gelu_tanh,
  silu,
  sigmoid,
  tanh,
  softplus,    // log(1 + exp(v))
  hard_swish,  // v · min(max(v + 3, 0), 6) / 6
  exp,
  abs,
  square,
  sqrt,
  // These take a number, so they must be steps (EpilogueStep::number).
  leaky_relu,  // v < 0 ? number · v : v
  elu,         // v > 0 ? v : number · (exp(v) - 1)
};

// True if the activation takes a number.
constexpr bool takes_number(Activation activation) noexcept {
  return activation >= Activation::leaky_relu;
}

// The vector that is added to the product, if any.
enum class Bias : std::uint8_t {
  none,
  along_n,  // N values, bias[j] is added to every element of column j
  along_m,  // M values, bias[i] is added to every element of row i
};

// f32 factors for the rows or columns of A·B, contiguous. The vectors of a batch (along n: of
// groups of M) are contiguous, too.
enum class Scales : std::uint8_t {
  none,
  shared,      // one vector for the whole batch
  per_matrix,  // one for each matrix; along n with groups of M, for each group
};

// The operation of a step on the value v of each element; x is its operand. NaN in v or x gives
// NaN.
enum class StepOp : std::uint8_t {
  none,
  add,         // v + x
  subtract,    // v - x
  multiply,    // v · x
  divide,      // v / x
  maximum,     // max(v, x)
  minimum,     // min(v, x)
  activate,    // activation(v)
  derivative,  // v · activation'(x): a gradient; x is the activation's input
  store,       // writes cast(v) to the tensor; v stays

  // Writes the sum of v over the rows of D to the tensor, for each column; v stays. The tensor is
  // f32 and along_n. It has a vector for each matrix of a batch and for each group, contiguous
  // unless its batch_stride says otherwise. The order of the sums depends on the configuration
  // alone. At most one step sums columns. The kernel that adds the tiles' sums is a dispatch of its
  // own. It needs a workspace of about M / tile_m · N · 4 bytes for each matrix.
  // - Groups of M: rows of no group are not summed, and the sums of an empty group are 0.
  // - Groups of K: an empty group sums its D, which is the epilogue of 0.
  // - If M is 0, the plan writes no sums.
  // - Not supported: split-K; path nv; a column-major D, unless the product has a gate, a row
  //   reduction or a quantised B.
  sum_columns,

  // Writes the largest |v| of all elements of D to the tensor, for the scale of 8-bit results; v
  // stays. The tensor is f32 and scalar: one number for the batch and for all groups. NaN in any v
  // gives NaN. At most one step finds it. A dispatch before the product sets the number to 0; rows
  // of no group do not count. If the product has no elements, the plan writes nothing. Not
  // supported: path nv. RowOp::amax has one number for each row.
  amax,

  argument,  // x becomes an argument of the next function, up to four; v stays
  function,  // Epilogue::function of v, (i, j) and the arguments before it
};

// A function of an application, in SPIR-V. GLSL:
//   float vkgemm_epilogue(float value, uvec2 at, vec4 x)
// `at` is (row, column) of the element in D; with groups of M a row of all groups. All matrices of
// a batch have the same places. x has the arguments, and 0 beyond them. vkgemm links the function
// into each kernel that needs it, whatever the path, type and main loop. vkgemm_add_epilogue() in
// CMake compiles a file for it.
//
// The function may call others, and have constants and local variables. It must not have global
// variables, access memory, nor use subgroups, textures, derivatives or barriers. Types that need a
// capability are not allowed. Kernels may call it for elements beyond the edges of D, and drop the
// results.
//
// Source of the idea: CUTLASS's epilogue visitor trees, which one compiles with the kernel.
struct EpilogueFunction {
  std::string_view name;                      // in messages
  std::span<const std::uint32_t> spirv = {};  // a module with vkgemm_epilogue; copied
  // For estimates: the function's time for an element, divided by that of one more matrix as C.
  // Measure both on your device. At least 0.
  double cost = 0.0;
};

// The operand of a step: EpilogueStep::number, or one of the problem's tensors.
enum class StepOperand : std::uint8_t { number, t0, t1, t2, t3 };

// The elements of a tensor that belong to element (i, j) of D.
enum class TensorShape : std::uint8_t {
  none,     // there is no such tensor
  scalar,   // one number, in memory
  along_n,  // N values: element j
  along_m,  // M values: element i
  matrix,   // M×N: element (i, j)

  // M×N bits. Bit j % 8 of byte j / 8 of row i belongs to element (i, j) of a row-major D. In a
  // column-major D it is bit i % 8 of byte i / 8 of column j. A step that stores writes v > 0; NaN
  // gives 0. Other steps read 1 or 0: derivative:relu multiplies by it, and a multiply step applies
  // dropout.
  // - type is u8 and layout is D's. ld, batch_stride and alignment are multiples of 4 bytes. The
  //   default ld is 4 · ceil(N / 32), in a column-major D 4 · ceil(M / 32).
  // - Bits beyond a row's last element, up to a multiple of 32, become 0.
  // - Not supported: a column-major D with a gate, a row reduction or a quantised B.
  mask,
};

// The largest number of steps, and of tensors.
inline constexpr std::size_t most_steps = 8;
inline constexpr std::size_t most_tensors = 4;  // like most_steps

// One step of an epilogue, in f32. add, subtract and multiply round once. A division has Vulkan's
// error (2.5 ULP), a function that of the device. Devices may flush subnormals.
//
// Derivatives at corners: relu'(0) = 0, leaky_relu'(0) = number, elu'(0) = number, abs'(0) = 0,
// hard_swish'(-3) = 0, hard_swish'(3) = 1. gelu_erf' of ±infinity is 1 and 0, that of gelu_tanh
// and silu NaN.
struct EpilogueStep {
  StepOp op = StepOp::none;
  Activation activation = Activation::none;  // of activate and derivative
  StepOperand operand = StepOperand::number;

  // The operand if that is StepOperand::number; for leaky_relu and elu their number, which must not
  // be 0. It is compiled into the pipeline: use a scalar tensor for a number that changes often.
  float number = 0.0f;

  bool operator==(const EpilogueStep&) const = default;
};

// The elementwise epilogue, in this order, in f32 from the accumulator:
//   pre = alpha * (row_scale * column_scale * (A·B)) + beta * C + bias      aux = cast(pre)
//   D   = cast(clamp(steps(activation(pre))))
//
// Steps are applied one after the other; the first one that is none ends them. Each tensor that a
// step names must have a shape, and each that has a shape must be named. Problem::t0 … t3 are their
// layouts, Operands::t0 … t3 their memory. An epilogue uses at most four of these: C, aux, bias,
// t0 … t3.
//
//   D = silu(A·B) · T0    problem.t0 = {.type = DataType::f16};
//                         problem.epilogue.activation = Activation::silu;
//                         problem.epilogue.tensors[0] = TensorShape::matrix;
//                         problem.epilogue.steps[0] = {.op = StepOp::multiply,
//                                                      .operand = StepOperand::t0};
struct Epilogue {
  float alpha = 1.0f;
  Scales row_scales = Scales::none;  // M factors; with groups of M shared: one for each row
  Scales column_scales =
      Scales::none;   // N factors; for a gated product 2N, in the order of its bias
  float beta = 0.0f;  // 0: C is neither bound nor read
  Bias bias = Bias::none;
  DataType bias_type = DataType::f32;
  std::uint64_t bias_batch_stride = 0;  // elements; 0: one bias for the whole batch
  // Elements between the biases of consecutive outer indices. Not set: batch * bias_batch_stride.
  std::optional<std::uint64_t> bias_outer_batch_stride = std::nullopt;
  Activation activation = Activation::none;
  bool aux = false;  // also write pre, the value before the activation, to the aux operand
  std::optional<float> clamp_min = std::nullopt;
  std::optional<float> clamp_max = std::nullopt;

  // For D of s8 and u8, within the range of that type: D = saturate(round(v) + zero_point). It is
  // compiled into the pipeline. C, aux and tensors have none.
  std::int32_t zero_point = 0;

  // The function that steps call, as Context::add_function() returned it. 0: none.
  std::uint32_t function = 0;

  // The shapes of t0 … t3, and the steps.
  std::array<TensorShape, most_tensors> tensors = {};
  std::array<EpilogueStep, most_steps> steps = {};

  bool operator==(const Epilogue&) const = default;
};

// The function that a gated product applies to l and r, its products with the left and the right
// half of B. Conventions differ on which half is activated. vkgemm follows PyTorch: SwiGLU
// activates the left half (as Llama does), GLU, GEGLU and ReGLU the right (torch.nn.functional.glu,
// diffusers' GEGLU, rtdl's ReGLU). For the other half, e.g. Gemma's gelu(gate) * up, use
// GatedB::separate and swap the spans, which may be halves of one matrix. Source: Shazeer, "GLU
// Variants Improve Transformer", 2020, which always activates the first half.
enum class Gate : std::uint8_t {
  sigmoid_tanh,  // sigmoid(l) * tanh(r): WaveNet has tanh of its first half
  geglu_erf,     // l * gelu(r)
  geglu_tanh,    // l * gelu(r), approximated by tanh
  swiglu,        // silu(l) * r: l is Llama's gate_proj, r its up_proj
  reglu,         // l * relu(r)
  glu,           // l * sigmoid(r)
};

// The place of the columns of l and r in B.
enum class GatedB : std::uint8_t {
  halves,       // B is K×2N: N columns of l, then N of r
  separate,     // two K×N matrices, both as `b` says: Operands::b for l, Operands::b_right for r
  interleaved,  // B is K×2N: columns 2j are of l, columns 2j + 1 of r; the same bits as halves
};

// A gated product reads A once for two products, and D has half as many columns as these:
//   l = alpha * A·Bl + bias_l      r = alpha * A·Br + bias_r      aux = cast([l r])
//   D = cast(clamp(steps(gate(l, r))))
// n is N, the columns of D and of the steps' tensors. aux is M×2N, with columns arranged as in B. A
// bias along N has 2N values in the same order (separate: first those of l). A bias along M is
// added to both products. A column-major D and aux are stored element by element. Not supported:
// beta, an activation, a row reduction. 2N is at most 2^31 - 1. With a row-major B in halves,
// kernels load 16 bytes at a time only if N elements are also a multiple of 16 bytes.
//
// A gate may have parameters, which are compiled into the pipeline. They apply in this order:
//   swapped   l and r change places in the gate. The other half is activated.
//   limit     The activated half is at most limit, the other half within ±limit.
//   offset    It is added to the half that is not activated.
//   slope     sigmoid(slope · x) replaces sigmoid(x).
// The gate of gpt-oss is swiglu with limit 7, slope 1.702 and offset 1:
//   min(l, 7) · sigmoid(1.702 · min(l, 7)) · (clamp(r, -7, 7) + 1)
struct Gated {
  Gate gate = Gate::swiglu;
  GatedB b = GatedB::halves;
  bool swapped = false;
  float limit = 0.0f;   // 0: none. Not with sigmoid_tanh
  float slope = 1.0f;   // above 0; of swiglu, glu and sigmoid_tanh
  float offset = 0.0f;  // not with sigmoid_tanh

  bool operator==(const Gated&) const = default;
};

// The enumerator's name.
VKGEMM_API std::string_view to_string(Activation activation) noexcept;
VKGEMM_API std::string_view to_string(StepOp op) noexcept;
VKGEMM_API std::string_view to_string(StepOperand operand) noexcept;
VKGEMM_API std::string_view to_string(TensorShape shape) noexcept;
VKGEMM_API std::string_view to_string(Bias bias) noexcept;
VKGEMM_API std::string_view to_string(Scales scales) noexcept;
VKGEMM_API std::string_view to_string(Gate gate) noexcept;
VKGEMM_API std::string_view to_string(GatedB b) noexcept;

// The inverse of to_string; nothing if the text names none of them.
VKGEMM_API std::optional<Activation> parse_activation(std::string_view text) noexcept;
VKGEMM_API std::optional<StepOp> parse_step_op(std::string_view text) noexcept;
VKGEMM_API std::optional<StepOperand> parse_step_operand(std::string_view text) noexcept;
VKGEMM_API std::optional<TensorShape> parse_tensor_shape(std::string_view text) noexcept;
VKGEMM_API std::optional<Bias> parse_bias(std::string_view text) noexcept;
VKGEMM_API std::optional<Scales> parse_scales(std::string_view text) noexcept;
VKGEMM_API std::optional<Gate> parse_gate(std::string_view text) noexcept;
VKGEMM_API std::optional<GatedB> parse_gated_b(std::string_view text) noexcept;

// A step as text, as the command line has it: "multiply:t0", "add:0.5", "activate:leaky_relu:0.1",
// "derivative:gelu_erf:t1", "store:t2", "sum_columns:t3", "amax:t3". An error of the inverse names
// the wrong part.
VKGEMM_API std::string to_string(const EpilogueStep& step);
VKGEMM_API Result<EpilogueStep> parse_epilogue_step(std::string_view text);

}  // namespace vkgemm
