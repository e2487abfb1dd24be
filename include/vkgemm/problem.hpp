// vkgemm/problem.hpp: the problem to compute. config.hpp has the ways to compute it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vkgemm/config.hpp"
#include "vkgemm/export.h"
#include "vkgemm/result.hpp"

namespace vkgemm {

// IEEE 754 binary16, bfloat16 and binary32, and integers in two's complement. s8 is a type of A and
// B, s32 the type of their product.
enum class DataType : std::uint8_t { f16, bf16, f32, s8, s32 };

// The arithmetic of f32 products. All but ieee split each element into 16-bit parts, multiply the
// parts on matrix units, and add the products in f32. This is faster on devices with fast matrix
// units. Source: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022;
// BF16x9 of cuBLAS.
//
//   ieee    f32 multiply-adds.
//   bf16x9  Each element is the exact sum of three bf16 parts. All nine products are kept, so the
//           range is that of f32. Integers are exact if the sum of |a|·|b| is below 2^23.
//   bf16x6  The three smallest products are dropped. Relative error 2^-23.
//   f16x3   Each element is split into two f16 parts (relative error 2^-23), and three of the four
//           products are kept (relative error 2^-21). Rows of A and columns of B are first scaled
//           by powers of two, so that their largest element is in [2^14, 2^15), and the result is
//           scaled back. Elements smaller than 2^-16 of the largest in their row or column are less
//           accurate: their absolute error is 2^-39 of that largest element. Not supported: groups
//           along K, Epilogue::row_scales and column_scales.
//
// Sums are rounded, too. Matrix units add the products of one step, whose error Vulkan does not
// bound; vkgemm adds the steps in f32. Measured on an H200, RMS error relative to ieee for any K:
// bf16x9 at most 1.02, bf16x6 1.4, f16x3 4 within its range (7 for K = 1 or 2). With uniformly
// distributed inputs all three are more accurate than ieee for K >= 256
// (bench/results/h200-2026-11-26-f32.md).
//
// Small elements lose bits. With bf16 parts, elements below 2^-110 do, or 2^-103 on devices that
// flush subnormals. On such devices f16x3 loses bits below 2^-28 of the largest element in a row or
// column, too. So do its rows and columns whose largest element is below 2^-100.
//
// NaN and infinities are those of ieee, with two exceptions. Inf times an element below 2^-133 may
// be NaN (f16x3: below 2^-39 of the largest in its row or column). Sums beyond 0.99 of the largest
// f32 may be infinite. The bits differ between arithmetics, and between configurations of one
// arithmetic, but never between runs.
enum class F32Arithmetic : std::uint8_t { ieee, bf16x9, bf16x6, f16x3 };

// The order of the elements of a matrix in memory.
enum class Layout : std::uint8_t {
  row_major,  // element (i, j) is at i * ld + j
  col_major,  // element (i, j) is at j * ld + i
};

// The form of an operand.
enum class Packing : std::uint8_t {
  plain,   // rows or columns
  packed,  // as Context::plan_pack() writes it, in the device's order (see packed_layout()). For A
           // and B of 16-bit types and s8, and of f32 if Problem::f32_arithmetic is not ieee
  packed_rows,  // in rows, on every device: packed gives the same bytes where rows are the device's
                // order. Not for s8 and f32. See packing_of()
  packed_fragments,  // in fragments: unsupported if main loop khr_direct is not legal here
};

// The memory layout of one operand. Units are elements unless a name says bytes.
//
// A packed operand has the layout of Context::packed_layout(). vkgemm reads its type and
// batch_stride, and ignores its layout and alignment. A set ld is an error. One packed B serves
// every M, batch of A, epilogue and group. With B in fragment order, vkgemm copies a plain A to the
// workspace or reads it in place.
//
// A packed matrix is valid for
// - one device and driver, one type (f32: one arithmetic), one N and K (for A one M and K);
// - one value of d.layout, unless there is a gate, a row reduction or a quantised B;
// - for a quantised B, one type of codes, group_k, scale_type and zeros;
// - for gated products, one matrix B or two.
//
// Not packed: A of grouped products, and B if groups are along K, because groups begin anywhere.
struct Matrix {
  DataType type = DataType::f16;
  Layout layout = Layout::row_major;

