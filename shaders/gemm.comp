// D = epilogue(alpha * A·B), dense, batched: one workgroup a tile. With split-K
// (SPLIT_TWO_DISPATCHES) it is a slice of K of one, whose partial results sum_slices.comp adds.
#version 460
#extension GL_GOOGLE_include_directive : require
#define PARAMS GemmParams
#include "lib/contract.glsl"

void main() {
    const Tile tile = dense_tile();
    Acc acc;
    acc_clear(acc);
    multiply_tile(acc, tile);
    store_tile(acc, tile);
    store_amax(tile);
}
