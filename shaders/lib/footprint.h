// footprint.h: how much shared memory kernels declare, and how tiles stand in it. Compiled as C++
// and GLSL: macros, because GLSL takes no functions for the size of an array. Sizes are whole
// numbers of *units* of 16 bytes, the widest access, unless their names say otherwise.
#ifndef VKGEMM_FOOTPRINT_H
#define VKGEMM_FOOTPRINT_H

#include "abi.h"

#define UNIT_BYTES 16
#define FOOTPRINT_MAX(a, b) ((a) > (b) ? (a) : (b))

// khr stages operands as they lie in memory: lines of `inner` neighbouring elements. 16 bytes of
// padding keep 16-byte accesses aligned and spread the lines over the banks.
#define KHR_LINE(inner, in_bytes) (((inner) * (in_bytes) + 16) / UNIT_BYTES)
// An operand that is `mn` wide along M or N and `depth` deep.
#define KHR_OPERAND(k_inner, mn, depth, in_bytes) \
    ((k_inner) ? (mn) * KHR_LINE(depth, in_bytes) : (depth) * KHR_LINE(mn, in_bytes))
#define KHR_STAGE(a_k_inner, b_k_inner, tile_m, tile_n, depth, in_bytes) \
    (KHR_OPERAND(a_k_inner, tile_m, depth, in_bytes) + \
     KHR_OPERAND(b_k_inner, tile_n, depth, in_bytes))

// The ring's stages are half a k-tile deep. Padding between them: both halves of a k-tile are
// stored at once, and neighbouring stages begin at other banks (the first and the last one overlap
// in half of them).
#define KHR_RING_STAGES 3
#define KHR_RING_PAD 2
#define KHR_RING_STAGE(a_k_inner, b_k_inner, tile_m, tile_n, tile_k, in_bytes) \
    (KHR_STAGE(a_k_inner, b_k_inner, tile_m, tile_n, (tile_k) / 2, in_bytes) + KHR_RING_PAD)
#define KHR_RING(a_k_inner, b_k_inner, tile_m, tile_n, tile_k, in_bytes) \
    (KHR_RING_STAGES * KHR_RING_STAGE(a_k_inner, b_k_inner, tile_m, tile_n, tile_k, in_bytes))

// khr's epilogue reuses the memory for slices of f32 accumulators, with padding between rows.
#define KHR_SLICE_LINE(tile_n) (((tile_n) + 4) / 4)
#define KHR_SLICE(tile_m, tile_n, subtiles) ((tile_m) / (subtiles) * KHR_SLICE_LINE(tile_n))
// Slices of 16-bit results take half of it: KHR_LINE(tile_n, 2) a row.

// fma stages f32, or words of four s8, K the outer direction, with padding between lines. FMA_STEP: elements of K in a
// word.
#define FMA_STEP(in_bytes) ((in_bytes) == 1 ? 4 : 1)
#define FMA_LINE(mn) (((mn) + 4) / 4)
#define FMA_STAGE(tile_m, tile_n, tile_k, in_bytes) \
    ((tile_k) / FMA_STEP(in_bytes) * (FMA_LINE(tile_m) + FMA_LINE(tile_n)))
// Row reductions reuse the memory: a place for each x4 of four rows of every invocation.
#define FMA_SCRATCH_LINE(tile_n) ((tile_n) / 4 + 1)
#define FMA_SCRATCH(tile_m, tile_n, fragment_m) \
    (4 * ((tile_m) / (fragment_m)) * FMA_SCRATCH_LINE(tile_n))
// Column sums reuse it, too: a place for each x4 of each row of invocations.
#define FMA_SUMS(tile_m, tile_n, fragment_m) ((tile_m) / (fragment_m) * ((tile_n) / 4))

// Sums over groups of K within a k-tile (staged_scales.glsl) are as deep as all its groups permit. After the
// k-tile stand, for each sum, the scales of rows, if there are any, of columns, and the minima of columns.
#define LOWEST_BIT(x) ((x) & (~(x) + 1))
#define WITHIN_GROUP(depth, group) \
    ((group) == 0 ? (depth) : LOWEST_BIT(group) < (depth) ? LOWEST_BIT(group) : (depth))
#define SCALED_SUM_DEPTH(tile_k, a_group, b_group) \
    WITHIN_GROUP(WITHIN_GROUP(LOWEST_BIT(tile_k), a_group), b_group)