  // Leading dimension: elements from one row (row_major) or column (col_major) to the next.
  // Not set: packed, the length of a row or column; for column-major 4-bit codes rounded up to an
  // even number. At least that length; zero is an error.
  std::optional<std::uint64_t> ld = std::nullopt;

  // Elements from one matrix of a batch to the next. Not set: packed, the whole matrix.
  // Zero: the whole batch shares one matrix, which is an error for D and aux if batch > 1. For a
  // packed operand the unit is one packed matrix (PackedLayout::matrix_bytes); not set: 1.
  std::optional<std::uint64_t> batch_stride = std::nullopt;

  // A promise, which record() checks: the address bound to this operand is a multiple of this many
  // bytes. A power of two, at least the element's size. With 16, kernels use 16-byte loads if ld,
  // batch_stride and the row length also allow it.
  std::uint32_t alignment = 16;

  // All but plain: the caller packed it (Context::plan_pack()). C, D and aux must be plain.
  Packing packing = Packing::plain;

  bool operator==(const Matrix&) const = default;
};

// The codes of a quantised matrix. Two 4-bit codes that are neighbours along K share a byte: the
// second one is the upper half.
enum class CodeType : std::uint8_t {
  int8,   // two's complement
  int4,   // two's complement, or with zero points 0 … 15
  e4m3,   // 8-bit floats of OCP (OFP8, 2023): ±448, NaN 0x7f and 0xff, no infinities
  e5m2,   // the upper byte of an f16
  mxfp4,  // E2M1 of OCP's microscaling formats (MX, 2023): ±{0, 0.5, 1, 1.5, 2, 3, 4, 6}
};

// The place of scales and zero points before a matrix is packed.
enum class CodeLayout : std::uint8_t {
  separate,     // arrays of their own, with a line for each group of lines of the codes
  ggml_blocks,  // before each 32 codes along K, as in ggml files: q4_0, q8_0, mxfp4
};

// B as codes. An element is scale * (code - zero), computed in f32 and rounded to Matrix::type, to
// nearest even. Some configurations multiply sums of A * (code - zero) by the scale instead, and
// explain() says so. Then elements are not rounded, but these sums must be finite in f32. A group
// of group_k × group_n codes shares a scale and a zero point. An infinite scale makes Inf or NaN of
// its columns.
//
// Only B can be quantised. Its type and A's are f16 or bf16, and it must be packed
// (Context::plan_pack()). Products read type, group_k, scale_type and zeros; packing reads the
// other fields, too.
//
//   separate     Codes have the layout of the Matrix, whose ld and batch_stride count codes; its
//                alignment does not count. For 4-bit codes of a row-major B, a row of bytes is two
//                rows of B; for a column-major B, ld and batch_stride must be even. Scales and zero
//                points (one byte each) have B's layout, without padding: row-major ⌈K/group_k⌉
//                rows of ⌈columns/group_n⌉, otherwise columns of ⌈K/group_k⌉. Batches are
//                contiguous.
//   ggml_blocks  B is column-major; K, ld and batch_stride are multiples of 32. Each 32 codes are:
//                q4_0 (int4)   2 bytes of scale, f16; 16 bytes, byte i has codes i, + 8, and i + 16
//                q8_0 (int8)   2 bytes of scale, f16; 32 codes
//                mxfp4         1 byte of scale, E8M0; 16 bytes, codes as q4_0 has them
//                (block_q4_0, block_q8_0 and block_mxfp4 in ggml's ggml-common.h)
struct Quantisation {
  CodeType type = CodeType::int8;
  // 32, 64, 128, or 0: all of K. mxfp4 and ggml_blocks: 32; 0 means 32, too.
  std::uint32_t group_k = 0;
  std::uint32_t group_n = 1;  // 1, 128, or 0: all columns. mxfp4: 1
  // mxfp4 ignores it: its scales are bytes, E8M0: 2^(byte - 127), 255 is NaN. On a device that
  // flushes subnormals, byte 0 is a scale of 0. If scales multiply sums, codes are multiplied by
  // 2^-14 and sums by 2^14: then such a device returns 0 for results below 2^-112.
  DataType scale_type = DataType::f16;
  bool zeros = false;  // int4: there are zero points, 0 … 15
  CodeLayout layout = CodeLayout::separate;

