// vkgemm/problem.hpp: the problem to compute. matrix.hpp has its operands, epilogue.hpp what
// follows the product, config.hpp the ways to compute it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vkgemm/config.hpp"
#include "vkgemm/epilogue.hpp"
#include "vkgemm/export.h"
#include "vkgemm/matrix.hpp"

namespace vkgemm {

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

// The type of the offsets of groups.
enum class OffsetType : std::uint8_t { int32, int64 };

// The direction that is divided into groups.
enum class GroupAlong : std::uint8_t { m, k };

// The numbers that say where groups begin and end.
enum class GroupBounds : std::uint8_t {
  offsets,           // groups + 1 offsets: group g is [offsets[g], offsets[g + 1])
  sizes,             // Operands::group_sizes: groups follow each other, and the first begins at 0
  starts_and_sizes,  // group g is [offsets[g], offsets[g] + group_sizes[g]); gaps are allowed
};

// One matrix B for all groups, or one for each.
enum class GroupedB : std::uint8_t { shared, per_group };

// Many products in one, with sizes that only the device knows. Group g is a range of M or of K:
// enum GroupBounds. Groups may have any size, 0 included. Their starts ascend, also those of empty
// groups. With offsets they follow each other without padding. The first may begin after 0, and the
// last may end before the capacity, which is the problem's m or k.
//
// along m (tokens of experts): rows of A, C, D and aux belong to groups. B is one matrix for all,
// or one per group: K×N matrices b.batch_stride apart (not set: contiguous). Rows of no group are
// neither read nor written. The spans of A and D hold all m rows, unless a_rows or d_rows is set. D
// must be row-major. A column-major A is loaded element by element, because groups begin at any
// row.
//
// along k (gradients of weights): each group multiplies its columns of A by its rows of B. Each has
// its own M×N matrix of D, C and aux, batch_stride apart (that of C may be 0). If A or B is
// contiguous along K, it is loaded element by element.
//
// epilogue.bias_batch_stride is the distance between the biases of two groups. With groups of M
// there is one bias per group along N, or one along M for all rows. A tensor along N and a scalar
// are one per group, batch_stride apart (not set: shared by all, but contiguous for sum_columns). A
// tensor along M and a matrix have the rows of all groups. batch must be 1.
//
// Rows by index (mixture of experts), with groups along m. Operands::row_index has a u32 for each
// of the m rows of the product. It says where the row comes from, where it goes, or both:
// - a_rows is not 0: rows of A are gathered. A has a_rows rows, and row i of the product is row
//   row_index[i] / a_terms of A. Epilogue::row_scales are of A's rows. A must be row-major.
// - d_rows is not 0: rows of D are scattered. D has d_rows rows, and row i of the product is stored
//   to row row_index[i] of D. Other rows of D are not written. If two rows have one index, it is
//   unspecified which of them remains.
// - d_rows is not 0, and d_terms > 1 or row_weights is true: rows of the product are added up.
//     D[r] = Σ_t row_weights[r · d_terms + t] · v[i], row_index[i] = r · d_terms + t
//   The order of t is ascending, v is the epilogue's value in f32, and D is rounded once, with its
//   zero_point. Operands::row_weights are f32. A term that no row has is left out. If several rows
//   have one term, the first one counts. All rows of D are written, unless m or groups is 0. The
//   rows v take M·N·4 bytes of the workspace: see max_workspace_bytes.
// A layer of experts needs one array for both products: the tokens' choices of experts, sorted by
// expert. The first product gathers (a_terms: experts of a token), the second adds up (d_terms).
//
// All of the epilogue but zero_point applies to rows of the product: steps, clamp, aux and amax,
// too. C, aux, matrices and vectors along M have the product's rows.
//
// B by index: if b_matrices is not 0, B has b_matrices matrices, and group g is multiplied by
// matrix Operands::b_index[g], a u32. Column scales, the bias along N, tensors along N and scalars
// are those of the matrix.
//
// Offsets and sizes are in device memory, and vkgemm never reads them back. All but
// GroupBounds::offsets add a small dispatch, and a table to the workspace. Bad offsets:
// - vkgemm clamps negative offsets and sizes, and what is beyond the capacity. A group that ends
//   before it begins is empty. So no kernel accesses memory outside the operands.
// - If offsets decrease or groups overlap, it is unspecified which group's result a row holds, or
//   none. If groups are along K and vkgemm copies operands, all of D is unspecified.
// - vkgemm clamps indices to A's rows and B's matrices. A row with an index beyond D's rows, or
//   their terms, is not stored to D.
// - A plan reports bad offsets and indices in the first 4 bytes of its workspace
//   (Plan::workspace_bytes()), unless that is empty because max_workspace_bytes is less than 4.
struct Grouping {
  std::uint32_t groups = 0;  // at most 65535; 0: nothing is computed, which the log reports
  OffsetType offsets = OffsetType::int32;
  GroupAlong along = GroupAlong::m;
  GroupedB b = GroupedB::shared;
  GroupBounds bounds = GroupBounds::offsets;

