// abi.h: the contract between C++ and GLSL, compiled as both: the blocks of push constants, a
// kernel's parameters each, and kernels' sizes. The specialization constants are in constants.h.
//
// All blocks begin with the two words that tell the chunks of a grid beyond
// maxComputeWorkGroupCount from one another. Addresses and batch strides are bytes, all other sizes
// elements.
#ifndef VKGEMM_ABI_H
#define VKGEMM_ABI_H

#include "constants.h"

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#include <variant>
namespace vkgemm::gpu {
using uint = std::uint32_t;
using std::uint64_t;
#endif

// gemm.comp, sum_slices.comp. The parameters of every kernel of products begin like this. The words
// that all of them use come first: a dispatch waits for each line of constants that it reads (derived,
// see bench/NOTES.md).
// A leading dimension is the distance between rows of a row-major operand and between columns of
// a column-major one. C, D and aux are row-major here, since the library transposes the problem if
// not, but for row reductions, gates and codes, which know rows from columns.
#define VKGEMM_GEMM_FIELDS                                                                        \
    uint first_tile;  /* of a chunk of the grid, along x */                                       \
    uint first_batch; /* along y */                                                               \
    uint m;                                                                                       \
    uint n;                                                                                       \
    uint k;                                                                                       \
    uint lda;                                                                                     \
    uint ldb;                                                                                     \
    uint ldd;                                                                                     \
    uint64_t a; /* element (0, 0) of the first matrix; so b, d, c, aux */                         \
    uint64_t b;                                                                                   \
    uint64_t d;                                                                                   \
    float alpha;                                                                                  \
    float beta;                                                                                   \
    uint64_t a_batch; /* between matrices of the batch; so b_batch to extra_batch */                \
    uint64_t b_batch;                                                                             \
    uint64_t d_batch;                                                                             \
    uint64_t partial; /* partial results: of slices of K (split_k.glsl), of rows (row_panel.glsl) */ \
    uint slices;      /* split-K: slices of K. reduce_tiles.comp: ROW_STAGE_* */                  \
    uint batch;       /* matrices */                                                              \
    uint64_t c;                                                                                   \
    uint64_t c_batch;                                                                             \
    uint ldc;                                                                                     \
    uint ld_aux;                                                                                  \
    uint64_t bias;                                                                                \
    uint64_t bias_batch;                                                                          \
    uint64_t aux;                                                                                 \
    uint64_t aux_batch;                                                                           \
    uint64_t extra; /* the fourth place for a tensor of the epilogue's steps (PLACE_*), or the \
                       sums of tiles' columns: column_sums.glsl */                               \
    uint64_t extra_batch;                                                                         \
    uint ld_bias; /* of a tensor that stands in the bias' place */                                \
    uint ld_extra;                                                                                \
    float clamp_min;                                                                              \
    float clamp_max;                                                                              \
    uint64_t b_right; /* gated: from b to the right half of B, modulo 2^64 */                     \
    uint64_t row_scales; /* f32: a factor for each row of the first matrix */                     \
    uint64_t column_scales; /* and for each column; of a gated product as its bias */

struct GemmParams {
    VKGEMM_GEMM_FIELDS
};

// VKGEMM_PRODUCT_BLOCK(name): a block that begins with these fields, in C++ as its member `gemm`.
#ifdef __cplusplus
#define VKGEMM_PRODUCT_BLOCK(name) \
    struct name {                  \
        GemmParams gemm;
#else
#define VKGEMM_PRODUCT_BLOCK(name) \
    struct name {                  \
        VKGEMM_GEMM_FIELDS
#endif

// The first words at `control` of a parameter block; behind them one for each tile of each batch.
#define CONTROL_TICKETS 0   // tickets that were taken
#define CONTROL_DONE 1      // tickets whose work is done
#define CONTROL_ENROLLED 2  // workgroups that did it
#define CONTROL_WORDS 4

// Invocations of a workgroup that sums partial results (sum_slices.comp), and how many slices each
// loads before it adds the first.
#define SUM_LOCAL_SIZE 64
#define SUM_UNROLL 8

// gemm_split.comp.
VKGEMM_PRODUCT_BLOCK(SplitParams)
    uint64_t control;  // words that workgroups share (device_barrier.glsl)
    uint64_t aborts;   // a word that counts barriers that were given up; 0: nobody counts
};

// grouped.comp. With rows by index (row_index.glsl) some fields have another meaning, which groups of rows
// have no use for: a_batch is the number of A's rows, d_batch that of D's rows, or of the terms that are added
// up to them, batch that of matrices B, and partial the row of each term.
VKGEMM_PRODUCT_BLOCK(GroupedParams)
    uint64_t offsets;    // where the groups begin
    uint64_t bad_group;  // a word for the lowest group with bad offsets or indices; 0: there is none
    uint groups;
    uint first_row;  // of groups of rows, of which this is a part: rows before it
    uint64_t row_index;  // u32, for each row of the product
    uint64_t b_index;    // u32, for each group
};

// Invocations of the workgroup of group_table.comp.
#define GROUP_TABLE_LOCAL_SIZE 128

// group_table.comp: makes the table of int32 numbers that kernels read: offsets of sizes, or where groups
// begin and, behind that, where they end.
struct GroupTableParams {
    uint first_tile;
    uint first_batch;
    uint64_t given_offsets;
    uint64_t group_sizes;
    uint64_t offsets;    // the table
    uint64_t bad_group;  // as in GroupedParams
    uint groups;
    uint unused;
};

// The row of a term that no row of the product has.
#define NO_ROW 0xffffffffu

// Invocations of a workgroup of sum_rows.comp, an x4 of columns each, and how many terms each loads before it
// adds the first.
#define SUM_ROWS_LOCAL_SIZE 64
#define SUM_ROWS_UNROLL 4

// sum_rows.comp: adds up rows of a product to rows of D.
struct SumRowsParams {
    uint first_tile;
    uint first_batch;
    uint64_t values;       // rows of the product, f32
    uint64_t d;
    uint64_t partial;      // the row of each term, or NO_ROW
    uint64_t row_weights;  // f32, of each term; 0: there are none
    uint n;
    uint values_ld;
    uint ldd;
    uint terms;  // of a row of D
};

// ReduceTilesParams::slices: what a dispatch of reduce_tiles.comp does, one of the first four,
// and whether it does anything.
#define ROW_STAGE_RESIDENT 0    // a tile has whole rows (and ROW_SHARED is 0)
#define ROW_STAGE_PANEL 1       // workgroups with the same rows tell each other, and wait
#define ROW_STAGE_STATISTICS 2  // writes what it knows of the rows; stores only what needs no more
#define ROW_STAGE_APPLY 3       // reads it, and stores
#define ROW_STAGE_MASK 3
#define ROW_STAGE_GUARDED 4     // the last one: only for tiles that were given up

// reduce_tiles.comp.
VKGEMM_PRODUCT_BLOCK(ReduceTilesParams)
    uint64_t control;     // as in SplitParams; so aborts
    uint64_t aborts;
    uint64_t gamma;       // a factor for each column (row_result.glsl)
    uint64_t shift;       // a summand for each column
    uint64_t row_values;  // one number a row, packed over the batch
};