  bool operator==(const Quantisation&) const = default;
};

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
};

// The largest number of steps, and of tensors.
inline constexpr std::size_t most_steps = 8;
inline constexpr std::size_t most_tensors = 4;  // like most_steps

// One step of an epilogue, in f32. add, subtract and multiply round once. A division has Vulkan's
// error (2.5 ULP), a function that of the device. Devices may flush subnormals.
//
// Derivatives at corners: relu'(0) = 0, leaky_relu'(0) = number, elu'(0) = number, abs'(0) = 0,
// hard_swish'(-3) = 0, hard_swish'(3) = 1. gelu' and silu' of ±infinity are NaN.
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
  Activation activation = Activation::none;
  bool aux = false;  // also write pre, the value before the activation, to the aux operand
  std::optional<float> clamp_min = std::nullopt;
  std::optional<float> clamp_max = std::nullopt;
  std::array<TensorShape, most_tensors> tensors = {};  // of t0 … t3
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

// The type of the offsets of groups.
enum class OffsetType : std::uint8_t { int32, int64 };

// The direction that is divided into groups.
enum class GroupAlong : std::uint8_t { m, k };

// One matrix B for all groups, or one for each.
enum class GroupedB : std::uint8_t { shared, per_group };

// Many products in one, with sizes that only the device knows. Group g is
// [offsets[g], offsets[g + 1]) of M or of K. Groups may have any size, 0 included, and follow each
// other without padding. The first may begin after 0, and the last may end before the capacity,
// which is the problem's m or k.
//
// along m (tokens of experts): rows of A, C, D and aux belong to groups. B is one matrix for all,
// or one per group: K×N matrices b.batch_stride apart (not set: contiguous). Rows of no group are
// neither read nor written, but the spans of A and D hold all m rows. D must be row-major. A
// column-major A is loaded element by element, because groups begin at any row.
//
// along k (gradients of weights): each group multiplies its columns of A by its rows of B. Each has
// its own M×N matrix of D, C and aux, batch_stride apart (that of C may be 0). If A or B is
// contiguous along K, it is loaded element by element.
//
// epilogue.bias_batch_stride is the distance between the biases of two groups. With groups of M
// there is one bias per group along N, or one along M for all rows. A tensor along N and a scalar
// are one per group, batch_stride apart (not set: shared by all). A tensor along M and a matrix
// have the rows of all groups. batch must be 1.
//
// The offsets are groups + 1 numbers in device memory (Operands::offsets), which vkgemm never reads
// back. Bad offsets:
// - vkgemm clamps negative offsets, and those beyond the capacity. A group that ends before it
//   begins is empty. So no kernel accesses memory outside the operands.
// - If offsets decrease, it is unspecified which group's result a row holds, or none.
//   If groups are along K and vkgemm copies operands to the workspace, all of D is unspecified.
// - A plan reports bad offsets in the first 4 bytes of its workspace (Plan::workspace_bytes()),
//   unless Problem::max_workspace_bytes is less than 4.
struct Grouping {
  std::uint32_t groups = 0;  // at most 65535; 0: nothing is computed, which the log reports
  OffsetType offsets = OffsetType::int32;
  GroupAlong along = GroupAlong::m;
  GroupedB b = GroupedB::shared;

  bool operator==(const Grouping&) const = default;
};

// The result that a row reduction computes from each row.
enum class RowOp : std::uint8_t {
  // Change a row of D as a whole; n is N.
  rms_norm,      // v / sqrt(sum(v²) / n + eps) · gamma + beta
  layer_norm,    // (v - mean) / sqrt(variance + eps) · gamma + beta
  softmax,       // exp(v - max) / sum(exp(v - max))
  l2_normalize,  // v / max(sqrt(sum(v²)), eps)
  // Give one number for each row, and do not change D.
  logsumexp,  // log(sum(exp(v)))
  sum,
  max,
  mean,
  variance,  // sum((v - mean)²) / n: not n - 1
};

// True if the operation gives one number for each row.
constexpr bool is_scalar(RowOp op) noexcept { return op >= RowOp::logsumexp; }