  // Rows by index, and B by index: above. At most 2^31 - 1 rows, 2^32 - 1 indices. Not supported
  // with either: a step sum_columns; with rows by index: path nv.
  std::uint64_t a_rows = 0;
  std::uint32_t a_terms = 1;
  std::uint64_t d_rows = 0;
  std::uint32_t d_terms = 1;
  bool row_weights = false;
  std::uint32_t b_matrices = 0;  // with GroupedB::per_group

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
  // Changes a row of D to s8 codes, and gives its scale.
  quantise,  // round(v · (127 / max(|v|))), scale max(|v|) / 127
  // Gives one number for each row, as logsumexp does.
  amax,  // max(|v|)
};

// True if the operation gives one number for each row, and D is optional.
constexpr bool is_scalar(RowOp op) noexcept {
  return op >= RowOp::logsumexp && op != RowOp::quantise;
}

// True if the operation writes Operands::row_values.
constexpr bool gives_values(RowOp op) noexcept { return op >= RowOp::logsumexp; }

// A reduction of whole rows of v, the epilogue's value before its cast to D's type. All of it is
// computed in f32 from v itself, never from rounded results. vkgemm keeps the mean of a part of a
// row as two f32 numbers, so that a large mean does not make the variance less accurate. The order
// of additions depends only on N: four columns, four of these fours, then a binary tree up to 1024
// columns, then from left to right. Every configuration reduces the same v to the same bits.
//
// NaN in a row makes the whole row NaN, if D's type has one. Infinities give what PyTorch gives: a
// softmax of a row with +Inf, or with nothing but -Inf, is NaN; logsumexp of nothing but -Inf is
// -Inf. Squares (variance and layer_norm: squares of differences) are added in f32. Their sum
// overflows beyond 3.4e38, which N values of 1.8e19 / sqrt(N) reach: rms_norm, layer_norm and
// l2_normalize of such a row are 0. Squares of values below 1e-23 vanish. Values divided by a norm
// below 1.2e-38 may become Inf.
//
// quantise follows the definition of RowQuantisation, with v as the source: D and row_values have
// the bits that plan_quantise_rows() makes of an f32 D that the same configuration computes. So D
// and row_values are the A and the row_scales (Scales::per_matrix) of an s8 product. d.type must be
// s8. NaN in a row gives codes 0 and scale NaN, Inf gives codes 0 and scale Inf.
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

  // The type of the numbers that logsumexp … quantise give: Operands::row_values, M for each matrix
  // of the batch, contiguous. f32 if op is quantise.
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
// - A and B have one type, unless multiply_as is set. f32 inputs are multiplied in IEEE f32, unless
//   f32_arithmetic or multiply_as names another arithmetic. f16 and bf16 products are accumulated
//   in f32. 8-bit floats are multiplied as f16, exactly: e4m3, e5m2 and f16 count as one type. If
//   the device lists matrices of e4m3 and a table has a configuration, they multiply plain e4m3.
// - s8 products are accumulated in s32, exactly: K is at most 131071. D may be s32, the sums
//   themselves: then no field of the epilogue is set, and there are no gates or row reductions.
// - An s8 A times a quantised B, b.type s8: a_group_k.
// - C, D, aux and tensors may each be f16, bf16, f32, s8, u8, e4m3 or e5m2, bias f16, bf16 or f32.
//   C, D and aux have one layout.
//
// Rounding: the last cast rounds to nearest even. Casts to 8-bit types saturate, also infinities.
// NaN becomes 0 in s8 and u8, and NaN with its sign in e4m3 and e5m2, whose subnormals are exact.
// For bf16 vkgemm rounds itself; for f16 the device's conversion does, to nearest even on every
// driver that the tests ran on. Devices may flush subnormals of inputs and results.
//
// NaN and Inf propagate from A and B, also if alpha is 0; only beta = 0 skips an operand. gelu,
// silu and hard_swish of -Inf are NaN (-Inf · 0), as in PyTorch.
//
// Sizes: m, n, k, batch, outer_batch and every ld are at most 2^31 - 1; strides and addresses have
// 64 bits. If M, N, batch, outer_batch or the number of groups is 0, the plan does nothing,
// but for a batch that is summed. If K is 0, also of a group, then D = epilogue(beta * C).
struct Problem {
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
  std::uint64_t batch = 1;
  // A second dimension of the batch: batch times outer_batch products. Product (o, i) uses the
  // matrices at o * outer_batch_stride + i * batch_stride. Scales per matrix and row_values are
  // contiguous, those of (o, i) at o * batch + i. 1 with a grouping.
  std::uint64_t outer_batch = 1;
  // True: the products of `batch` are added up, in a fixed order, before the epilogue
  // ("batch-reduce GEMM"):
  //   D(o) = epilogue(alpha * Σ_i A(o, i)·B(o, i))
  // A and B have `batch` matrices for each outer index. All other operands have one, and no
  // batch_stride. The rounding error is that of a product with K = batch * k. A batch of 0 is an
  // empty sum, as K = 0. Not supported: a grouping, packed operands, a quantised B. More than one
  // slice of K is supported if matrices follow each other along K.
  bool sum_batch = false;
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
  // whole batch shares a vector or scalar. The vectors of sum_columns are then contiguous.
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