// Elements in both directions that a workgroup of pack.comp or pack_fragments.comp copies, and its
// invocations.
#define PACK_TILE 64
#define PACK_LOCAL_SIZE 256

// pack.comp, pack_fragments.comp: copies a 16-bit operand that is `width` wide along M or N and
// `depth` deep, or both halves of a gated product's B, each of that width. With GROUPED the copy is
// of slots, see pack_slots.glsl.
struct PackParams {
    uint first_tile;
    uint first_batch;
    uint64_t source;  // element (0, 0) of the first matrix
    uint64_t copy;
    uint64_t source_batch;  // between matrices of the batch
    uint64_t copy_batch;
    uint64_t b_right;  // from the left half in the source to the right one, modulo 2^64
    uint width;
    uint depth;
    uint source_ld;
    uint copy_ld;     // also how wide the copy is
    uint copy_depth;  // how deep the copy is
    uint groups;
    uint64_t offsets;  // where the groups begin
    uint candidates;   // groups among which the product's workgroups look for theirs
    uint first_row;    // as in GroupedParams
    uint64_t row_index;  // as in GroupedParams
    uint source_rows;    // of which rows are gathered
};

// pack_codes.comp: brings a quantised B, or both halves of a gated product's, `width` wide and `depth`
// deep each, to the order of quantised.h.
struct PackCodesParams {
    uint first_tile;
    uint first_batch;
    uint64_t source;  // codes of the first matrix
    uint64_t copy;
    uint64_t scales;  // 0: with the codes
    uint64_t zeros;
    uint64_t source_batch;  // between matrices of the batch
    uint64_t copy_batch;
    uint64_t scales_batch;
    uint64_t zeros_batch;
    uint width;
    uint depth;
    uint source_ld;  // bytes
    uint scales_ld;
    uint copy_ld;
    uint copy_depth;
};