// A reduction of whole rows of v, the epilogue's value before its cast to D's type. All of it is
// computed in f32 from v itself, never from rounded results. vkgemm keeps the mean of a part of a
// row as two f32 numbers, so that a large mean does not make the variance less accurate. The order
// of additions depends only on N: four columns, four of these fours, then a binary tree up to 1024
// columns, then from left to right. Every configuration reduces the same v to the same bits.
//
// NaN in a row makes the whole row NaN. Infinities give what PyTorch gives: a softmax of a row with
// +Inf, or with nothing but -Inf, is NaN; logsumexp of nothing but -Inf is -Inf. Squares (variance
// and layer_norm: squares of differences) are added in f32. Their sum overflows beyond 3.4e38,
// which N values of 1.8e19 / sqrt(N) reach: rms_norm, layer_norm and l2_normalize of such a row are
// 0. Squares of values below 1e-23 vanish. Values divided by a norm below 1.2e-38 may become Inf.
//
// If D is column-major, C, D and aux are accessed element by element. Not supported: groups.
struct RowReduction {
  RowOp op = RowOp::rms_norm;

  // Not set: 1e-6 for rms_norm, 1e-5 for layer_norm, 1e-12 for l2_normalize. Others have none.
  std::optional<float> eps = std::nullopt;

  // rms_norm and layer_norm: whether Operands::gamma and Operands::beta are bound, N values each,
  // the same for all rows and the whole batch.
  bool gamma = false;
  bool beta = false;
  DataType vector_type = DataType::f32;

  // The type of the numbers that logsumexp … variance give: Operands::row_values, M for each matrix
  // of the batch, contiguous.
  DataType value_type = DataType::f32;
  bool store_d = true;  // false: D is neither bound nor written; its layout is still that of C, aux

  bool operator==(const RowReduction&) const = default;
};

// Split-K: separate workgroups multiply slices of K, and vkgemm adds them in order. So the bits
// depend only on the number of slices. plan() returns an error that names the cause for
// - more than one slice together with groups;
// - more than one slice if Problem::max_workspace_bytes is too small;
// - device_barrier after an aborted barrier (Context::barrier_aborts()).
struct SplitK {
  std::uint32_t slices = 0;  // 1 … 512; 0: vkgemm chooses, 1 included
  std::optional<ReductionMode> reduction_mode =
      std::nullopt;  // of more than one slice; not set: vkgemm chooses

  bool operator==(const SplitK&) const = default;
};

// D = epilogue(alpha * A·B): A is M×K, B is K×N, C, D and aux are M×N, `batch` times. For a gated
// product B and aux have 2N columns: struct Gated.
//
// Types:
// - A and B have one type. f32 inputs are multiplied in IEEE f32, unless f32_arithmetic names
//   another arithmetic. f16 and bf16 products are accumulated in f32.
// - s8 products are accumulated in s32, exactly: K is at most 131071. D may be s32, the sums
//   themselves: then no field of the epilogue is set, and there are no gates or row reductions.
// - C, D, aux, bias and tensors may each be f16, bf16 or f32. C, D and aux have one layout.
//
// Rounding: the last cast rounds to nearest even. For bf16 vkgemm rounds itself; for f16 the
// device's conversion does, to nearest even on every driver that the tests ran on. Devices may
// flush subnormals of inputs and results.
//
// NaN and Inf propagate from A and B, also if alpha is 0; only beta = 0 skips an operand. gelu,
// silu and hard_swish of -Inf are NaN (-Inf · 0), as in PyTorch.
//
// Sizes: m, n, k, batch and every ld are at most 2^31 - 1; strides and addresses have 64 bits. If
// M, N, batch or the number of groups is 0, the plan does nothing. If K is 0, also of a group, then
// D = epilogue(beta * C).
struct Problem {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t batch = 1;
  Matrix a = {};
  Matrix b = {};
  Matrix c = {};  // used if epilogue.beta != 0
  Matrix d = {};
  Matrix aux = {};  // used if epilogue.aux
  Epilogue epilogue = {};
  std::optional<Quantisation> quantised_b = std::nullopt;
  std::optional<Gated> gated = std::nullopt;
  std::optional<Grouping> grouping = std::nullopt;
  std::optional<RowReduction> row_reduction = std::nullopt;