  // Mixed input types: the type in which A and B are multiplied, f16 or bf16. If it is set, A and B
  // may each be f16, bf16, f32, s8, u8, e4m3 or e5m2. vkgemm rounds elements of another type to
  // nearest even, while it loads them or in a copy in the workspace. f32 elements beyond the range
  // of f16 become infinite. 8-bit elements are exact.
  // Context::plan_pack() converts weights once. b.type of a quantised B must be this type. That of
  // a packed B may be its source's type or this type. Not set: A and B have one type. s8: as if it
  // were not set, with a quantised B alone. e4m3: A and B are plain e4m3, and the device must list
  // matrices of it.
  std::optional<DataType> multiply_as = std::nullopt;

  // 8-bit activations: A holds codes of s8, and B, of type s8, is quantised with codes that are
  // integers. Operands::row_scales has ⌈K/a_group_k⌉ scales for each row, row after row:
  //   A(i, k) = row_scales[i, k / a_group_k] · a(i, k)
  // 32, 64, 128, or 0: one scale for all of K, or none. epilogue.row_scales says whether matrices
  // of a batch share the scales. Context::plan_quantise_rows() makes codes and scales.
  //
  // vkgemm adds a·code up in s32 as far as both operands' groups reach: these sums are exact, of
  // at most 128 products if there are groups of A. Scales multiply them in f32, zero points are
  // subtracted from codes, and minima multiply the sums of a. So the result has the errors of A's
  // codes and of f32 sums alone. Main loops khr and fma have kernels.
  //
  // 8-bit floats: a_group_k also scales A of e4m3, e5m2 or f16 beside codes of e4m3 or e5m2, b.type
  // f16. Their products are exact, and sums over groups are of f32.
  std::uint32_t a_group_k = 0;

  // The number of slices of K, and the mode of their addition.
  SplitK split_k = {};

  // The largest workspace (Plan::workspace_bytes()) of a configuration that vkgemm chooses; 0:
  // none. Workspace makes products with few tiles and a deep K faster (split-K), and large or
  // unaligned ones (packed operands). Row reductions may need some, column sums need
  // some.
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

// The enumerator's name.
VKGEMM_API std::string_view to_string(F32Arithmetic arithmetic) noexcept;
VKGEMM_API std::string_view to_string(OffsetType type) noexcept;
VKGEMM_API std::string_view to_string(GroupAlong along) noexcept;
VKGEMM_API std::string_view to_string(GroupedB b) noexcept;
VKGEMM_API std::string_view to_string(GroupBounds bounds) noexcept;
VKGEMM_API std::string_view to_string(RowOp op) noexcept;

// The inverse of to_string; nothing if the text names none of them.
VKGEMM_API std::optional<F32Arithmetic> parse_f32_arithmetic(std::string_view text) noexcept;
VKGEMM_API std::optional<OffsetType> parse_offset_type(std::string_view text) noexcept;
VKGEMM_API std::optional<GroupAlong> parse_group_along(std::string_view text) noexcept;
VKGEMM_API std::optional<GroupBounds> parse_group_bounds(std::string_view text) noexcept;
VKGEMM_API std::optional<RowOp> parse_row_op(std::string_view text) noexcept;

// The problem as the arguments of a `vkgemm run` command line that computes it again.
VKGEMM_API std::string to_command_line(const Problem& problem);

// The size of one offset.
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
