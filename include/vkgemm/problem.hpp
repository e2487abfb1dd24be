// vkgemm/problem.hpp: what is to be computed, with no word about how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vkgemm/config.hpp"
#include "vkgemm/export.h"
#include "vkgemm/result.hpp"

namespace vkgemm {

// IEEE 754 binary16, bfloat16 and binary32; integers in two's complement, of which s8 is a type of
// A and B, and s32 one of their product.
enum class DataType : std::uint8_t { f16, bf16, f32, s8, s32 };

// The arithmetic of products of f32. All but ieee split each element into 16-bit parts that matrix
// units multiply, which is faster where these are, and add the products in f32 (Ootomo and Yokota,
// "Recovering single precision accuracy from Tensor Cores", 2022; BF16x9 of cuBLAS).
//
//   ieee    multiply-adds of f32.
//   bf16x9  An element is the sum of three bf16, exactly, and all nine products of them are taken:
//           f32's range. Integers are exact if |a|·|b| add up to less than 2^23.
//   bf16x6  The three smallest products are left out, together less than 2^-23 of a·b.
//   f16x3   An element is two f16, but for 2^-23 of it. Three products are taken, so that a product
//           errs by 2^-21 of it. Before that rows of A and columns of B are divided by powers of
//           two, so that their largest are from 2^14 to 2^15, and sums are multiplied by these. So
//           elements below 2^-16 of their row's or column's largest err by 2^-39 of that. Not with
//           groups along K, which would share scales, nor Epilogue::row_scales and column_scales.
//
// Beside that sums are rounded. The products of a step, as many elements as a fragment is deep, are
// added as the matrix units do, which Vulkan doesn't bound, and steps in f32. On an H200, whatever
// K is, bf16x9 errs at most 1.02 times as much as ieee (root mean square), bf16x6 1.4 times, f16x3
// 4 times within its range, or 7 for one or two products; of uniform numbers all three less
// from K = 256 on (bench/results/h200-2026-11-26-f32.md). Where the device takes subnormals for
// zero, elements below 2^-103 lose bits in bf16, else below 2^-110, and in f16x3 those below 2^-28
// of their line's largest. So do lines whose largest is below 2^-100 in f16x3.
//
// NaN and infinities are where ieee has them, but that Inf times less than 2^-133 (f16x3: less than
// 2^-39 of the row's or column's largest) may be NaN, and that sums beyond 0.99 of the largest f32
// may be infinite. Bits differ between arithmetics, and between configurations of one, never
// between runs.
enum class F32Arithmetic : std::uint8_t { ieee, bf16x9, bf16x6, f16x3 };

// In which order the elements of a matrix stand in memory.
enum class Layout : std::uint8_t {
  row_major,  // element (i, j) stands at i * ld + j
  col_major,  // element (i, j) stands at j * ld + i
};

// In which form an operand is given.
enum class Packing : std::uint8_t {
  plain,   // rows or columns
  packed,  // as Context::plan_pack() has it written: for A and B of 16-bit types, of s8, and of f32
           // where Problem::f32_arithmetic isn't ieee
};

// How one operand lies in memory. Units are elements unless a name says bytes.
//
// A packed one lies as Context::packed_layout() says; its type and batch_stride count, layout and
// alignment do not, and ld is an error. One packed B serves every M, batch of A, epilogue and
// group, in the configurations of the main loops that take its order; with B in fragment order
// these copy a plain A to the workspace, or take it as it lies. A packed matrix depends on
// nothing but device and driver, type (of f32 the arithmetic), N and K of B (M and K of A), whether
// a column-major D turns the product round (not with gates or a row reduction), and of a gated
// product whether B is one matrix. Not packed: A of grouped products, and B where groups are along
// K, because groups begin anywhere.
struct Matrix {
  DataType type = DataType::f16;
  Layout layout = Layout::row_major;

  // Leading dimension: elements from one row (row_major) or column (col_major) to the next.
  // Not set: packed, the length of a row or column; for column-major 4-bit codes rounded up to an
  // even number. At least that length; zero is an error.
  std::optional<std::uint64_t> ld = std::nullopt;

  // Elements from one matrix of a batch to the next. Not set: packed, the whole matrix.
  // Zero lets all of a batch share one matrix; for D and aux it is an error if batch > 1.
  // Of a packed operand: whole packed matrices (PackedLayout::matrix_bytes), not set: 1.
  std::optional<std::uint64_t> batch_stride = std::nullopt;