  // The tensors of epilogue.steps, used if epilogue.tensors gives them a shape. Matrices may have
  // any layout. Vectors and scalars have a type and a batch_stride. If batch_stride is not set, the
  // whole batch shares a vector or scalar.
  Matrix t0 = {};
  Matrix t1 = {};  // like t0
  Matrix t2 = {};  // like t0
  Matrix t3 = {};  // like t0

  // The arithmetic of f32 inputs; for other types it must be ieee. A and B are split into parts
  // when they are packed: beforehand (Packing::packed), or on every call. The latter needs a
  // workspace of 6 bytes per element (f16x3: 4), and is an error if max_workspace_bytes is too
  // small for B. If no table has a legal configuration of main loop khr_direct for the parts,
  // vkgemm uses ieee. explain() says so, and also if ieee is estimated to be faster for plain
  // operands.
  F32Arithmetic f32_arithmetic = F32Arithmetic::ieee;

  // The number of slices of K, and the mode of their addition.
  SplitK split_k = {};

  // The largest workspace (Plan::workspace_bytes()) of a configuration that vkgemm chooses; 0:
  // none. Workspace makes products with few tiles and a deep K faster (split-K), and large or
  // unaligned ones (packed operands). Row reductions may need some.
  std::uint64_t max_workspace_bytes = std::uint64_t{256} << 20;

  // The longest time of a dispatch in milliseconds, by the estimate times estimate_scale; 0: any.
  // For drivers with a watchdog, or devices that also draw frames. vkgemm cuts long dispatches
  // along whole tiles, with the same bits. A dispatch has at least as many workgroups as run at the
  // same time, since fewer take as long.
  //
  // vkgemm does not choose a configuration that takes longer and can't be cut
  // (ReductionMode::device_barrier, Schedule::persistent). It records such a configuration uncut if
  // the caller gives it, and explain() says so. DispatchRange records dispatches into several
  // command buffers, for drivers that time whole submissions.
  double max_dispatch_ms = 0.0;

  // The device's time divided by the estimate, for max_dispatch_ms. If no table is for this device
  // (explain() says so), an estimate may be a hundred times too small. Infinity: unknown,
  // dispatches are as short as possible. Use it for the first submission of a shape; then set the
  // time measured on the device divided by Plan::estimated_ms(). The choice between configurations
  // that can be cut does not depend on it.
  double estimate_scale = 1.0;

  bool operator==(const Problem&) const = default;
};

// Rows of a matrix as s8 codes, with a scale for each row (Context::plan_quantise_rows()). The
// codes are A of an s8 product, the scales its row_scales (Scales::per_matrix).
//
//   scale = max|row| / 127      code = nearest integer, to even, of x * (127 / max|row|)
//
// All of it is in f32, each quotient and product rounded to nearest even: the same bits on every
// device. Codes are -127 … 127. scale * code differs from x by at most half a scale, plus rounding.
//
//   zeros         scale 0, codes 0; also rows whose magnitudes are all below 2^-119 (1.5e-36)
//   NaN           scale NaN, codes 0
//   Inf, no NaN   scale +Inf, codes 0: 0 * Inf makes its row of a product NaN, as a NaN does
//
// Devices may flush subnormal elements of f16. To quantise columns of B, treat a column-major K×N
// matrix as a row-major one of N rows and K columns: the codes are a column-major B, the scales its
// column_scales.
//
// rows, columns, batch and every ld are at most 2^31 - 1. If rows or batch is 0, the plan does
// nothing. If columns is 0, scales are 0.
struct RowQuantisation {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t batch = 1;

  // Both are rows × columns, row_major and plain, with any ld, batch_stride and alignment. The
  // source is f16, bf16 or f32, and its batch_stride may be 0. Padding is neither read nor written.
  // Kernels access 16 bytes of the source and 8 of the codes at a time, if addresses, ld and
  // batch_stride are such multiples; otherwise single elements.
  Matrix source = {};
  Matrix codes = {.type = DataType::s8};

  bool operator==(const RowQuantisation&) const = default;
};