// Invocations of a workgroup of quantise_rows.comp, at most; the neighbouring columns that one of them
// takes at a time, and how many times it does so before it begins to read the row again.
#define QUANTISE_LOCAL_SIZE 256
#define QUANTISE_PIECE 8
#define QUANTISE_KEPT 4

// The largest magnitude of codes; and the bits of 2^-119: a row of smaller magnitudes counts as zeros, since
// 127 over the largest, and that over 127, must be normal numbers.
#define QUANTISE_MOST 127
#define QUANTISE_LEAST_BITS 0x04000000u

// quantise_rows.comp: codes of rows, and a scale for each.
struct QuantiseRowsParams {
    uint first_tile;
    uint first_batch;
    uint64_t source;  // element (0, 0) of the first matrix
    uint64_t codes;
    uint64_t scales;  // f32, packed over the batch
    uint64_t source_batch;  // between matrices of the batch
    uint64_t codes_batch;
    uint rows;
    uint columns;
    uint source_ld;
    uint codes_ld;
};

// Invocations of a workgroup of reset.comp, a word each.
#define RESET_LOCAL_SIZE 64

// Bytes of the states that an invocation resets.
#define RESET_PIECE_BYTES 16

// reset.comp: prepares memory that the workgroups of later dispatches share.
struct ResetParams {
    uint first_tile;
    uint first_batch;
    uint64_t control;     // words that become 0
    uint64_t partial;     // states of rows that become unknown
    uint64_t aborts;      // a word that counts barriers that were given up; 0: nobody counts
    uint64_t amax;        // a word that becomes 0; 0: there is none
    uint control_words;
    uint row_state_pieces;  // of RESET_PIECE_BYTES
};

// Invocations of a workgroup of reduce_rows.comp, and how many x4s each keeps.
#define ROW_LOCAL_SIZE 256
#define ROW_LANE_X4 4

// reduce_rows.comp: the second pass over values in memory, f32.
struct ReduceRowsParams {
    uint first_tile;
    uint first_batch;
    uint64_t values;  // element (0, 0) of the first matrix
    uint64_t d;
    uint64_t values_batch;  // between matrices of the batch
    uint64_t d_batch;
    uint64_t gamma;       // a factor for each column
    uint64_t shift;       // a summand for each column
    uint64_t row_values;  // one number a row, packed over the batch
    uint m;
    uint n;
    uint values_ld;
    uint ldd;
};

// Invocations of a workgroup of merge_states.comp, a row each.
#define MERGE_LOCAL_SIZE 64

// merge_states.comp: the numbers of rows from the states that tiles have left.
struct MergeParams {
    uint first_tile;
    uint first_batch;
    uint64_t row_values;  // one number a row, packed over the batch
    uint64_t partial;     // states of rows, as reduce_tiles.comp has written them
    uint m;
    uint n;
};

