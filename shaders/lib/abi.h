// abi.h: the contract between C++ and GLSL, compiled as both: the blocks of push constants, a
// kernel's parameters each. The constants are in constants.h.
//
// All blocks begin with the two words that tell the chunks of a grid beyond
// maxComputeWorkGroupCount from one another. Addresses and batch strides are bytes, all other sizes
// elements.
#ifndef VKGEMM_ABI_H
#define VKGEMM_ABI_H

#include "constants.h"

#ifdef __cplusplus
#include <cstdint>
namespace vkgemm::gpu {
using uint = std::uint32_t;
using std::uint64_t;
#endif

// gemm.comp, gemm_split.comp, grouped.comp, sum_slices.comp, reduce_tiles.comp.
// A leading dimension is the distance between rows of a row-major operand and between columns of
// a column-major one. C, D and aux are row-major here, since the library transposes the problem if
// not, but for row reductions and gates, which know rows from columns.
struct GemmParams {
    uint first_tile;   // of a chunk of the grid, along x
    uint first_batch;  // along y
    uint64_t a;        // element (0, 0) of the first matrix; so b to aux
    uint64_t b;
    uint64_t c;
    uint64_t d;
    uint64_t bias;
    uint64_t aux;
    uint64_t a_batch;  // between matrices of the batch; so b_batch to aux_batch
    uint64_t b_batch;
    uint64_t c_batch;
    uint64_t d_batch;
    uint64_t bias_batch;
    uint64_t aux_batch;
    uint64_t b_right;     // gated: from b to the right half of B, modulo 2^64
    uint64_t workspace;   // partial results (split_k.glsl), or a word for bad offsets (grouped.glsl)
    uint64_t control;     // words that workgroups share (device_barrier.glsl)
    uint64_t aborts;      // a word that counts barriers that were given up; 0: nobody counts
    uint64_t offsets;     // grouped: where the groups begin
    uint64_t gamma;       // rows: a factor for each column (row_result.glsl)
    uint64_t shift;       // rows: a summand for each column
    uint64_t row_values;  // rows: one number a row, packed over the batch
    uint64_t row_states;  // rows: the workgroups' knowledge of their parts of rows (row_panel.glsl)
    uint m;
    uint n;
    uint k;
    uint batch;  // matrices
    uint lda;
    uint ldb;
    uint ldc;
    uint ldd;
    uint ld_aux;
    float alpha;
    float beta;
    float clamp_min;
    float clamp_max;
    uint slices;      // split-K: slices of K
    uint spin_limit;  // how often a workgroup that waits asks before it gives up
    uint groups;      // grouped: how many
    float eps;        // rows: against division by 0
    uint row_stage;   // rows: ROW_STAGE_*
};

// pack.comp: copies a 16-bit operand that is `width` wide along M or N and `depth` deep.
struct PackParams {
    uint first_tile;
    uint first_batch;
    uint64_t source;  // element (0, 0) of the first matrix
    uint64_t copy;
    uint64_t source_batch;  // between matrices of the batch
    uint64_t copy_batch;
    uint width;
    uint depth;
    uint source_ld;
    uint copy_ld;     // also how wide the copy is
    uint copy_depth;  // how deep the copy is
    uint unused;      // makes the size a multiple of 8
};

// reset.comp: prepares memory that the workgroups of later dispatches share.
struct ResetParams {
    uint first_tile;
    uint first_batch;
    uint64_t control;     // words that become 0
    uint64_t row_states;  // pairs of states of rows that become unknown, 16 bytes each
    uint64_t aborts;      // a word that counts barriers that were given up; 0: nobody counts
    uint control_words;
    uint row_state_pairs;
};

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
    float eps;  // against division by 0
    uint unused;  // makes the size a multiple of 8
};

// merge_states.comp: the numbers of rows from the states that tiles have left.
struct MergeParams {
    uint first_tile;
    uint first_batch;
    uint64_t row_values;  // one number a row, packed over the batch
    uint64_t row_states;  // as reduce_tiles.comp has written them
    uint m;
    uint n;
};

#ifdef __cplusplus
}  // namespace vkgemm::gpu
#endif
#endif
