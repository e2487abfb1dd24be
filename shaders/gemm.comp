// D = epilogue(alpha * A·B), dense, batched: one workgroup a tile.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/matrix.glsl"

void main() {
    const Tile tile = dense_tile();
    Acc acc;
    acc_clear(acc);
    mma_tile(acc, tile);
    store_tile(acc, tile);
}