// khr keeps the sums of groups deeper than a k-tile in registers, in addition to the accumulators. An invocation then has
// at most KEPT_SUMS_MOST accumulators. If rows have scales, khr also keeps the sums of groups that are one k-tile deep.
#define KEPT_SUMS_MOST 64
#define KEPT_DEPTH_MOST 65536  // an s8 product is at most 2^14, and this many add up to 2^30
#define IS_WHOLE_TILES(tile_k, group) ((group) % (tile_k) == 0 ? 1 : 0)
#define KEEPS_SUMS(tile_m, tile_n, tile_k, invocations, a_group, b_group) \
    ((tile_m) * (tile_n) > KEPT_SUMS_MOST * (invocations) ? 0             \
     : IS_WHOLE_TILES(tile_k, a_group) == 0               ? 0             \
     : IS_WHOLE_TILES(tile_k, b_group) == 0               ? 0             \
     : (a_group) != 0                                     ? 1             \
     : (b_group) == (tile_k)                              ? 0             \
                                                          : 1)
#define STAGED_SCALES(tile_m, tile_n, tile_k, a_group, b_group) \
    ((tile_k) / SCALED_SUM_DEPTH(tile_k, a_group, b_group) *    \
     (((a_group) == 0 ? 0 : (tile_m)) + 2 * (tile_n)) / 4)

// skinny's invocations have pieces of B, of 8 columns and 8 of K. Pieces of s8 have 4 columns and 16 of K. The loop adds up
// one row of the tile at a time.
#define SKINNY_PIECE_N(in_bytes) ((in_bytes) == 1 ? 4 : 8)
#define SKINNY_PIECE_K(in_bytes) ((in_bytes) == 1 ? 16 : 8)
#define SKINNY_SUMS(tile_n, tile_k, in_bytes) ((tile_k) / SKINNY_PIECE_K(in_bytes) * ((tile_n) / 4))

// The bytes of a row's state (row_state.glsl) in memory. A state of moments has z.
#define ROW_STATE_BYTES(moments) ((moments) ? 12 : 8)

// reduce_tiles.comp: how many x4s of a tile's row an invocation merges before the others do. The
// states that are left of each row stand in shared memory: large tiles and large states leave few.
#define ROW_PART_LEAST 8
#define ROW_PART_MOST 32
#define ROW_MOST_PARTS (ROW_BLOCK / 4 / ROW_PART_LEAST)
#define ROW_PART_WANTED(tile_m, tile_n, moments) \
    ((moments) ? ((tile_n) > 256 ? ROW_PART_MOST : 16) \
               : ((tile_m) * (tile_n) > 16384 ? 16 : ROW_PART_LEAST))
#define ROW_PART_X4(tile_m, tile_n, moments) \
    ((tile_n) / 4 < ROW_PART_WANTED(tile_m, tile_n, moments) \
         ? (tile_n) / 4 \
         : ROW_PART_WANTED(tile_m, tile_n, moments))
#define ROW_PARTS(tile_m, tile_n, moments) \
    ((tile_n) / 4 / ROW_PART_X4(tile_m, tile_n, moments))
#define ROW_PART_BYTES(tile_m, tile_n, moments) \
    ((tile_m) * ROW_PARTS(tile_m, tile_n, moments) * ROW_STATE_BYTES(moments))

// reduce_rows.comp: a state of each invocation.
#define REDUCE_ROWS_BYTES (ROW_LOCAL_SIZE * ROW_STATE_BYTES(true))

// pack.comp: pairs of 16-bit elements, with padding between lines.
#define PACK_LINE_WORDS (PACK_TILE / 2 + 1)
#define PACK_BYTES (PACK_TILE * PACK_LINE_WORDS * 4)
// pack_fragments.comp: lines with padding of eight elements, and three words for each slot
// that a tile may touch (pack_slots.glsl): fragments, and so slots, are 8 elements wide or more. A word
// for each line, where lines have scales (parts.glsl).
#define PACK_SLOTS (PACK_TILE / 8 + 1)
#define PACK_FRAGMENTS_BYTES(element_bytes, line_scales) \
    (PACK_TILE * (PACK_TILE + 8) * (element_bytes) + PACK_SLOTS * 3 * 4 + ((line_scales) ? PACK_TILE * 4 : 0))

// quantise_rows.comp: a magnitude of each invocation.
#define QUANTISE_ROWS_BYTES(local_size) ((local_size) * 4)

// Single words: at most so many bytes in any kernel (group_map, device_barrier, row_panel). ANV
// does not leave out those that are not used. A shader that declares more than
// maxComputeSharedMemorySize is invalid: an H200 (driver 580.159.04) was lost in each of three runs
// where a tile of 49152 bytes left them no room.
#define SINGLE_WORDS_BYTES 16

#endif
