// The contract between C++ and GLSL, included by both: the push-constant block, the ids of the
// specialization constants and the values of the enumerations that they carry.
#ifndef VKGEMM_GEMM_PARAMS_H
#define VKGEMM_GEMM_PARAMS_H

#ifdef __cplusplus
#include <cstdint>
namespace vkgemm::gpu {
using uint = std::uint32_t;
using std::uint64_t;
#endif

// One dispatch of a GEMM kernel. Addresses and batch strides are bytes, the rest elements.
// A leading dimension is the distance between rows of a row-major operand and between columns of
// a column-major one. C, D and aux are row-major here, since the library transposes the problem if
// not, but for row reductions and gates, which know rows from columns.
struct GemmParams {
    uint64_t a, b, c, d, bias, aux, workspace;
    uint64_t a_batch, b_batch, c_batch, d_batch, bias_batch, aux_batch;
    uint m, n, k;
    uint lda, ldb, ldc, ldd, ld_aux;
    uint first_tile;   // grids beyond maxComputeWorkGroupCount are dispatched in chunks
    uint first_batch;
    float alpha, beta, clamp_min, clamp_max;
    uint slices;  // of K, see lib/split_k.glsl
    uint batch;
    uint64_t control;  // words that workgroups share, in the workspace: lib/device_barrier.glsl
    uint64_t aborts;   // a word that counts barriers that were given up; 0: nobody counts
    uint spin_limit;   // how often a workgroup asks before it gives up
    uint groups;       // see lib/grouped.glsl
    uint64_t offsets;  // where they begin
    uint64_t gamma, shift;  // of a row reduction, see lib/row_statistics.glsl
    uint64_t row_values;    // one number a row, packed over the batch
    uint64_t row_states;    // what workgroups tell each other of their part of a row
    float eps;
    uint row_stage;  // what a dispatch of reduce_tiles.comp does, and whether anything: ROW_STAGE_*
    uint64_t b_right;  // of a gated product: from b to the right half of B, modulo 2^64
};

// Element types: the values of SPEC_*_TYPE and of the IN_TYPE macro.
#define TYPE_NONE 0
#define TYPE_F16 1
#define TYPE_BF16 2
#define TYPE_F32 3

// The values of the MATRIX_PATH macro. The last two are Path::fma; thin is its kernel for few rows.
#define PATH_NV 1
#define PATH_KHR 2
#define PATH_FMA 3
#define PATH_THIN 4

#define BIAS_NONE 0
#define BIAS_ALONG_N 1
#define BIAS_ALONG_M 2

#define ACTIVATION_NONE 0
#define ACTIVATION_RELU 1
#define ACTIVATION_GELU_ERF 2
#define ACTIVATION_GELU_TANH 3
#define ACTIVATION_SILU 4
#define ACTIVATION_SIGMOID 5
#define ACTIVATION_TANH 6

// Gates: what becomes of the products with the left and the right half of B, see lib/gated.glsl.
#define GATE_NONE 0
#define GATE_SIGMOID_TANH 1
#define GATE_GEGLU_ERF 2
#define GATE_GEGLU_TANH 3
#define GATE_SWIGLU 4
#define GATE_REGLU 5
#define GATE_GLU 6

// What is computed of a row: the values of SPEC_ROW_OP.
#define ROW_OP_NONE 0
#define ROW_OP_RMS_NORM 1
#define ROW_OP_LAYER_NORM 2
#define ROW_OP_SOFTMAX 3
#define ROW_OP_L2_NORMALIZE 4
#define ROW_OP_LOGSUMEXP 5
#define ROW_OP_SUM 6
#define ROW_OP_MAX 7
#define ROW_OP_MEAN 8
#define ROW_OP_VARIANCE 9

// The values of GemmParams::row_stage.
#define ROW_STAGE_RESIDENT 0    // a tile has whole rows (and SPEC_ROW_SHARED is 0)
#define ROW_STAGE_PANEL 1       // workgroups with the same rows tell each other, and wait
#define ROW_STAGE_STATISTICS 2  // writes what it knows of the rows; stores only what needs no more
#define ROW_STAGE_APPLY 3       // reads it, and stores
#define ROW_STAGE_MASK 3
#define ROW_STAGE_GUARDED 4     // the last one: only for tiles that were given up

#define GROUPED_NONE 0
#define GROUPED_ALONG_M 1
#define GROUPED_ALONG_K 2

// Specialization constants: the configuration …
#define SPEC_LOCAL_SIZE 0   // invocations of a workgroup
#define SPEC_TILE_M 1
#define SPEC_TILE_N 2
#define SPEC_TILE_K 3
#define SPEC_FRAGMENT_M 4
#define SPEC_FRAGMENT_N 5
#define SPEC_FRAGMENT_K 6
#define SPEC_SUBGROUPS_M 7
#define SPEC_SUBGROUPS_N 8
#define SPEC_SUBTILES 9
#define SPEC_SWIZZLE 10
#define SPEC_UNROLL_K 11
#define SPEC_PEEL 12
#define SPEC_STAGES 13
#define SPEC_SPLIT 14  // whether a workgroup takes a slice of K only, and who adds them
// … the operands (booleans are 0 or 1) …
#define SPEC_A_COL_MAJOR 15
#define SPEC_B_COL_MAJOR 16
#define SPEC_A_VECTOR 17    // 0: loads element by element. Else 16-byte loads are allowed, and the
#define SPEC_B_VECTOR 18    // value is a power of two of elements that divides the ld
#define SPEC_A_PADDED 19    // rows can be read up to the leading dimension
#define SPEC_B_PADDED 20
#define SPEC_C_VECTOR 21    // 4 elements at once allowed
#define SPEC_D_VECTOR 22
#define SPEC_AUX_VECTOR 23
#define SPEC_STATIC_N 24    // 0: read from the push constants
#define SPEC_STATIC_K 25
#define SPEC_STATIC_LDA 26
#define SPEC_STATIC_LDB 27
#define SPEC_EDGES 28         // M or N is not a multiple of the tile
#define SPEC_K_TAIL 29        // K is not a multiple of tile_k * unroll_k
// … and the epilogue.
#define SPEC_C_TYPE 30      // TYPE_NONE: beta is 0, C is not read
#define SPEC_D_TYPE 31      // TYPE_NONE: only row values are stored
#define SPEC_AUX_TYPE 32    // TYPE_NONE: no aux
#define SPEC_BIAS_TYPE 33
#define SPEC_BIAS 34
#define SPEC_ACTIVATION 35
#define SPEC_CLAMP 36
#define SPEC_GUARDED 37  // does nothing unless the dispatch before gave up waiting
// Of grouped products.
#define SPEC_GROUPED 38
#define SPEC_OFFSETS_64 39  // offsets are int64
#define SPEC_PERSISTENT 40  // workgroups take tiles by stride
// Of row reductions.
#define SPEC_ROW_OP 41
#define SPEC_ROW_GAMMA 42        // rows are scaled, …
#define SPEC_ROW_SHIFT 43        // … and shifted, …
#define SPEC_ROW_VECTOR_TYPE 44  // … by vectors of this type
#define SPEC_ROW_VALUE_TYPE 45
#define SPEC_ROW_SHARED 46  // tiles share rows: reduce_tiles.comp is not resident
// Of gated products.
#define SPEC_GATE 47
#define SPEC_GATE_INTERLEAVED 48  // neighbouring columns of B, bias and aux are a pair
// Of row reductions and gated products.
#define SPEC_C_COL_MAJOR 49  // C and aux
#define SPEC_D_COL_MAJOR 50
#define SPEC_COUNT 51

// The values of SPEC_SPLIT, see split_k.glsl.
#define SPLIT_NONE 0
#define SPLIT_TWO_DISPATCHES 1
#define SPLIT_LAST_ARRIVER 2
#define SPLIT_DEVICE_BARRIER 3

// The first words at GemmParams::control; behind them one for each tile of each batch.
#define CONTROL_TICKETS 0   // that were taken
#define CONTROL_DONE 1      // whose work is done
#define CONTROL_ENROLLED 2  // workgroups that did it
#define CONTROL_WORDS 4

// Invocations of a workgroup that sums partial results (sum_slices.comp), and how many slices each
// loads before it adds the first.
#define SUM_LOCAL_SIZE 64
#define SUM_UNROLL 8

// Rows are reduced by quads of 4 columns, merged as a binary tree up to so many columns; these blocks
// are merged from left to right. Whatever the tile, the order is the same.
#define ROW_BLOCK 1024
// How many quads of a tile's row an invocation merges before the others do, by the size of the tile:
// what is left for each row of the tile stands in shared memory.
#define ROW_PART(tile_m, tile_n) ((tile_m) * (tile_n) > 16384 ? 16 : 8)
#define ROW_PART_MOST 16
// Invocations of a workgroup of reduce_rows.comp, and how many quads each keeps.
#define ROW_LOCAL_SIZE 256
#define ROW_LANE_QUADS 4

// Invocations of a workgroup of merge_states.comp, a row each.
#define MERGE_LOCAL_SIZE 64

// Invocations of a workgroup of reset.comp, a word each.
#define RESET_LOCAL_SIZE 64

// What a workgroup of pack.comp copies, elements in both directions, and its invocations.
#define PACK_TILE 64
#define PACK_LOCAL_SIZE 256

// Padding, in elements, between rows of the tiles that khr stages in shared memory: 16 bytes keep
// 16-byte accesses aligned and spread the rows over the banks.
#define KHR_STAGE_PAD 8
// Padding, in elements, between the stages of khr's ring: both halves of a slab are stored at once,
// and neighbouring stages begin at other banks (the first and the last one overlap in half of them).
#define KHR_RING_PAD 16
// Padding, in floats, between rows of khr's epilogue slices in shared memory.
#define KHR_EPILOGUE_PAD 4
// How many pieces of C an invocation has on their way in khr's epilogue.
#define KHR_EPILOGUE_LOADS 8
// What an invocation of thin reads of B at a time: so many elements along K and along N.
#define THIN_PIECE 8
// Padding, in floats, between K rows of the fma path's tiles.
#define FMA_STAGE_PAD 4

#ifdef __cplusplus
}  // namespace vkgemm::gpu
#endif
#endif
