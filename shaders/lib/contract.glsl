// contract.glsl: what every main loop supplies and every kernel may call. modules.txt names the loop and
// the input (input_contract.glsl) of a module. The kernel defines PARAMS. All other choices are
// specialization constants. The loops are in loops/.
//
// All kernels call
//   Acc                         the accumulators of one tile: declare, then acc_clear (a type with
//                               arrays sized by specialization constants can be neither returned nor
//                               an initialiser in glslang)
//   acc_clear(inout Acc)
//   mma_tile(inout Acc, Tile)   Acc += A[tile rows, k_begin…k_end) · B[k_begin…k_end, tile columns)
//   multiply_tile(inout Acc, Tile)
//                               mma_tile of all matrices that are added up, with a barrier() between
//   store_tile(Acc, Tile)       D and aux through the epilogue, inside the matrix only; with split-K
//                               partial results
// Each of the last three may be called again in the same workgroup only after a barrier().
//
// A loop that defines OWN_STORE_TILE supplies store_tile itself, and serves no row reductions. For
// all others store_tile.glsl does, from what follows.
//
// A loop that defines TAKES_FRAGMENTS has A and B in fragment order, or A in rows, and groups in slots
// of these copies (pack_slots.glsl): the tile's rows of such an A begin at a_row.
//
// Accumulators are shown in slices: sets of rows of the tile, whose values, x4s, are dealt out to
// the invocations of the workgroup. All invocations take the slices in order. Neighbouring values of
// a row are with neighbouring invocations; a kernel that defines WHOLE_SLICES may rely on a slice
// being there for all once begin_slice returns, others see their own values only.
//   VALUE_SLICES                slices of a tile
//   VALUE_ROWS                  rows of a slice
//   SLICE_VALUES                values of an invocation in a slice, at most
//   begin_slice(Acc, slice)     called by all before the first value of a slice is read
//   has_value(i)                whether this invocation has value i < SLICE_VALUES
//   value_place(i)              its row in the slice, and which x4 it is of D's part of that row
//   value_row(slice, row)       row in the tile of a row of the slice
//   slice_value(Acc, slice, i)  the value
//   slice_pair(Acc, slice, i)   with a gate: the values of both products
//
// A loop that defines HAS_NARROW_SLICES also supplies
//   store_narrow(Acc, Tile)     store_tile for NARROW_SLICES
//
// For store_tile: which loops are unrolled, and the loads that are worth an array.
//   EACH_SLICE(slice)           the loop over slices
//   EACH_BATCH(first)           the loop over this invocation's values of a slice, BATCH at a time
//   BATCH                       values whose C is loaded before the first of them is stored
//   MOST_BATCH                  no less, for the size of an array
//   KEEPS_BIAS                  true: an invocation's values have the same columns in all slices,
//   VALUE_COLUMNS               so many, those of its first values, whose bias is loaded once
//   MOST_VALUE_COLUMNS          no less, for the size of an array
//   value_column(i)             which of these columns value i has
//
// For row reductions: values that are kept, and a scratch memory of VALUE_ROWS lines of x4s.
//   MOST_SLICE_VALUES           no less than SLICE_VALUES, for the size of an array
//   VALUE_STRIDE                places from one line to the next
//   begin_scratch()             called by all between begin_slice and the first set_scratch
//   set_scratch(place, vec4)    by whom has read the value of that place
//   scratch(place)
//
// For column sums (column_sums.glsl), which use the scratch memory in lines of their own:
//   SUMS                        x4s of columns of an invocation's values: value i is of the columns of
//                               value i % SUMS
//   MOST_SUMS                   no less, for the size of an array
//   has_sum(j)                  whether this invocation has value j < SUMS
//   SUM_LINES                   invocations that have values of the same columns
//   sum_line(j)                 the number of this one among them
//
// Sizes of arrays should not be choices between specialization constants: NVIDIA's driver 580.159.04
// leaves such arrays in memory.
#include "common.glsl"
#include "elements.glsl"
#include "input_contract.glsl"
#include "schedule/tile.glsl"
#include "epilogue/epilogue.glsl"
#include "epilogue/tile_x4.glsl"

#include "main_loop.glsl"

#ifdef TAKES_FRAGMENTS
#define multiply_tile mma_tile
#else
// The product of a tile, or the sum of a batch's: one matrix after the other.
void multiply_tile(inout Acc acc, Tile t) {
    for (uint i = 0;;) {
        mma_tile(acc, t);
        if (SUM_BATCH == 0 || ++i == p.batch) break;
        barrier();
        t.a += p.a_batch;
        t.b += p.b_batch;
    }
}
#endif

#ifndef OWN_STORE_TILE
#include "epilogue/column_sums.glsl"
#include "epilogue/store_tile.glsl"
#endif