  // A promise: the address bound to this operand is a multiple of this many bytes (a power of two,
  // at least the element's size). 16 lets kernels use 16-byte loads where ld, batch_stride and
  // the row length allow it as well; record() checks the promise.
  std::uint32_t alignment = 16;

  // packed: the caller packed it before (Context::plan_pack()). C, D and aux are plain.
  Packing packing = Packing::plain;

  bool operator==(const Matrix&) const = default;
};

// The codes of a quantised matrix. In memory a 4-bit code shares its byte with the next one along
// K, which has the upper half.
enum class CodeType : std::uint8_t {
  int8,   // two's complement
  int4,   // two's complement, or with zero points 0 … 15
  e4m3,   // 8-bit floats of OCP (OFP8, 2023): ±448, NaN 0x7f and 0xff, no infinities
  e5m2,   // the upper byte of an f16
  mxfp4,  // E2M1 of OCP's microscaling formats (MX, 2023): ±{0, 0.5, 1, 1.5, 2, 3, 4, 6}
};

// Where scales and zero points of a matrix stand before it is packed.
enum class CodeLayout : std::uint8_t {
  separate,     // arrays of their own, a line for each group of lines of the codes
  ggml_blocks,  // in front of 32 codes along K, as in ggml files: q4_0, q8_0, mxfp4
};

// B as codes: an element is scale * (code - zero), computed in f32 and rounded to Matrix::type, to
// nearest even. Where scales multiply sums of A * (code - zero) instead (explain() says which), it
// is not rounded, and these sums must be within f32's range. A group of codes, group_k × group_n,
// shares a scale and a zero point. An infinite scale makes Inf or NaN of its columns.
//
// Only B is quantised, its type and A's are f16 or bf16, and it is packed (Context::plan_pack()).
// Products know type, group_k, scale_type and zeros; the other fields say what is packed.
//
//   separate     Codes lie as the Matrix says, whose ld and batch_stride count codes and whose
//                alignment does not count. 4-bit codes of a row-major B: a row of bytes is two rows
//                of B; of a column-major one ld and batch_stride are even. Scales and zero points
//                (a byte each) lie as B does, without padding: row-major ⌈K/group_k⌉ rows of
//                ⌈columns/group_n⌉, else columns of ⌈K/group_k⌉; batches follow each other.
//   ggml_blocks  B is column-major, K, ld and batch_stride are multiples of 32; of each 32 codes:
//                q4_0 (int4)   2 bytes of scale, f16; 16 bytes, byte i has codes i, + 8, and i + 16
//                q8_0 (int8)   2 bytes of scale, f16; 32 codes
//                mxfp4         1 byte of scale, E8M0; 16 bytes, codes as q4_0 has them
//                (block_q4_0, block_q8_0 and block_mxfp4 in ggml's ggml-common.h)
struct Quantisation {
  CodeType type = CodeType::int8;
  // 32, 64, 128, or 0: all of K. mxfp4 and ggml_blocks: 32, or 0, which means it.
  std::uint32_t group_k = 0;
  std::uint32_t group_n = 1;  // 1, 128, or 0: all columns. mxfp4: 1
  // mxfp4: any, its scales are bytes, E8M0: 2^(byte - 127), 255 is NaN. A device that flushes
  // subnormals takes byte 0 for a scale of 0. If scales multiply sums, codes are multiplied by
  // 2^-14, and sums by 2^14: then such a device returns 0 for results below 2^-112.
  DataType scale_type = DataType::f16;
  bool zeros = false;  // int4: there are zero points, 0 … 15
  CodeLayout layout = CodeLayout::separate;

  bool operator==(const Quantisation&) const = default;
};

// Applied to each element of the result, by its name in PyTorch; gelu by erf, or approximated by
// tanh.
enum class Activation : std::uint8_t { none, relu, gelu_erf, gelu_tanh, silu, sigmoid, tanh };

// The vector that is added to the product, if any.
enum class Bias : std::uint8_t {
  none,
  along_n,  // N values, bias[j] is added to every element of column j
  along_m,  // M values, bias[i] is added to every element of row i
};

// Factors in f32 of the rows or columns of A·B. They stand side by side, those of matrices of a
// batch (along n: of groups of M) one vector behind the other.
enum class Scales : std::uint8_t {
  none,
  shared,      // one vector for the whole batch
  per_matrix,  // one for each matrix; along n with groups of M, for each group
};

// The elementwise epilogue, in this order, in f32 from the accumulator:
//   pre = alpha * (row_scale * column_scale * (A·B)) + beta * C + bias      aux = cast(pre)
//   D   = cast(clamp(activation(pre)))
struct Epilogue {
  float alpha = 1.0f;
  Scales row_scales = Scales::none;  // M factors; of groups of M they are shared: one for each row
  Scales column_scales =
      Scales::none;   // N factors; of a gated product 2N, in the order of its bias
  float beta = 0.0f;  // 0: C is neither bound nor read
  Bias bias = Bias::none;
  DataType bias_type = DataType::f32;
  std::uint64_t bias_batch_stride = 0;  // elements; 0: one bias for the whole batch
  Activation activation = Activation::none;
  bool aux = false;  // also write pre, the value before the activation, to the aux operand
  std::optional<float> clamp_min = std::nullopt;
  std::optional<float> clamp_max = std::nullopt;