// The enumerator's name.
VKGEMM_API std::string_view to_string(DataType type) noexcept;
VKGEMM_API std::string_view to_string(F32Arithmetic arithmetic) noexcept;
VKGEMM_API std::string_view to_string(Layout layout) noexcept;
VKGEMM_API std::string_view to_string(Packing packing) noexcept;
VKGEMM_API std::string_view to_string(CodeType type) noexcept;
VKGEMM_API std::string_view to_string(CodeLayout layout) noexcept;
VKGEMM_API std::string_view to_string(Activation activation) noexcept;
VKGEMM_API std::string_view to_string(StepOp op) noexcept;
VKGEMM_API std::string_view to_string(StepOperand operand) noexcept;
VKGEMM_API std::string_view to_string(TensorShape shape) noexcept;
VKGEMM_API std::string_view to_string(Bias bias) noexcept;
VKGEMM_API std::string_view to_string(Scales scales) noexcept;
VKGEMM_API std::string_view to_string(Gate gate) noexcept;
VKGEMM_API std::string_view to_string(GatedB b) noexcept;
VKGEMM_API std::string_view to_string(OffsetType type) noexcept;
VKGEMM_API std::string_view to_string(GroupAlong along) noexcept;
VKGEMM_API std::string_view to_string(GroupedB b) noexcept;
VKGEMM_API std::string_view to_string(RowOp op) noexcept;

// The inverse of to_string; nothing if the text names none of them.
VKGEMM_API std::optional<DataType> parse_data_type(std::string_view text) noexcept;
VKGEMM_API std::optional<F32Arithmetic> parse_f32_arithmetic(std::string_view text) noexcept;
VKGEMM_API std::optional<Layout> parse_layout(std::string_view text) noexcept;
VKGEMM_API std::optional<CodeType> parse_code_type(std::string_view text) noexcept;
VKGEMM_API std::optional<Activation> parse_activation(std::string_view text) noexcept;
VKGEMM_API std::optional<StepOp> parse_step_op(std::string_view text) noexcept;
VKGEMM_API std::optional<StepOperand> parse_step_operand(std::string_view text) noexcept;
VKGEMM_API std::optional<TensorShape> parse_tensor_shape(std::string_view text) noexcept;
VKGEMM_API std::optional<Bias> parse_bias(std::string_view text) noexcept;
VKGEMM_API std::optional<Scales> parse_scales(std::string_view text) noexcept;
VKGEMM_API std::optional<Gate> parse_gate(std::string_view text) noexcept;
VKGEMM_API std::optional<GatedB> parse_gated_b(std::string_view text) noexcept;
VKGEMM_API std::optional<OffsetType> parse_offset_type(std::string_view text) noexcept;
VKGEMM_API std::optional<GroupAlong> parse_group_along(std::string_view text) noexcept;
VKGEMM_API std::optional<RowOp> parse_row_op(std::string_view text) noexcept;

// A quantisation as text: its type, and the fields that are not at the default:
// "int4:group=128:zeros:scales=bf16". group_n is columns=128 or columns=all,
// CodeLayout::ggml_blocks is ggml. An error of the inverse names the wrong part.
VKGEMM_API std::string to_string(const Quantisation& quantisation);
VKGEMM_API Result<Quantisation> parse_quantisation(std::string_view text);

// A step as text, as the command line has it: "multiply:t0", "add:0.5", "activate:leaky_relu:0.1",
// "derivative:gelu_erf:t1", "store:t2". An error of the inverse names the wrong part.
VKGEMM_API std::string to_string(const EpilogueStep& step);
VKGEMM_API Result<EpilogueStep> parse_epilogue_step(std::string_view text);

// The problem as the arguments of a `vkgemm run` command line that computes it again.
VKGEMM_API std::string to_command_line(const Problem& problem);

// The size of one element.
constexpr std::uint32_t size_in_bytes(DataType type) noexcept {
  switch (type) {
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::f32:
    case DataType::s32:
      return 4;
    case DataType::s8:
      return 1;
  }
  return 0;
}
constexpr std::uint32_t size_in_bytes(OffsetType type) noexcept {
  switch (type) {
    case OffsetType::int32:
      return 4;
    case OffsetType::int64:
      return 8;
  }
  return 0;
}

}  // namespace vkgemm