// Invocations of a workgroup of sum_columns.comp, the x4s of columns that they share, and how many rows
// each loads before it adds the first.
#define COLUMNS_LOCAL_SIZE 128
#define COLUMNS_X4 8
#define COLUMNS_UNROLL 8

// sum_columns.comp: adds the rows of sums that tiles have left.
struct SumColumnsParams {
    uint first_tile;
    uint first_batch;
    uint64_t extra;        // row 0 of the first matrix's sums
    uint64_t extra_row;    // between rows
    uint64_t extra_batch;  // between matrices; groups of rows: 0
    uint64_t column_sums;
    uint64_t column_sums_batch;
    uint64_t offsets;  // where groups of rows begin
    uint rows;         // of sums; groups of rows: their capacity in rows of D
    uint n;
    uint groups;
    uint first_row;  // as in GroupedParams
};

// Kernels with PARAMS_IN_MEMORY have these push constants: the words that tell chunks apart, and where
// the block stands.
struct InMemoryParams {
    uint first_tile;
    uint first_batch;
    uint64_t parameters;
};

// Words of a block that carry.comp takes at a time, and its invocations. Its own block has the bytes of
// push constants that Vulkan guarantees.
#define CARRY_WORDS 27
#define CARRY_LOCAL_SIZE 32

// carry.comp: brings a part of a block to memory.
struct CarryParams {
    uint first_tile;
    uint first_batch;
    uint64_t parameters;  // where the part stands there
    uint count;           // of its words
    uint words[CARRY_WORDS];
};

#ifdef __cplusplus
// Every block of a step.
using Parameters = std::variant<GemmParams, SplitParams, GroupedParams, ReduceTilesParams,
                                PackParams, PackCodesParams, QuantiseRowsParams, ResetParams,
                                ReduceRowsParams, MergeParams, SumColumnsParams, SumRowsParams,
                                GroupTableParams>;

// The operands that a caller binds, by the names of the members of Operands and VkgemmOperands:
// those of products, then those of plans that prepare them. The workspace is none of them.
// src/problem/operands.cpp has a row for each.
#define VKGEMM_OPERANDS(X) \
    X(a) \
    X(b) \
    X(b_right) \
    X(c) \
    X(d) \
    X(bias) \
    X(row_scales) \
    X(column_scales) \
    X(aux) \
    X(gamma) \
    X(beta) \
    X(row_values) \
    X(offsets) \
    X(t0) \
    X(t1) \
    X(t2) \
    X(t3) \
    X(group_sizes) \
    X(row_index) \
    X(row_weights) \
    X(b_index) \
    X(source) \
    X(codes) \
    X(scales) \
    X(zeros) \
    X(packed)

// Every address that a block may have, by the name that it has there.
#define VKGEMM_ADDRESSES(X) \
    X(a) /* of the problem as it is solved, which may be the caller's transposed; so b … */ \
    X(b) \
    X(c) \
    X(d) \
    X(bias) \
    X(aux) \
    X(extra) /* a tensor, or a part of the workspace */ \
    X(column_sums) \
    X(amax) \
    X(row_scales) \
    X(column_scales) \
    X(offsets) /* of the caller, or a table in the workspace */ \
    X(given_offsets) /* what the table is made of */ \
    X(group_sizes) \
    X(row_index) \
    X(row_weights) \
    X(b_index) \
    X(gamma) \
    X(shift) \
    X(row_values) \
    X(bad_group) /* parts of the workspace; so partial … values */ \
    X(partial) \
    X(control) \
    X(values) \
    X(parameters) /* the block of a kernel that reads it in memory */ \
    X(source) /* of a copy: what it reads and what it writes */ \
    X(copy) \
    X(codes) \
    X(scales) \
    X(zeros) \
    X(aborts) /* the context's */

// The largest block. A device with fewer push constants has the blocks of products in memory.
inline constexpr std::size_t most_parameter_bytes = sizeof(ReduceTilesParams);
}  // namespace vkgemm::gpu
#endif
#endif