  bool operator==(const Epilogue&) const = default;
};

// The function that a gated product applies to l and r, its products with the left and the right
// half of B. Where half of the literature activates one and half the other, this is what PyTorch
// programs do: torch.nn.functional.glu and what follows it (diffusers' GEGLU, rtdl's ReGLU)
// activate the right half; so-called SwiGLU layers, since Llama, the left one. (In the paper that
// the names are from, Shazeer, GLU Variants Improve Transformer, 2020, it is always the first one.)
// For the other way round, e.g. Gemma's gelu(gate) * up, take GatedB::separate, whose spans may
// well be halves of one matrix, and exchange them.
enum class Gate : std::uint8_t {
  sigmoid_tanh,  // sigmoid(l) * tanh(r): WaveNet has tanh of its first half
  geglu_erf,     // l * gelu(r)
  geglu_tanh,    // l * gelu(r), approximated by tanh
  swiglu,        // silu(l) * r: l is Llama's gate_proj, r its up_proj
  reglu,         // l * relu(r)
  glu,           // l * sigmoid(r)
};

// Where the columns of l and r stand in B.
enum class GatedB : std::uint8_t {
  halves,       // B is K×2N: N columns of l, then N of r
  separate,     // two matrices, K×N: Operands::b of l, Operands::b_right of r; both as `b` says
  interleaved,  // B is K×2N: columns 2j and 2j + 1 are of l and r; the same bits as halves
};

// A gated product reads A once for two products, and D has half as many columns as these:
//   l = alpha * A·Bl + bias_l      r = alpha * A·Br + bias_r      aux = cast([l r])
//   D = cast(clamp(gate(l, r)))
// n is N, the columns of D. Everything else that has columns has 2N of them, arranged as in B: aux,
// which is M×2N, and a bias along N (separate: first those of l). A bias along M is added to both.
// A column-major D and aux are stored element by element. Not supported: beta, an activation, a row
// reduction. 2N is at most 2^31 - 1.
// Row-major B, halves: 16 bytes at a time are loaded if N elements are a multiple of 16 bytes, too.
struct Gated {
  Gate gate = Gate::swiglu;
  GatedB b = GatedB::halves;

  bool operator==(const Gated&) const = default;
};

// The type of the offsets of groups.
enum class OffsetType : std::uint8_t { int32, int64 };

// The direction that is divided into groups.
enum class GroupAlong : std::uint8_t { m, k };

// One matrix B for all groups, or one for each.
enum class GroupedB : std::uint8_t { shared, per_group };

// Many products in one, of sizes that only the device knows: group g is
// [offsets[g], offsets[g + 1]) of M or of K. Groups may be empty, of any size, and follow each
// other without padding; the first may begin after 0, and the last may end before the capacity,
// which is the problem's m or k.
//
// along m (tokens of experts): rows of A, C, D and aux belong to groups, and B is one for all, or
// one per group: K×N matrices b.batch_stride apart (not set: packed). Rows of no group are neither
// read nor written, but the spans of A and D hold all m rows, the whole capacity. A column-major D
// is not supported, and a column-major A is loaded element by element, because groups begin at any
// row.
//
// along k (gradients of weights): every group has an M×N matrix D of its own, and C and aux, their
// batch_stride apart (that of C may be 0), and multiplies its columns of A by its rows of B. Where
// K is the direction in which A or B is contiguous, it is loaded element by element.
//
// epilogue.bias_batch_stride goes from one group's bias to the next; with groups of M there is one
// per group along N, or one along M for all rows. batch is 1.
//
// The offsets are groups + 1 numbers in device memory (Operands::offsets). vkgemm never reads them
// back. Offsets that are negative or beyond the capacity are taken for the nearest that is not, and
// a group that ends before it begins is empty. So nothing outside the operands is touched, whatever
// they say; but if they decrease, it is unspecified which group's result a row holds, or none, and
// with operands packed along k (Config::pack_a) what D holds. A plan that packs nothing wants a
// workspace of 4 bytes for telling of bad offsets (Plan::workspace_bytes()), unless
// Problem::max_workspace_bytes is 0 (or less than 4).
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
  // Give one number for each row, and leave D as it is.
  logsumexp,  // log(sum(exp(v)))
  sum,
  max,
  mean,
  variance,  // sum((v - mean)²) / n: not n - 1
};

// True if it gives one number for each row.
constexpr bool is_scalar(RowOp op) noexcept { return op >= RowOp::logsumexp; }

// A reduction of whole rows of v, the value of the epilogue before its cast to D's type. All of it
// is computed in f32 from v itself, never from rounded results. vkgemm keeps the mean of a part of
// a row as two f32 numbers, so that a large mean does not make the variance less accurate. Rows are
// added up in an order that depends on N alone: four columns, four of these fours, then a binary
// tree up to 1024 columns, then from left to right. Every configuration reduces the same v to the
// same bits.
//
// NaN in a row makes the whole row NaN. Infinities give what PyTorch gives: a softmax of a row with
// +Inf, or with nothing but -Inf, is NaN; logsumexp of nothing but -Inf is -Inf. Squares (variance
// and layer_norm: squares of differences) are added in f32. Their sum overflows beyond 3.4e38,
// which N values of 1.8e19 / sqrt(N) reach: rms_norm, layer_norm and l2_normalize of such a row are
// 0. Squares of values below 1e-23 vanish. What is divided by a norm below 1.2e-38 may become Inf.
//
// C, D and aux of a column-major D are accessed element by element. Not with grouping.
struct RowReduction {
  RowOp op = RowOp::rms_norm;

  // Not set: 1e-6 for rms_norm, 1e-5 for layer_norm, 1e-12 for l2_normalize. Others have none.
  std::optional<float> eps = std::nullopt;

  // rms_norm and layer_norm: whether Operands::gamma and Operands::beta are bound, N values each,
  // the same for all rows and the whole batch.
  bool gamma = false;
  bool beta = false;
  DataType vector_type = DataType::f32;

  // The type of the numbers that logsumexp … variance give. They go to Operands::row_values, M for
  // each matrix of the batch, packed.
  DataType value_type = DataType::f32;
  bool store_d = true;  // false: D is neither bound nor written; its layout is still that of C, aux

  bool operator==(const RowReduction&) const = default;
};

// The slices of K that separate workgroups multiply and that are then added, always in the order of
// the slices: the bits depend on how many slices there are, and on nothing else. A request that
// cannot be met is refused by name: more than one slice together with groups, or where
// Problem::max_workspace_bytes is too small for them, and device_barrier once a barrier was given
// up (Context::barrier_aborts()).
struct SplitK {
  std::uint32_t slices = 0;  // 1 … 512; 0: vkgemm chooses, maybe 1
  std::optional<ReductionMode> reduction_mode =
      std::nullopt;  // if there are more than 1; not set: vkgemm chooses

  bool operator==(const SplitK&) const = default;
};

// D = epilogue(alpha * A·B): A is M×K, B is K×N, C, D and aux are M×N, `batch` times. For a gated
// product B and aux have 2N columns: struct Gated.
//
// Types: A and B share one type. f32 inputs are multiplied in true IEEE f32, if f32_arithmetic says
// nothing else; f16 and bf16 products are accumulated in f32, s8 ones in s32: exactly, so that K is
// at most 131071. C, D, aux and bias may each be f16, bf16 or f32; the last cast rounds to nearest
// even. C, D and aux share one layout. D of s8 inputs may be s32, the sums themselves: then no
// field of the epilogue is set, and there are neither gates nor row reductions. NaN and Inf
// propagate, from A and B also where alpha is 0 (only beta = 0 skips an operand). gelu and silu of
// -Inf are NaN (-Inf · 0), as in PyTorch. f16 results are rounded by the device's own conversion:
// to nearest even on every driver that the tests ran on; bf16 by vkgemm itself. Subnormals, as
// inputs and as results, are kept or taken for zero, as the driver likes. M, N, batch or the number
// of groups = 0: nothing is done. K = 0, of a group too: D = epilogue(beta * C). m, n, k, batch and
// every ld are at most 2^31 - 1; strides and addresses are 64-bit throughout.
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

  // How f32 inputs are multiplied; of others it must be ieee. A and B become parts where they are
  // packed: before (Packing::packed), or in the call, which takes a workspace of 4 or 6 bytes for
  // each of their elements, or is refused. Where no table has a configuration of main loop
  // khr_direct that is legal for the parts (such matrices, and a self-test that they passed), ieee
  // is taken. explain() says so, and where ieee is estimated to be faster for plain operands.
  F32Arithmetic f32_arithmetic = F32Arithmetic::ieee;

  // The slices asked of the configuration that vkgemm chooses.
  SplitK split_k = {};

  // The most scratch memory that a plan may want (Plan::workspace_bytes()) whose configuration
  // vkgemm chooses; 0: none. Products with few tiles and a deep K are faster with some (split-K),
  // and so are large or unaligned ones (packed operands). Row reductions may need some.
  std::uint64_t max_workspace_bytes = std::uint64_t{256} << 20;

  // Milliseconds that a dispatch may take, by the estimate times estimate_scale; 0: any. For
  // devices whose driver kills what runs for too long, or that others wait for, e.g. to draw a
  // frame. Long dispatches are cut along whole tiles: the same bits. No fewer workgroups than run
  // at the same time are dispatched, since they would take as long. A configuration that can't be
  // cut (ReductionMode::device_barrier, Schedule::persistent) and would take longer is not chosen;
  // one that the caller chose is recorded as it is, which explain() says. DispatchRange records
  // dispatches into command buffers of their own, for drivers that time whole submissions.
  double max_dispatch_ms = 0.0;

  // How many times as long as estimated this device takes: what max_dispatch_ms is held against.
  // Where no table is of this device (explain() says so), an estimate may be a hundred times too
  // small. Infinity: unknown, dispatches are as short as can be. So the first submissions of a
  // shape are safe, and what they take together on the device, divided by Plan::estimated_ms(), is
  // the scale for the plans of shapes like it that follow. The choice between configurations that
  // can be cut does not depend on it.
  double estimate_scale = 1.0;

  bool operator==(const Problem&) const = default;
};

// Rows of a matrix as codes, s8, and a factor for each row (Context::plan_quantise_rows()): what an
// s8 product takes as A and, with Scales::per_matrix, as row_scales.
//
//   scale = max|row| / 127      code = nearest integer, to even, of x * (127 / max|row|)
//
// in f32, each quotient and product rounded to nearest even: the same bits on every device. Codes
// are -127 … 127, and scale * code differs from x by half a scale, but for roundings.
//
//   zeros         scale 0, codes 0. So are rows whose magnitudes are all below 2^-119 (1.5e-36).
//   NaN           scale NaN, codes 0
//   Inf, no NaN   scale +Inf, codes 0: 0 * Inf makes its row of a product NaN, as a NaN does
//
// Subnormal elements of f16 are kept or taken for zero, as the driver likes. Columns of B become
// codes the same way: a column-major K×N matrix is a row-major one of N rows and K columns, codes
// are B again, column-major, and scales are column_scales.
// rows, columns, batch and every ld are at most 2^31 - 1. rows or batch = 0: nothing is done;
// columns = 0: scales are 0.
struct RowQuantisation {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t batch = 1;

  // Both rows × columns, row_major and plain; ld, batch_stride and alignment as of any operand. The
  // source is f16, bf16 or f32, and its batch_stride may be 0. Padding is neither read nor written.
  // Where addresses, ld and batch_stride of the source are multiples of 16 bytes, and those of the
  // codes of 8, so many are accessed at a time; else it is element by element.
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
VKGEMM_API std::optional<Bias> parse_bias(std::string_view text) noexcept;
VKGEMM_API std::optional<Scales> parse_scales(std::string_view text) noexcept;
VKGEMM_API std::optional<Gate> parse_gate(std::string_view text) noexcept;
VKGEMM_API std::optional<GatedB> parse_gated_b(std::string_view text) noexcept;
VKGEMM_API std::optional<OffsetType> parse_offset_type(std::string_view text) noexcept;
VKGEMM_API std::optional<GroupAlong> parse_group_along(std::string_view text) noexcept;
VKGEMM_API std::optional<RowOp> parse_row_op(std::string_view text) noexcept;

// A quantisation as text: its type, and what is not at the default:
// "int4:group=128:zeros:scales=bf16"; also columns=128 (or all) for group_n, and ggml. The inverse
// names what is wrong with a text.
VKGEMM_API std::string to_string(const Quantisation& quantisation);
VKGEMM_API Result<Quantisation> parse_quantisation(std::string_view text);

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
